/**
 * WatchdogCheck: whether the daemon is healthy, for its watchdog. Pure: compares two observations.
 *
 * Guarantees: while the log is being read, the reading must have progressed since the last observation. After that,
 * runes that waited for the disk must have begun to become durable. A log thread that hangs with queued work is
 * unhealthy; an idle one is healthy. (A blocked event loop makes no observation, so it does not reset the watchdog.)
 */

export interface Look {
  /** True: everything is recovered. */
  readonly isReady: boolean
  /** Number of runes that were read at the start. */
  readonly read: number
  /** The newest rune with an assigned eventId, and the newest durable one. */
  readonly assigned: number
  readonly durable: number
}

/** `before`: the previous observation; undefined for the first one. */
export const isWell = (before: Look | undefined, now: Look): boolean => {
  if (before === undefined) return true
  if (!now.isReady) return now.read > before.read
  const waited = before.assigned > before.durable
  const waits = now.assigned > now.durable
  return !waited || !waits || now.durable > before.durable
}
