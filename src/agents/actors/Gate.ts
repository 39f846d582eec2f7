/**
 * Gate: a latch as each agent has some of: nearly always nobody waits at it, and then it is one small object.
 *
 * Guarantees: all who wait while it is closed go on when it opens, even if it is closed again at once.
 */
import { Effect, Latch } from "effect"

export class Gate {
  private isUp: boolean
  /** While somebody waits, or has given up to wait. */
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
