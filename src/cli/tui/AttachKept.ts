/**
 * AttachKept: queues messages that are typed while the daemon is away, and sends them in
 * order when it is back.
 *
 * Guarantees: only a message that no daemon has received is queued, so nothing is sent twice;
 * if something is not queued, the person is told at once; an answer or an interrupt refers to
 * what is on the screen now, and is never queued.
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
  /** Runs a typed command; the lines are its answer, or say that it was queued. */
  readonly take: (asked: Asked) => Effect.Effect<Lines>
  readonly count: () => number
}

const isAway = ({ reason }: DaemonUnreachable): boolean => reason === "not-running"

const failed = ({ message, remedy }: DaemonUnreachable): Lines => [
  { text: `${plain(message)} → ${plain(remedy)}`, colour: "yellow" }
]

/** `act` fails if the daemon cannot be reached; `print` shows later results. The queue lives as long as the scope. */
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
      return [{ text: `${MAX_KEPT} messages are queued already: this one was discarded.`, colour: "red" }]
    count++
    yield* Effect.forkIn(later(asked), scope)
    return [{ text: "The daemon does not answer: this is queued, and sent when it is back.", colour: "yellow" }]
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
