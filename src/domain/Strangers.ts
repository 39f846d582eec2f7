/**
 * Strangers: the connections that have said nothing yet by which they are let in. They hold a room of
 * their own, apart from those that are let in, so that however many there are, hooks and commands have
 * theirs.
 *
 * Guarantees: pure; one that comes is never turned away for those that are there: the one that has been
 * silent for longest goes. One that has just come is heard first: many that come at once are more than
 * the room, until each could be read once (the kernel's queue bounds them).
 */
export class Strangers<A> {
  private readonly max: number
  private readonly hangUp: (one: A) => void
  private readonly fresh = new Set<A>()
  /** Strangers that could be read once, the oldest first. */
  private readonly silent = new Set<A>()

  constructor(max: number, hangUp: (one: A) => void) {
    this.max = max
    this.hangUp = hangUp
  }

  get size(): number {
    return this.fresh.size + this.silent.size
  }

  enter(one: A): void {
    this.fresh.add(one)
    this.makeRoom()
  }

  /** Notes that a stranger could be read once. */
  settle(one: A): void {
    if (!this.fresh.delete(one)) return
    this.silent.add(one)
    this.makeRoom()
  }

  /** Forgets one that is let in, or gone; true where it was there. */
  leave(one: A): boolean {
    return this.fresh.delete(one) || this.silent.delete(one)
  }

  private makeRoom(): void {
    for (const oldest of this.silent) {
      if (this.size <= this.max) return
      this.silent.delete(oldest)
      this.hangUp(oldest)
    }
  }
}
