/**
 * SnapshotKeeper: saves new snapshots of streams while the program runs. A start then reads only the last runes of each
 * stream, even after a crash. After each `KEEP_EVERY` runes of a stream, these runes are applied to the last snapshots
 * of its folds. The states that the program uses are not touched.
 *
 * Guarantees: nothing waits for the keeper. The keeper handles one stream at a time, page by page. When the log closes,
 * it takes a limited time. Large states are saved only at a start that has read many runes, and when the log closes. At
 * other times they would block the event loop.
 */
import { Effect, Queue } from "effect"
import * as Monotonic from "../supervision/Monotonic.ts"
import { type StreamReader, WORTH_KEEPING } from "./StreamReader.ts"

/** Number of runes of a stream after which new snapshots of it are saved. */
export const KEEP_EVERY = 2_048
/** Maximum time (ms) to spend on saving snapshots when the log closes. */
const LAST = 1_000

export class SnapshotKeeper {
  private readonly reader: StreamReader
  /** Number of new runes of each stream since its snapshots were saved. */
  private readonly runes = new Map<string, number>()
  private readonly due = Effect.runSync(Queue.unbounded<string>())

  constructor(reader: StreamReader) {
    this.reader = reader
  }

  landed(stream: string): void {
    const count = this.runes.get(stream) ?? 0
    if (count === 0 && !this.reader.isFolded(stream)) return
    this.runes.set(stream, count + 1)
    // a stream is queued only once, because its count restarts only when its snapshots are saved
    if (count + 1 === KEEP_EVERY) Queue.offerUnsafe(this.due, stream)
  }

  readonly run: Effect.Effect<never> = Effect.forever(
    Effect.flatMap(Queue.take(this.due), (stream) => (this.reader.isLarge(stream) ? Effect.void : this.keep(stream)))
  )

  /** Saves snapshots when the log closes, starting with the streams that have the most new runes. */
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
