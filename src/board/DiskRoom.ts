/**
 * DiskRoom: how long the disk lasts at the log's growth, and when that is too short. Pure, and light: the quick entry
 * loads it.
 */

export interface Room {
  readonly perDay?: number | null
  readonly free?: number | null
}

/** With less than so much room a person is told, whatever the growth is … */
const LITTLE = 1_000_000_000
/** … and with room for fewer days than these. */
const DAYS = 7

/** Days until the disk is full; undefined where that is not known, or the log does not grow. */
export const daysLeft = ({ free, perDay }: Room): number | undefined =>
  typeof free !== "number" || typeof perDay !== "number" || perDay <= 0 ? undefined : free / perDay

export const isShort = (room: Room): boolean =>
  (typeof room.free === "number" && room.free < LITTLE) || (daysLeft(room) ?? Number.POSITIVE_INFINITY) < DAYS

/** "for 3 days"; undefined where nothing is known, or it is long. */
export const lasts = (room: Room): string | undefined => {
  const days = daysLeft(room)
  if (days === undefined || days > 3_650) return undefined
  return days < 2 ? `for ${Math.floor(days * 24)} hours` : `for ${Math.floor(days)} days`
}
