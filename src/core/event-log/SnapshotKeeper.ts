/**
 * SnapshotKeeper: keeps the snapshots of streams near their ends while the program runs, so
 * that a start reads a short tail, also after a crash. After so many runes of a stream its
 * folds go on from their snapshots over them, apart from the states that live.
 *
 * Guarantees: nothing waits for the keeper; one stream at a time, page by page; at the
 * log's end it takes a bounded time. Large states, which would hold up the event loop, are
 * kept at a start that has read much, and at the log's end.
 */
import { Effect, Queue } from "effect"
import * as Monotonic from "../supervision/Monotonic.ts"
import { type StreamReader, WORTH_KEEPING } from "./StreamReader.ts"

/** Runes of a stream after which its snapshots are kept anew. */
export const KEEP_EVERY = 2_048
/** ms that the end of the log may take for it. */
const LAST = 1_000

export class SnapshotKeeper {
  private readonly reader: StreamReader
  /** Runes by stream since its snapshots were kept. */
  private readonly runes = new Map<string, number>()
  private readonly due = Effect.runSync(Queue.unbounded<string>())

  constructor(reader: StreamReader) {
    this.reader = reader
  }

  landed(stream: string): void {
    const count = this.runes.get(stream) ?? 0
    if (count === 0 && !this.reader.isFolded(stream)) return
    this.runes.set(stream, count + 1)
    // each stream is in the queue once: the count goes back to nothing when its turn comes
    if (count + 1 === KEEP_EVERY) Queue.offerUnsafe(this.due, stream)
  }

  /** Runs beside everything else. */
  readonly run: Effect.Effect<never> = Effect.forever(
    Effect.flatMap(Queue.take(this.due), (stream) => (this.reader.isLarge(stream) ? Effect.void : this.keep(stream)))
  )

  /** Keeps the snapshots that are due at the end, those with most changes first. */
  readonly last: Effect.Effect<void> = Effect.gen({ self: this }, function* () {
    const until = (yield* Monotonic.now) + LAST
    const changed = [...this.runes].filter(([, count]) => count >= WORTH_KEEPING).toSorted(([, a], [, b]) => b - a)
    for (const [stream] of changed) {
      if ((yield* Monotonic.now) > until) return
      yield* this.keep(stream, until)
    }
  })

  private keep(stream: string, until?: number): Effect.Effect<void> {
    this.runes.delete(stream)
    return this.reader
      .refresh(stream, until)
      .pipe(Effect.catch((error) => Effect.logWarning(`the snapshots of ${stream} cannot be kept: ${error.message}`)))
  }
}
