/**
 * Tokens: the secrets of the daemon's TCP port: two tokens, and the secret from which the keys of pages are derived.
 *
 * Guarantees: each secret is in a file of the state directory that only its owner can read. The file is created on
 * first use, atomically. Comparing a token takes the same time, however many of its characters are right.
 */
import { createHash, randomBytes, timingSafeEqual } from "node:crypto"
import { join } from "node:path"
import { Effect, FileSystem, type PlatformError, Schema } from "effect"
import { remedyOf, troubleOf } from "../../config/FileTrouble.ts"

/**
 * Access level of a token. `hooks` only permits reporting events, so this token can be stored in the settings of other
 * programs.
 */
export type Level = "hooks" | "full"

export type Tokens = { readonly [level in Level]: string }

/** Secrets that are stored in files. The secret `pages` is never sent. */
type Secret = Level | "pages"

export class TokenError extends Schema.TaggedError<TokenError>()("TokenError", {
  message: Schema.String,
  remedy: Schema.String
}) {}

const BYTES = 32
const FORM = /^[\w-]{43}$/

const fileOf = (state: string, level: Secret): string =>
  join(state, level === "pages" ? "http-pages.key" : `http-${level}.token`)

const failed = (path: string) => (error: PlatformError.PlatformError) =>
  new TokenError({
    message: `${path} cannot be used: ${troubleOf(error)}`,
    remedy: remedyOf(error, "Make sure that the state directory is yours: agentd doctor")
  })

/**
 * A new secret from the operating system's random bytes. Effect's Random is not used, because a test can choose its
 * seed.
 */
const fresh = Effect.sync(() => randomBytes(BYTES).toString("base64url"))

/**
 * Creates the file of a token. A link makes this atomic: if two processes create the file at the same time, both get
 * the same token.
 */
const create = Effect.fnUntraced(function* (path: string) {
  const fs = yield* FileSystem.FileSystem
  const token = yield* fresh
  const made = `${path}.${token.slice(0, 8)}`
  yield* fs.writeFileString(made, `${token}\n`, { mode: 0o600, flag: "wx" })
  yield* fs.link(made, path).pipe(
    Effect.catchIf(
      (error) => error.reason._tag === "AlreadyExists",
      () => Effect.void
    ),
    Effect.ensuring(Effect.ignore(fs.remove(made)))
  )
})

/** Reads a token, and creates it if it does not exist. */
export const read = Effect.fnUntraced(function* (state: string, level: Secret) {
  const fs = yield* FileSystem.FileSystem
  const path = fileOf(state, level)
  const text = yield* Effect.gen(function* () {
    if (!(yield* fs.exists(path))) {
      yield* fs.makeDirectory(state, { recursive: true, mode: 0o700 })
      yield* create(path)
    }
    if (((yield* fs.stat(path)).mode & 0o077) !== 0) yield* fs.chmod(path, 0o600)
    return (yield* fs.readFileString(path)).trim()
  }).pipe(Effect.mapError(failed(path)))
  if (FORM.test(text)) return text
  return yield* new TokenError({
    message: `${path} contains no token.`,
    remedy: `Remove it, then: agentd restart, and agentd hooks install`
  })
})

export const all = (state: string): Effect.Effect<Tokens, TokenError, FileSystem.FileSystem> =>
  Effect.all({ hooks: read(state, "hooks"), full: read(state, "full") })

const digest = (text: string): Buffer => createHash("sha256").update(text).digest()

export const same = (given: string, token: string): boolean => timingSafeEqual(digest(given), digest(token))
