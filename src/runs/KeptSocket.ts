/**
 * KeptSocket: keeps the file of one of the daemon's unix sockets in place. A cleanup of old files can remove the file,
 * and the last logout can remove the whole folder.
 *
 * Guarantees: If the file is removed, the daemon creates it again within 10 s and passes new connections to the same
 * handler. Open connections stay open. If other processes have put a file in its place, `claim` decides what happens to
 * that file.
 */
import { Cause, Clock, Duration, Effect } from "effect"
import { chmodSync, statSync } from "node:fs"
import { createServer, type ServerOpts, type Socket } from "node:net"

/**
 * Interval between checks, in ms. All sockets are checked at the same moments, so that an idle daemon wakes up once for
 * all of them.
 */
const LOOK = 10_000

export interface Kept<E, R> extends Pick<ServerOpts, "allowHalfOpen"> {
  readonly path: string
  /** Frees the socket's path so that this process can listen on it. */
  readonly claim: Effect.Effect<unknown, E, R>
  /** Handles a connection that arrives after the socket's file was removed and created again. */
  readonly take: (conn: Socket) => void
  /** True if another process was listening on this path before. The file is then checked at once. */
  readonly now?: boolean
}

const inodeOf = (path: string): number | undefined => statSync(path, { throwIfNoEntry: false })?.ino

/** Keeps the socket's file in place until the scope closes. Call this when the socket is already listening. */
export const keep = <E, R>({ allowHalfOpen, claim, now = false, path, take }: Kept<E, R>) =>
  Effect.gen(function* () {
    let own = inodeOf(path)
    let server = createServer()
    let isTold = false
    yield* Effect.addFinalizer(() => Effect.sync(() => server.close()))
    const listen = Effect.callback<void, Error>((resume) => {
      server = createServer({ allowHalfOpen }, take)
      server.once("error", (error) => resume(Effect.fail(error)))
      server.listen(path, () => resume(Effect.void))
    })
    const look = Effect.gen(function* () {
      const here = yield* Effect.sync(() => inodeOf(path))
      if (here !== undefined && here === own) return
      yield* claim
      // close the old server first: closing it later would remove the new socket's file
      server.close()
      yield* listen
      chmodSync(path, 0o600)
      own = inodeOf(path)
      isTold = false
      yield* Effect.logWarning(`${path} had been removed and was created again`)
    }).pipe(
      Effect.catchCause((cause) => {
        if (isTold || Cause.hasInterruptsOnly(cause)) return Effect.void
        isTold = true
        return Effect.logError(`${path} was removed and cannot be created again yet: ${String(Cause.squash(cause))}`)
      })
    )
    if (now) yield* look
    yield* Effect.forkScoped(
      Effect.gen(function* () {
        yield* Effect.sleep(Duration.millis(LOOK - ((yield* Clock.currentTimeMillis) % LOOK)))
        yield* look
        return yield* Effect.forever(Effect.andThen(Effect.sleep(Duration.millis(LOOK)), look))
      })
    )
  })
