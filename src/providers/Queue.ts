/**
 * Queue: the agents that wait for one provider, and the one that probes whether it works again. The queue is only in
 * memory: after a restart each agent asks again.
 *
 * Guarantees: while the provider is not available, at most one agent at a time is admitted, when a retry is due.
 * An admitted agent that reports nothing for a while is replaced by the next one.
 */

/** Time in which the probing agent must report a result, ms. It is long because a run may take long to start. */
export const LEASE = 60_000

export class Queue {
  private readonly waiting = new Map<string, () => void>()
  private probe: { readonly who: string; readonly until: number } | undefined = undefined

  wait(who: string, wake: () => void): void {
    this.waiting.set(who, wake)
  }

  /** Admits an agent, unless another is probing. `now` is in ms, on the monotonic clock. */
  enter(who: string, wake: () => void, now: number): boolean {
    const { probe } = this
    if (probe !== undefined && probe.who !== who && probe.until > now) {
      this.wait(who, wake)
      return false
    }
    this.waiting.delete(who)
    this.probe = { who, until: now + LEASE }
    return true
  }

  /** Called when the agent has reported its result: another agent may probe. */
  release(who: string): void {
    if (this.probe?.who === who) this.probe = undefined
  }

  /** Wakes all waiting agents, so that they ask again. Agents that are still not admitted wait again. */
  wake(): void {
    const all = [...this.waiting.values()]
    this.waiting.clear()
    for (const wake of all) wake()
  }
}
