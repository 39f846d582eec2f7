/**
 * KeptSocket: the name of a unix socket of ours, which a cleaner of old files may take away, or the last logout with
 * the whole folder.
 *
 * Guarantees: where it is gone, somebody listens there anew within 10 s, for whoever listened at first; connections
 * that are open stay. What others have put there meanwhile is theirs to take away: `claim` decides.
 */
import { Cause, Clock, Duration, Effect } from "effect"
import { chmodSync, statSync } from "node:fs"
import { createServer, type ServerOpts, type Socket } from "node:net"

/** All look at the same moments: an idle daemon wakes once for all of them. */
const LOOK = 10_000

export interface Kept<E, R> extends Pick<ServerOpts, "allowHalfOpen"> {
  readonly path: string
  /** Makes the path free to listen on. */
  readonly claim: Effect.Effect<unknown, E, R>
  /** Takes a connection that came since the name was lost. */
  readonly take: (conn: Socket) => void
  /** Looks at once, too: somebody else has listened there before us. */
  readonly now?: boolean
}

const inodeOf = (path: string): number | undefined => statSync(path, { throwIfNoEntry: false })?.ino

/** For the length of the scope, from when somebody listens there. */
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
      // one that is closed later would take the new one's name with it
      server.close()
      yield* listen
      chmodSync(path, 0o600)
      own = inodeOf(path)
      isTold = false
      yield* Effect.logWarning(`${path} was taken away: it is there again`)
    }).pipe(
      Effect.catchCause((cause) => {
        if (isTold || Cause.hasInterruptsOnly(cause)) return Effect.void
        isTold = true
        return Effect.logError(`${path} was taken away, and cannot be made anew yet: ${String(Cause.squash(cause))}`)
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
