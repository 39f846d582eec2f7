/**
 * LazyBuffer: the runes that nobody waits for, until the writer takes them with
 * its next group. Bounded: when it is full the oldest is dropped, and a
 * `runes.dropped` rune in its stream says how many are missing.
 */
import { DAEMON_STREAM } from "./Rune.ts"
import { type ReadyDraft, readyOwn } from "./EventDraft.ts"

/** Streams whose losses are counted apart; those of further ones are told in the daemon's. */
const MAX_STREAMS = 1_000

export class LazyBuffer {
  private waiting: Array<ReadyDraft> = []
  private first = 0
  private readonly dropped = new Map<string, number>()
  private readonly capacity: number

  constructor(capacity: number) {
    this.capacity = capacity
  }

  get size(): number {
    return this.waiting.length - this.first
  }

  push(draft: ReadyDraft): void {
    this.waiting.push(draft)
    if (this.size <= this.capacity) return
    const oldest = this.waiting[this.first]!
    this.first += 1
    const stream = this.dropped.has(oldest.stream) || this.dropped.size < MAX_STREAMS ? oldest.stream : DAEMON_STREAM
    this.dropped.set(stream, (this.dropped.get(stream) ?? 0) + 1)
    if (this.first > this.capacity) this.compact()
  }

  /** The oldest ones, at most so many, after a word on what is missing before them. */
  take(most: number): ReadonlyArray<ReadyDraft> {
    if (this.size === 0 && this.dropped.size === 0) return []
    const losses = [...this.dropped].map(([stream, count]) =>
      readyOwn({ stream, kind: "runes.dropped", actor: "log/writer", payload: { count } })
    )
    this.dropped.clear()
    const taken = this.waiting.slice(this.first, this.first + most)
    this.first += taken.length
    this.compact()
    return [...losses, ...taken]
  }

  private compact(): void {
    this.waiting = this.waiting.slice(this.first)
    this.first = 0
  }
}
