/**
 * PendingConnections: manages connections that have not identified themselves yet. Their limit is separate from the
 * limit for admitted connections. Therefore hooks and commands can connect even if many connections have not identified
 * themselves.
 *
 * Guarantees: pure. A new connection is always accepted. If there are too many, the connection that has been silent for
 * the longest time is closed. Each connection is read at least once before it can be closed. New connections that have
 * not been read yet can exceed the limit, but the kernel's accept queue limits their number.
 */
export class PendingConnections<A> {
  private readonly max: number
  private readonly hangUp: (one: A) => void
  private readonly fresh = new Set<A>()
  /** Connections that were read once but have not identified themselves, oldest first. */
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

  /** Records that the connection was read once. From now on it can be closed to make room. */
  settle(one: A): void {
    if (!this.fresh.delete(one)) return
    this.silent.add(one)
    this.makeRoom()
  }

  /** Removes a connection that was admitted or closed. Returns false if it was not among the pending connections. */
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
