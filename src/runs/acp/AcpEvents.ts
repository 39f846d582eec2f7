/**
 * AcpEvents: emits the events of a run in order, each with its position in the output of the
 * agent's process.
 *
 * Guarantees: events are emitted one batch at a time, each computed when it is emitted. For events
 * that the stream does not contain, a note is stored first, so that a later daemon can repeat them;
 * nothing is emitted in between. Output of terminal commands does not change the position.
 */
import { type Cause, Effect, Queue, Semaphore } from "effect"
import type { Place, RunEvent } from "../Backend.ts"
import type { RunProcess } from "../process/RunProcess.ts"
import type * as AcpHistory from "./AcpHistory.ts"
import type { Wire } from "./AcpWire.ts"

export type Events = Queue.Queue<RunEvent, Cause.Done>
export type Make = () => ReadonlyArray<RunEvent>

export class AcpEvents {
  private readonly queue: Events
  private readonly wire: Wire
  /** False if the run ends with the daemon, so that no event needs a position. */
  private readonly isKept: boolean
  /** Called after each emission. */
  private readonly changed: Effect.Effect<void>
  private readonly order = Semaphore.makeUnsafe(1)
  place: AcpHistory.Rest["place"]

  constructor(
    queue: Events,
    wire: Wire,
    { changed, isKept }: Pick<RunProcess, "isKept"> & { readonly changed: Effect.Effect<void> },
    place = { end: 0, index: 0 }
  ) {
    this.queue = queue
    this.wire = wire
    this.isKept = isKept
    this.changed = changed
    this.place = place
  }

  /** Emits events after all earlier events, without a position. */
  readonly aside = (make: Make): Effect.Effect<void> =>
    Effect.andThen(this.order.withPermit(Effect.suspend(() => Queue.offerAll(this.queue, make()))), this.changed)

  readonly tell = (make: Make): Effect.Effect<void> =>
    Effect.suspend(() => {
      const end = this.wire.taken()
      return this.aside(() => this.placed(end, make()))
    })

  /** Emits the events of the line that is being handled. */
  readonly hear = (make: Make): Effect.Effect<void> =>
    Effect.suspend(() => {
      const end = this.wire.seen()
      return this.aside(() => this.placed(end, make()))
    })

  /** Emits events that the stream does not contain. Returns the emitted events. */
  readonly noted = (note: AcpHistory.Note, make: Make): Effect.Effect<ReadonlyArray<RunEvent>> =>
    this.order
      .withPermit(
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
      .pipe(Effect.tap(this.changed))

  private placed(end: number, events: ReadonlyArray<RunEvent>): ReadonlyArray<RunEvent> {
    if (!this.isKept) return events
    return events.map((event) => {
      this.place = end === this.place.end ? { end, index: this.place.index + 1 } : { end, index: 1 }
      const place: Place = { out: [1, end, this.place.index] }
      return { ...event, place }
    })
  }
}
