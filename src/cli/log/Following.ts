/**
 * Following: reads new runes until it is interrupted, and reconnects when the daemon is back.
 *
 * Guarantees: each rune after `after` is delivered once, in order. Each loss of the connection to the daemon is
 * reported once.
 */
import { Effect, Ref, Stream } from "effect"
import { call } from "../../api/rpc/ControlClient.ts"
import type { LogSelection } from "../../board/DaemonMessages.ts"
import type { Rune } from "../../core/event-log/Rune.ts"
import { Invocation } from "../parse/Invocation.ts"

const AGAIN = "1 second"

/**
 * Passes new runes to `take`. `selection`: agent, stream and kinds of the runes to read. `lost`: called with the reason
 * when the connection to the daemon is lost.
 */
export const following = Effect.fnUntraced(function* (
  selection: Pick<LogSelection, "agent" | "kinds" | "stream">,
  after: number,
  take: (rune: Rune) => Effect.Effect<void>,
  lost: (message: string) => Effect.Effect<void>
) {
  const { caller, paths } = yield* Invocation
  const seen = yield* Ref.make(after)
  const away = yield* Ref.make(false)
  const once = Effect.flatMap(Ref.get(seen), (after) =>
    call(paths.socket, (client) =>
      client
        .Log({ ...selection, after, follow: true, caller })
        .pipe(
          Stream.runForEach((rune) =>
            Effect.all([Ref.set(seen, rune.eventId), Ref.set(away, false), take(rune)], { discard: true })
          )
        )
    )
  )
  return yield* Effect.matchEffect(once, {
    onSuccess: () => Effect.succeed("The daemon ended the stream."),
    onFailure: (error) => Effect.succeed(error.message)
  }).pipe(
    Effect.flatMap((message) =>
      Effect.flatMap(Ref.getAndSet(away, true), (already) => (already ? Effect.void : lost(message)))
    ),
    Effect.andThen(Effect.sleep(AGAIN)),
    Effect.forever
  )
})
