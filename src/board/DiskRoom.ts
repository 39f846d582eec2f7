/**
 * DiskRoom: computes how long the free disk space will last at the log's current growth, and whether that is too short.
 * Pure and small, because the CLI's quick entry loads it.
 */

export interface Room {
  readonly perDay?: number | null
  readonly free?: number | null
}

/** If fewer bytes than this are free, the user is notified, even if the log does not grow. */
const LITTLE = 1_000_000_000
/** If the disk will be full within this number of days, the user is notified, too. */
const DAYS = 7

/** Number of days until the disk is full. Undefined if it is unknown, or if the log does not grow. */
export const daysLeft = ({ free, perDay }: Room): number | undefined =>
  typeof free !== "number" || typeof perDay !== "number" || perDay <= 0 ? undefined : free / perDay

export const isShort = (room: Room): boolean =>
  (typeof room.free === "number" && room.free < LITTLE) || (daysLeft(room) ?? Number.POSITIVE_INFINITY) < DAYS

/** Text such as "for 3 days". Undefined if the time is unknown, or longer than ten years. */
export const lasts = (room: Room): string | undefined => {
  const days = daysLeft(room)
  if (days === undefined || days > 3_650) return undefined
  return days < 2 ? `for ${Math.floor(days * 24)} hours` : `for ${Math.floor(days)} days`
}
