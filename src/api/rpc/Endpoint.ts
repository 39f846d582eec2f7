/**
 * Endpoint: checks and prepares the path of the control socket.
 *
 * Guarantees: the socket's folder belongs to this user, and no other user can write to it. The socket of a running
 * daemon is never deleted; a stale socket is. Any other file at that path is left alone, and the error names it.
 */
import * as NodeSocket from "@effect/platform-node/NodeSocket"
import { Effect, FileSystem, Option, type PlatformError, Schema } from "effect"
import * as NodePath from "node:path"
import { remedyOf, troubleOf } from "../../config/FileTrouble.ts"

/** Maximum length of a socket's path: the length of `sun_path` without its closing zero. */
export const MAX_PATH_BYTES = 107

export class EndpointRefused extends Schema.TaggedError<EndpointRefused>()("EndpointRefused", {
  message: Schema.String,
  remedy: Schema.String,
  /** The reason why the path cannot be used: "long", "folder", "in-use", "not-a-socket" or "io". */
  reason: Schema.String
}) {}

const refuse = (reason: string, message: string, remedy: string) =>
  Effect.fail(new EndpointRefused({ reason, message, remedy }))

const io = (path: string) => (error: PlatformError.PlatformError) =>
  new EndpointRefused({
    reason: "io",
    message: `${path} cannot be used: ${troubleOf(error)}`,
    remedy: remedyOf(error, "Make it accessible to you, or choose another state directory with --state DIR.")
  })

/** The error code of a failed connection: ENOENT, ECONNREFUSED, EACCES … */
export const codeOf = (error: object & { readonly cause?: unknown }): string | undefined =>
  typeof error.cause === "object" &&
  error.cause !== null &&
  "code" in error.cause &&
  typeof error.cause.code === "string"
    ? error.cause.code
    : undefined

/**
 * The result of connecting to a socket: `live` if a process listens there, otherwise the reason why the connection
 * failed.
 */
export type Found = "live" | "stale" | "forbidden" | "absent"

export const probe = (path: string): Effect.Effect<Found> =>
  Effect.scoped(Effect.flatMap(NodeSocket.makeNet({ path, openTimeout: "2 seconds" }), (socket) => socket.reader)).pipe(
    Effect.match({
      onSuccess: (): Found => "live",
      onFailure: (error): Found => {
        const code = codeOf(error.reason)
        return code === "EAGAIN"
          ? "live"
          : code === "ENOENT"
            ? "absent"
            : code === "EACCES" || code === "EPERM"
              ? "forbidden"
              : "stale"
      }
    })
  )

export const checkLength = (path: string): Effect.Effect<void, EndpointRefused> =>
  Buffer.byteLength(path) <= MAX_PATH_BYTES
    ? Effect.void
    : refuse(
        "long",
        `The control socket's path has ${Buffer.byteLength(path)} bytes, and the maximum is ${MAX_PATH_BYTES}: ${path}`,
        "Choose a shorter state directory with --state DIR, or set XDG_RUNTIME_DIR (usually /run/user/<uid>)."
      )

/** Creates the socket's folder with mode 0700, or checks that an existing folder is safe. */
export const claimFolder = Effect.fnUntraced(function* (folder: string) {
  const fs = yield* FileSystem.FileSystem
  yield* fs.makeDirectory(folder, { recursive: true, mode: 0o700 }).pipe(Effect.mapError(io(folder)))
  const info = yield* fs.stat(folder).pipe(Effect.mapError(io(folder)))
  const uid = process.getuid?.()
  const owner = Option.getOrUndefined(info.uid)
  if (uid !== undefined && owner !== undefined && owner !== uid) {
    return yield* refuse(
      "folder",
      `The folder ${folder} belongs to user ${owner}, not to you (${uid}).`,
      "Choose one of your own with --state DIR."
    )
  }
  if ((info.mode & 0o022) !== 0) {
    return yield* refuse(
      "folder",
      `Others can write in ${folder} (mode ${(info.mode & 0o777).toString(8)}), so they could put their own socket there.`,
      `Run: chmod 700 '${folder}'`
    )
  }
})

/** Removes a stale socket so that the daemon can listen on the path. Fails if anything else is there. */
export const claim = Effect.fnUntraced(function* (path: string) {
  yield* checkLength(path)
  yield* claimFolder(NodePath.dirname(path))
  const fs = yield* FileSystem.FileSystem
  if (!(yield* fs.exists(path).pipe(Effect.mapError(io(path))))) return
  const info = yield* fs.stat(path).pipe(Effect.mapError(io(path)))
  if (info.type !== "Socket") {
    return yield* refuse("not-a-socket", `${path} exists and is not a socket.`, "Move it away.")
  }
  const found = yield* probe(path)
  if (found === "live" || found === "forbidden") {
    return yield* refuse(
      "in-use",
      `Another daemon answers at ${path}.`,
      "Use that one (agentd status), stop it (agentd stop --daemon), or use another state directory: --state DIR."
    )
  }
  yield* fs.remove(path).pipe(Effect.mapError(io(path)))
})
