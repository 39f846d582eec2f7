/**
 * SenderQueue: the senders that wait for room in full mailboxes.
 *
 * Guarantees: when a mailbox has room, the sender that has waited longest is admitted. A sender that sends again goes
 * to the end of the queue. An interrupted sender leaves the queue. Each sender is notified once, and the notification
 * says whether its message was accepted.
 */

export interface Waiter {
  readonly item: unknown
  /** Called when the wait ends. `ok` is true if the mailbox has accepted the message. */
  readonly taken: (ok: boolean) => void
}

/** Type parameter `M`: the actors that own the mailboxes. */
export class SenderQueue<M> {
  private readonly lines = new Map<M, Array<Waiter>>()

  get isEmpty(): boolean {
    return this.lines.size === 0
  }

  get members(): ReadonlyArray<M> {
    return [...this.lines.keys()]
  }

  /** Adds a sender to the end of the queue. The returned function ends its wait. */
  wait(member: M, waiter: Waiter): () => void {
    const known = this.lines.get(member)
    if (known === undefined) this.lines.set(member, [waiter])
    else known.push(waiter)
    return () => {
      const line = this.lines.get(member)
      const index = line?.indexOf(waiter) ?? -1
      if (line === undefined || index < 0) return
      line.splice(index, 1)
      if (line.length === 0) this.lines.delete(member)
    }
  }

  admit(member: M, hasRoom: () => boolean, take: (item: unknown) => void): void {
    const line = this.lines.get(member)
    if (line === undefined) return
    while (line.length > 0 && hasRoom()) {
      const waiter = line.shift()!
      take(waiter.item)
      waiter.taken(true)
    }
    if (line.length === 0) this.lines.delete(member)
  }

  /** Ends the waits of all senders to the actors for which `isOne` is true. Their messages count as not accepted. */
  refuse(isOne: (member: M) => boolean): void {
    for (const member of this.members) {
      if (!isOne(member)) continue
      const line = this.lines.get(member)!
      this.lines.delete(member)
      for (const waiter of line) waiter.taken(false)
    }
  }
}
