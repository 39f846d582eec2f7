/**
 * McpGrant: what a login at a remote MCP server gave: its tokens, in a file of the state folder that
 * only the user can read.
 *
 * Guarantees: a token is kept for the address that it was given for, and sent to no other, whatever
 * a config calls it; a file is written beside and renamed; one that is about to expire, or was
 * refused, is renewed once, by one caller at a time; no error shows a token; each is known as a secret before it is
 * used.
 */
import { Clock, Effect, FileSystem, Schema, Semaphore } from "effect"
import type { HttpClient } from "effect/http"
import { createHash } from "node:crypto"
import * as path from "node:path"
import { readSecret } from "../../config/OwnFile.ts"
import { KnownSecrets } from "../KnownSecrets.ts"
import * as OAuth from "./OAuth.ts"

export const Grant = Schema.Struct({
  url: Schema.String,
  tokenEndpoint: Schema.String,
  clientId: Schema.String,
  accessToken: Schema.String,
  refreshToken: Schema.optionalKey(Schema.String),
  /** ms since the epoch */
  expiresAt: Schema.optionalKey(Schema.Finite)
})
export type Grant = typeof Grant.Type

/** A token that lasts no longer than this is renewed before it is sent, ms. */
const SOON = 30_000

const decode = Schema.decodeUnknownEffect(Schema.fromJsonString(Grant))

export const fileOf = (folder: string, url: string): string =>
  path.join(folder, `${createHash("sha256").update(url).digest("hex").slice(0, 32)}.json`)

/** The grant for an address; undefined: there is none, or none that can be read. */
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

/** Both tokens are secrets from here on. */
const tell = ({ accessToken, refreshToken }: Grant) =>
  Effect.flatMap(KnownSecrets, (known) => known([accessToken, ...(refreshToken === undefined ? [] : [refreshToken])]))

/** A refresh token that two use is one that was stolen, for whoever gave it. */
const oneByOne = Semaphore.makeUnsafe(1)

/** The token for an address; `refused`: the one that the server took no more. */
export const token = (client: HttpClient.HttpClient, folder: string, url: string, refused: string | undefined) =>
  oneByOne.withPermits(1)(
    Effect.gen(function* () {
      const grant = yield* read(folder, url)
      if (grant === undefined) return undefined
      yield* tell(grant)
      const now = yield* Clock.currentTimeMillis
      const isOld = grant.accessToken === refused || (grant.expiresAt !== undefined && grant.expiresAt - now < SOON)
      if (!isOld || grant.refreshToken === undefined) return grant.accessToken
      const tokens = yield* OAuth.tokens(client, grant.tokenEndpoint, {
        grant_type: "refresh_token",
        refresh_token: grant.refreshToken,
        client_id: grant.clientId,
        resource: url
      })
      const renewed = yield* ofTokens(grant, tokens)
      yield* tell(renewed)
      yield* write(folder, renewed)
      return renewed.accessToken
    })
  )
