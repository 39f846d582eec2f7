/**
 * RecentEvents: the newest durable runes in memory, and the bell that rings when there
 * are more. A subscriber at the end of the log reads here; one that has fallen behind
 * reads the store, and costs the writer nothing.
 */
import { Deferred, Effect } from "effect"
import type { Unit } from "./Log.ts"
import type { Payload, Rune } from "./Rune.ts"

/** Limits of the kept runes: whichever is reached first. */
const MAX_RUNES = 4096
const MAX_CHARS = 16 * 1024 * 1024
/** Dropped runes that are not worth the while of letting them go. */
const LEAST = 16

export class RecentEvents {
  private recent: Array<Rune> = []
  /** Of each rune's payload, in characters. */
  private sizes: Array<number> = []
  /** Where the kept ones begin in `recent`. */
  private first = 0
  private chars = 0
  private bell = Deferred.makeUnsafe<void>()
  private over = false
  /** The highest eventId that is durable. */
  head: number

  constructor(head: number) {
    this.head = head
  }

  /** The ids follow on the head without a gap. */
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
    // what was dropped is let go before it is a third of what is kept, however large it is
    if (this.first > LEAST && this.first * 4 > this.recent.length) {
      this.recent = this.recent.slice(this.first)
      this.sizes = this.sizes.slice(this.first)
      this.first = 0
    }
    this.ring()
  }

  /** All runes after a cursor, or undefined when the first of them is no longer kept. */
  since(after: number): ReadonlyArray<Rune> | undefined {
    const start = this.recent.length - (this.head - after)
    return start < this.first ? undefined : this.recent.slice(start)
  }

  /** Puts what is left of a payload in its place, where the rune is still kept. */
  replace(eventId: number, payload: Payload): void {
    const index = this.recent.length - 1 - (this.head - eventId)
    const rune = this.recent[index]
    if (index >= 0 && rune?.eventId === eventId) this.recent[index] = { ...rune, payload }
  }

  /** Waits until there is a rune after the cursor; false when there will be none. */
  beyond(cursor: number): Effect.Effect<boolean> {
    return Effect.suspend(() =>
      this.head > cursor
        ? Effect.succeed(true)
        : this.over
          ? Effect.succeed(false)
          : Effect.flatMap(Deferred.await(this.bell), () => this.beyond(cursor))
    )
  }

  /** The log is closed: who waits is let go. */
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
