/**
 * Strangers: connections that have not identified themselves yet. They have a limit of their own, separate from
 * admitted connections. So however many there are, hooks and commands still get a connection.
 *
 * Guarantees: pure. A new connection is never rejected because of those that exist: the one that has been silent for
 * longest is closed. New connections are read once before they can be closed. If many come at once, they exceed the
 * limit until then (the kernel's queue bounds them).
 */
export class Strangers<A> {
  private readonly max: number
  private readonly hangUp: (one: A) => void
  private readonly fresh = new Set<A>()
  /** Connections that were read once, the oldest first. */
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

  /** Notes that the connection was read once. */
  settle(one: A): void {
    if (!this.fresh.delete(one)) return
    this.silent.add(one)
    this.makeRoom()
  }

  /** Forgets a connection that is admitted or closed; true if it was a stranger. */
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
