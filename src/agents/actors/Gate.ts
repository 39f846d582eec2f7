/**
 * Gate: a latch of which each agent has several. Usually nothing waits at it, so it is one small object.
 *
 * Guarantees: when it opens, everything that waits continues, even if it closes again at once.
 */
import { Effect, Latch } from "effect"

export class Gate {
  private isUp: boolean
  /** Set while a fiber waits; stays set if the fiber gives up. */
  private latch: Latch.Latch | undefined = undefined

  constructor(isOpen: boolean) {
    this.isUp = isOpen
  }

  isOpen(): boolean {
    return this.isUp
  }

  openUnsafe(): void {
    this.isUp = true
    const { latch } = this
    this.latch = undefined
    latch?.openUnsafe()
  }

  closeUnsafe(): void {
    this.isUp = false
  }

  get open(): Effect.Effect<void> {
    return Effect.sync(() => this.openUnsafe())
  }

  get await(): Effect.Effect<void> {
    return Effect.suspend(() => (this.isUp ? Effect.void : (this.latch ??= Latch.makeUnsafe(false)).await))
  }
}
