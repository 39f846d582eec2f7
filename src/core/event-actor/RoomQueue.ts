/**
 * RoomQueue: senders that wait for room in a mailbox.
 *
 * Guarantees: the sender that waited longest gets the room. A sender that sends again goes to the
 * end of the line. An interrupted sender leaves the line. Each sender is called once, with whether
 * its message was taken.
 */

export interface Waiter {
  readonly item: unknown
  /** Called with false if the message was not taken and never will be. */
  readonly taken: (ok: boolean) => void
}

/** `M` is the type of the owners of mailboxes (members). */
export class RoomQueue<M> {
  private readonly lines = new Map<M, Array<Waiter>>()

  get isEmpty(): boolean {
    return this.lines.size === 0
  }

  get members(): ReadonlyArray<M> {
    return [...this.lines.keys()]
  }

  /** Adds a waiter. The returned function ends its wait. */
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

  /** Admits waiters while there is room. */
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

  /** Refuses the waiters of these members: there will be no room for them. */
  refuse(isOne: (member: M) => boolean): void {
    for (const member of this.members) {
      if (!isOne(member)) continue
      const line = this.lines.get(member)!
      this.lines.delete(member)
      for (const waiter of line) waiter.taken(false)
    }
  }
}
