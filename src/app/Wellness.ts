/**
 * Wellness: whether the daemon is well, for who watches it. Pure: two looks are compared.
 *
 * Guarantees: while the log is read, its reading has gone on since the last look; after that, what waited for the
 * disk then has begun to be durable. A log's thread that hangs with work before it is no health, one that has
 * nothing to do is. (A blocked event loop looks at nothing, and so feeds no watchdog.)
 */

export interface Look {
  /** All is recovered. */
  readonly isReady: boolean
  /** Runes that were read at the start. */
  readonly read: number
  /** The newest rune that has its place, and the newest that is durable. */
  readonly assigned: number
  readonly durable: number
}

/** `before`: the look before this one; none at the first. */
export const isWell = (before: Look | undefined, now: Look): boolean => {
  if (before === undefined) return true
  if (!now.isReady) return now.read > before.read
  const waited = before.assigned > before.durable
  const waits = now.assigned > now.durable
  return !waited || !waits || now.durable > before.durable
}
