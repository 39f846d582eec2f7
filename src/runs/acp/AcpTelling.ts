/**
 * AcpTelling: the events of a run, in their order, each with its place in what the agent's process has said.
 *
 * Guarantees: one event after the other, each with the state that it is told of; of what the stream does not say, the note
 * by which a later daemon tells it again is kept before it is told, and nothing is told between; what a command of a
 * terminal does beside the stream moves no place.
 */
import { type Cause, Effect, Queue, Semaphore } from "effect"
import type { Place, RunEvent } from "../Backend.ts"
import type { RunProcess } from "../process/RunProcess.ts"
import type * as AcpHistory from "./AcpHistory.ts"
import type { Wire } from "./AcpWire.ts"

export type Events = Queue.Queue<RunEvent, Cause.Done>
export type Make = () => ReadonlyArray<RunEvent>

export class AcpTelling {
  private readonly queue: Events
  private readonly wire: Wire
  /** False: the run ends with the daemon, and no event needs a place. */
  private readonly isKept: boolean
  private readonly order = Semaphore.makeUnsafe(1)
  /** The place of the event that was told last. */
  place: AcpHistory.Rest["place"]

  constructor(queue: Events, wire: Wire, { isKept }: Pick<RunProcess, "isKept">, place = { end: 0, index: 0 }) {
    this.queue = queue
    this.wire = wire
    this.isKept = isKept
    this.place = place
  }

  /** In the order of all events, as they are. */
  readonly aside = (make: Make): Effect.Effect<void> =>
    this.order.withPermit(Effect.suspend(() => Effect.asVoid(Queue.offerAll(this.queue, make()))))

  readonly tell = (make: Make): Effect.Effect<void> =>
    Effect.suspend(() => {
      const end = this.wire.taken()
      return this.aside(() => this.placed(end, make()))
    })

  /** Tells what the line says that is taken now. */
  readonly hear = (make: Make): Effect.Effect<void> =>
    Effect.suspend(() => {
      const end = this.wire.seen()
      return this.aside(() => this.placed(end, make()))
    })

  /** Tells what the stream does not say; answers what was told. */
  readonly noted = (note: AcpHistory.Note, make: Make): Effect.Effect<ReadonlyArray<RunEvent>> =>
    this.order.withPermit(
      Effect.suspend(() => {
        const end = this.wire.taken()
        const events = make()
        if (events.length === 0) return Effect.succeed(events)
        return Effect.andThen(
          this.wire.note(note, true),
          Effect.as(Queue.offerAll(this.queue, this.placed(end, events)), events)
        )
      })
    )

  private placed(end: number, events: ReadonlyArray<RunEvent>): ReadonlyArray<RunEvent> {
    if (!this.isKept) return events
    return events.map((event) => {
      this.place = end === this.place.end ? { end, index: this.place.index + 1 } : { end, index: 1 }
      const place: Place = { out: [1, end, this.place.index] }
      return { ...event, place }
    })
  }
}
