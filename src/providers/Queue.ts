/**
 * Queue: the agents that wait for one provider, and the one of them that finds out whether it
 * can be had again. In memory: after a restart each asks anew.
 *
 * Guarantees: while the provider is in trouble one agent at most is let through, and only once
 * its time has come; whoever is let through and tells nothing for a while loses the place to
 * the next.
 */

/** ms that the agent that finds out has until it tells something; its run may take long to start. */
export const LEASE = 60_000

export class Queue {
  private readonly waiting = new Map<string, () => void>()
  private probe: { readonly who: string; readonly until: number } | undefined = undefined

  wait(who: string, wake: () => void): void {
    this.waiting.set(who, wake)
  }

  /** Lets one through, if no other is finding out just now; `now` in ms, by a clock that nobody sets. */
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

  /** The agent has found out. */
  release(who: string): void {
    if (this.probe?.who === who) this.probe = undefined
  }

  /** All that wait look whether they may go on; who may not waits again. */
  wake(): void {
    const all = [...this.waiting.values()]
    this.waiting.clear()
    for (const wake of all) wake()
  }
}
