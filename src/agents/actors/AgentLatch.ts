/**
 * AgentLatch: a latch (a gate that fibers wait for) with little memory. Each agent has several latches, and usually
 * nothing waits for them.
 *
 * Guarantees: When a gate opens, every waiting fiber continues, even if the gate closes again at once.
 */
import { Effect, Latch } from "effect"

export class AgentLatch {
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
