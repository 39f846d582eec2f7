/**
 * HalfLines: what clients have sent of lines that are not whole yet, over all connections. Pure.
 *
 * Guarantees: together they are bounded: where they are too much, the connection goes whose half line is
 * the oldest; those that are older than their time are told.
 */
interface Half {
  readonly bytes: number
  /** ms */
  readonly since: number
}

const NEWLINE = 0x0a

export class HalfLines<A> {
  private readonly max: number
  /** By connection, the oldest first. */
  private readonly halves = new Map<A, Half>()
  private bytes = 0

  /** `max`: bytes of all together. */
  constructor(max: number) {
    this.max = max
  }

  get size(): number {
    return this.bytes
  }

  /** Bytes of the half line that it has begun. */
  of(one: A): number {
    return this.halves.get(one)?.bytes ?? 0
  }

  /** A part of what a connection sends; answers whether it ends a line. */
  take(one: A, part: Uint8Array | string, now: number): boolean {
    const end = typeof part === "string" ? part.lastIndexOf("\n") : part.lastIndexOf(NEWLINE)
    const before = this.halves.get(one)
    if (end >= 0) this.forget(one)
    const rest = part.length - end - 1
    const kept = end >= 0 ? undefined : before
    if (rest > 0 || kept !== undefined) {
      this.bytes += rest
      this.halves.set(one, { bytes: (kept?.bytes ?? 0) + rest, since: kept?.since ?? now })
    }
    return end >= 0
  }

  forget(one: A): void {
    this.bytes -= this.halves.get(one)?.bytes ?? 0
    this.halves.delete(one)
  }

  /** Connections to hang up on: begun before that time, or the oldest where all are too much. */
  overdue(before: number): ReadonlyArray<A> {
    const found: Array<A> = []
    let left = this.bytes
    for (const [one, { bytes, since }] of this.halves) {
      if (since > before && left <= this.max) break
      found.push(one)
      left -= bytes
    }
    return found
  }
}
