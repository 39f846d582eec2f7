/**
 * LazyBuffer: stores lazy runes, for which no caller waits, until they are written with the next group. The buffer is
 * bounded: if it is full, the oldest rune is dropped. A `runes.dropped` rune in the stream of the dropped runes then
 * records their number.
 */
import type { Prepared } from "./Log.ts"
import * as LogRules from "./LogRules.ts"
import type { RuneDraft } from "./Rune.ts"

/** Maximum number of streams whose dropped runes are counted separately. All others count for the home stream. */
const MAX_STREAMS = 1_000

/** A prepared draft, and the time (ms since the epoch) at which the buffer received it. */
export interface Lazy {
  readonly draft: RuneDraft
  readonly prepared: Prepared
  readonly at: number
}

export class LazyBuffer {
  private waiting: Array<Lazy> = []
  private first = 0
  /** Number of runes pushed since the buffer was created. */
  given = 0
  private readonly dropped = new Map<string, number>()
  private readonly capacity: number
  private readonly home: string

  constructor(capacity: number, home: string) {
    this.capacity = capacity
    this.home = home
  }

  get size(): number {
    return this.waiting.length - this.first
  }

  /** Number of runes that are no longer in the buffer, because they were taken or dropped. */
  get gone(): number {
    return this.given - this.size
  }

  push(lazy: Lazy): void {
    this.given += 1
    this.waiting.push(lazy)
    if (this.size <= this.capacity) return
    const oldest = this.waiting[this.first]!
    this.first += 1
    this.count(oldest.draft.stream)
    if (this.first > this.capacity) this.compact()
  }

  /** Removes and returns the oldest runes, at most `most`. */
  take(most: number): ReadonlyArray<Lazy> {
    const taken = this.waiting.slice(this.first, this.first + most)
    this.first += taken.length
    this.compact()
    return taken
  }

  /** Returns a draft for each stream that has lost runes, with their number, and resets the counts to 0. */
  losses(): ReadonlyArray<RuneDraft> {
    if (this.dropped.size === 0) return []
    const losses = [...this.dropped].map(([stream, count]) => LogRules.dropped(stream, count))
    this.dropped.clear()
    return losses
  }

  private count(of: string): void {
    const stream = this.dropped.has(of) || this.dropped.size < MAX_STREAMS ? of : this.home
    this.dropped.set(stream, (this.dropped.get(stream) ?? 0) + 1)
  }

  private compact(): void {
    this.waiting = this.waiting.slice(this.first)
    this.first = 0
  }
}
