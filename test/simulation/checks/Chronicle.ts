/** Chronicle: the durable runes, in the order of the log. */
import type { Rune } from "../../../src/core/event-log/Rune.ts"
import type { Check } from "./Check.ts"

export class Chronicle implements Check {
  /** The rune of id n lies at n - 1: ids have no gap. */
  readonly runes: Array<Rune> = []

  rune(rune: Rune): void {
    this.runes[rune.eventId - 1] = rune
  }

  at(eventId: number): Rune | undefined {
    return this.runes[eventId - 1]
  }

  get head(): number {
    return this.runes.length
  }
}
