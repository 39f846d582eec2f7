/**
 * AttachQueue: queues messages that are typed while the daemon does not answer, and sends them in order when it is
 * back.
 *
 * Guarantees: a message is queued only if no daemon has received it, so nothing is sent twice. If a message cannot be
 * queued, the user is told immediately. An answer or an interrupt is never queued, because it refers to what is
 * currently on the screen.
 */
import { Effect, Semaphore } from "effect"
import type { DaemonUnreachable } from "../../api/rpc/ControlClient.ts"
import type { Asked } from "./AttachInput.ts"
import type { Line } from "./AttachView.ts"
import { plain } from "../render/Output.ts"
import * as Backoff from "../../core/supervision/Backoff.ts"

const MAX_KEPT = 100
const AGAIN = Backoff.waits(Backoff.constant("1 second"))

type Lines = ReadonlyArray<Line>

export interface Kept {
  /** Runs a typed command. Returns lines with the result, or a line that says that the message was queued. */
  readonly take: (asked: Asked) => Effect.Effect<Lines>
  readonly count: () => number
}

const isAway = ({ reason }: DaemonUnreachable): boolean => reason === "not-running"

const failed = ({ message, remedy }: DaemonUnreachable): Lines => [
  { text: `${plain(message)} → ${plain(remedy)}`, colour: "yellow" }
]

/**
 * Makes a queue that exists until the scope closes. `act`: runs a command, and fails if the daemon cannot be reached.
 * `print`: shows results that arrive later.
 */
export const make = Effect.fnUntraced(function* (
  act: (asked: Asked) => Effect.Effect<Lines, DaemonUnreachable>,
  print: (lines: Lines) => Effect.Effect<void>
) {
  const scope = yield* Effect.scope
  const inOrder = Semaphore.makeUnsafe(1)
  let count = 0
  const later = (asked: Asked) =>
    act(asked).pipe(
      Effect.retry({ schedule: AGAIN, while: isAway }),
      Effect.catch((error) => Effect.succeed(failed(error))),
      Effect.flatMap(print),
      Effect.ensuring(Effect.sync(() => void count--)),
      inOrder.withPermit
    )
  const keep = Effect.fnUntraced(function* (asked: Asked): Effect.fn.Return<Lines> {
    if (count >= MAX_KEPT)
      return [{ text: `${MAX_KEPT} messages are already queued, so this one was discarded.`, colour: "red" }]
    count++
    yield* Effect.forkIn(later(asked), scope)
    return [
      { text: "The daemon does not answer. The message is queued, and sent when the daemon is back.", colour: "yellow" }
    ]
  })
  const kept: Kept = {
    count: () => count,
    take: (asked) =>
      count > 0 && asked._tag === "Send"
        ? keep(asked)
        : Effect.catch(act(asked), (error) =>
            isAway(error) && asked._tag === "Send" ? keep(asked) : Effect.succeed(failed(error))
          )
  }
  return kept
})
