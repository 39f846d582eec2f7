/**
 * WatchdogCheck: decides for the watchdog whether the daemon is healthy, by comparing two observations. Pure.
 *
 * Guarantees: while the log is being read, the daemon is healthy only if the reading has progressed since the previous
 * observation. After that, it is healthy only if runes that waited for the disk have started to become durable. A log
 * thread that hangs with queued work is unhealthy; an idle log thread is healthy. (A blocked event loop makes no
 * observations, so it does not reset the watchdog.)
 */

export interface Look {
  /** True when everything has been recovered. */
  readonly isReady: boolean
  /** Number of runes that have been read since the start. */
  readonly read: number
  /** EventIds of the newest assigned rune and of the newest durable rune. */
  readonly assigned: number
  readonly durable: number
}

/** True if the daemon is healthy. `before`: the previous observation; undefined for the first one. */
export const isWell = (before: Look | undefined, now: Look): boolean => {
  if (before === undefined) return true
  if (!now.isReady) return now.read > before.read
  const waited = before.assigned > before.durable
  const waits = now.assigned > now.durable
  return !waited || !waits || now.durable > before.durable
}
