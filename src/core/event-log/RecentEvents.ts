/**
 * RecentEvents: keeps the newest durable runes in memory, and wakes subscribers when new runes arrive. A subscriber at
 * the end of the log reads from memory. A subscriber that has fallen behind reads from the store, without any cost for
 * the writer.
 */
import { Deferred, Effect } from "effect"
import type { Unit } from "./Log.ts"
import type { Payload, Rune } from "./Rune.ts"

/** Limits of the runes in memory: their number, and the characters of their payloads. The first one reached applies. */
const MAX_RUNES = 4096
const MAX_CHARS = 16 * 1024 * 1024
/** Maximum number of dropped runes that may stay in the array, because removing so few is not worth a copy. */
const LEAST = 16

export class RecentEvents {
  private recent: Array<Rune> = []
  /** Length of each rune's payload, in characters. */
  private sizes: Array<number> = []
  /** Index in `recent` of the oldest rune that is not dropped. */
  private first = 0
  private chars = 0
  private bell = Deferred.makeUnsafe<void>()
  private over = false
  /** The highest eventId that is durable. */
  head: number

  constructor(head: number) {
    this.head = head
  }

  /** Adds runes. Their ids must follow the head without a gap. */
  publish(units: ReadonlyArray<Unit>): void {
    for (const { runes, texts } of units) {
      for (let index = 0; index < runes.length; index++) {
        this.recent.push(runes[index]!)
        const size = texts[index]!.length
        this.sizes.push(size)
        this.chars += size
      }
      this.head += runes.length
    }
    while (this.recent.length - this.first > MAX_RUNES || this.chars > MAX_CHARS) {
      this.chars -= this.sizes[this.first]!
      this.first += 1
    }
    // remove the dropped runes from the arrays when their number exceeds a third of the remaining runes
    if (this.first > LEAST && this.first * 4 > this.recent.length) {
      this.recent = this.recent.slice(this.first)
      this.sizes = this.sizes.slice(this.first)
      this.first = 0
    }
    this.ring()
  }

  /** Returns all runes after a cursor; undefined when the first of them is no longer in memory. */
  since(after: number): ReadonlyArray<Rune> | undefined {
    const start = this.recent.length - (this.head - after)
    return start < this.first ? undefined : this.recent.slice(start)
  }

  /** Replaces the payload of a rune after an erasure, if the rune is still in memory. */
  replace(eventId: number, payload: Payload): void {
    const index = this.recent.length - 1 - (this.head - eventId)
    const rune = this.recent[index]
    if (index >= 0 && rune?.eventId === eventId) this.recent[index] = { ...rune, payload }
  }

  /** Waits until there is a rune after the cursor. Returns false if there will be none, because the log is closed. */
  beyond(cursor: number): Effect.Effect<boolean> {
    return Effect.suspend(() =>
      this.head > cursor
        ? Effect.succeed(true)
        : this.over
          ? Effect.succeed(false)
          : Effect.flatMap(Deferred.await(this.bell), () => this.beyond(cursor))
    )
  }

  /** Marks the log as closed and releases all waiting subscribers. */
  close(): void {
    this.over = true
    this.ring()
  }

  private ring(): void {
    const bell = this.bell
    this.bell = Deferred.makeUnsafe<void>()
    Deferred.doneUnsafe(bell, Effect.void)
  }
}
