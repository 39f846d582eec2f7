/**
 * McpTokens: the tokens that a login at a remote MCP server returns. They are stored in the state directory, in a file
 * that only the user can read.
 *
 * Guarantees: a token is stored for the address that it was issued for, and sent to no other
 * address, whatever name a config uses. A file is written under another name and then renamed. A token that is about to
 * expire, or that the server has rejected, is renewed once, by one caller of all processes at a time. No error contains
 * a token. Each token is registered as a secret before it is used.
 */
import { Clock, Effect, FileSystem, Schedule, Schema } from "effect"
import type { HttpClient } from "effect/http"
import { createHash } from "node:crypto"
import * as path from "node:path"
import * as FileLock from "../core/event-log/FileLock.ts"
import { readSecret } from "../config/OwnFile.ts"
import { LearnedSecrets } from "../runs/LearnedSecrets.ts"
import * as OAuth from "./OAuth.ts"

export const Grant = Schema.Struct({
  url: Schema.String,
  tokenEndpoint: Schema.String,
  clientId: Schema.String,
  accessToken: Schema.String,
  refreshToken: Schema.optionalKey(Schema.String),
  /** When the access token expires, ms since the epoch. */
  expiresAt: Schema.optionalKey(Schema.Finite)
})
export type Grant = typeof Grant.Type

/** Another process renews the tokens now. */
class Taken extends Schema.TaggedError<Taken>()("Taken", {}) {}

/** How often a process that waits for the lock tries to get it. */
const AGAIN = "50 millis"
/** A token that expires within this time is renewed before it is sent, ms. */
const SOON = 30_000

const decode = Schema.decodeUnknownEffect(Schema.fromJsonString(Grant))

export const fileOf = (folder: string, url: string): string =>
  path.join(folder, `${createHash("sha256").update(url).digest("hex").slice(0, 32)}.json`)

/** The stored tokens for an address; undefined if there are none or if they cannot be read. */
export const read = (folder: string, url: string) =>
  readSecret(fileOf(folder, url)).pipe(
    Effect.flatMap(decode),
    Effect.map((grant): Grant | undefined => (grant.url === url ? grant : undefined)),
    Effect.orElseSucceed(() => undefined)
  )

export const write = Effect.fnUntraced(function* (folder: string, grant: Grant) {
  const files = yield* FileSystem.FileSystem
  yield* files.makeDirectory(folder, { recursive: true, mode: 0o700 })
  const file = fileOf(folder, grant.url)
  yield* files.writeFileString(`${file}.new`, JSON.stringify(grant), { mode: 0o600 })
  yield* files.rename(`${file}.new`, file)
})

export const remove = Effect.fnUntraced(function* (folder: string, url: string) {
  const files = yield* FileSystem.FileSystem
  const file = fileOf(folder, url)
  if (!(yield* files.exists(file))) return false
  yield* files.remove(file)
  return true
})

export const ofTokens = (
  of: Pick<Grant, "clientId" | "refreshToken" | "tokenEndpoint" | "url">,
  tokens: OAuth.Tokens
) =>
  Effect.map(Clock.currentTimeMillis, (now): Grant => {
    const { access_token: accessToken, expires_in: seconds, refresh_token: refreshToken = of.refreshToken } = tokens
    return {
      url: of.url,
      tokenEndpoint: of.tokenEndpoint,
      clientId: of.clientId,
      accessToken,
      ...(refreshToken === undefined ? {} : { refreshToken }),
      ...(seconds === undefined ? {} : { expiresAt: now + seconds * 1000 })
    }
  })

const tell = ({ accessToken, refreshToken }: Grant) =>
  Effect.flatMap(LearnedSecrets, (known) => known([accessToken, ...(refreshToken === undefined ? [] : [refreshToken])]))

/**
 * Holds the lock of all tokens until the scope ends: if a refresh token is used twice, issuers assume that it was
 * stolen.
 */
const locked = (folder: string) =>
  Effect.acquireRelease(
    Effect.try({
      try: () => FileLock.take(path.join(folder, "lock.db"), 0),
      catch: (cause) => {
        if (FileLock.isTaken(cause)) return new Taken()
        const why = cause instanceof Error ? cause.message : String(cause)
        return new OAuth.OAuthError({ message: `${folder} cannot be locked: ${why}`, remedy: "make it writable" })
      }
    }).pipe(
      Effect.retry({ while: ({ _tag }) => _tag === "Taken", schedule: Schedule.spaced(AGAIN) }),
      Effect.catchTag("Taken", Effect.die)
    ),
    (held) => Effect.sync(held.release),
    { interruptible: true }
  )

/** The stored tokens; `isOld`: true if the access token must be renewed before it is used. */
const current = Effect.fnUntraced(function* (folder: string, url: string, refused: string | undefined) {
  const grant = yield* read(folder, url)
  if (grant === undefined) return undefined
  yield* tell(grant)
  const now = yield* Clock.currentTimeMillis
  const isOld = grant.accessToken === refused || (grant.expiresAt !== undefined && grant.expiresAt - now < SOON)
  return { grant, isOld: isOld && grant.refreshToken !== undefined }
})

/**
 * Returns a token that can be used now, after a renewal if necessary. `refused`: the token that the server has
 * rejected, if any.
 */
export const token = Effect.fnUntraced(
  function* (client: HttpClient.HttpClient, folder: string, url: string, refused: string | undefined) {
    const before = yield* current(folder, url, refused)
    if (before === undefined || !before.isOld) return before?.grant.accessToken
    yield* locked(folder)
    // another process may have renewed it meanwhile
    const now = yield* current(folder, url, refused)
    if (now === undefined || !now.isOld) return now?.grant.accessToken
    const { clientId, refreshToken = "", tokenEndpoint } = now.grant
    const tokens = yield* OAuth.tokens(client, tokenEndpoint, {
      grant_type: "refresh_token",
      refresh_token: refreshToken,
      client_id: clientId,
      resource: url
    })
    const renewed = yield* ofTokens(now.grant, tokens)
    yield* tell(renewed)
    yield* write(folder, renewed)
    return renewed.accessToken
  },
  Effect.scoped,
  // a renewal that has begun ends, so that the new tokens are stored
  Effect.uninterruptible
)
