/**
 * Calendar: days and months in the local time of this machine. Pure except for the machine's time zone.
 *
 * Guarantees: a day begins at local midnight, also when the clocks change.
 */

const two = (number: number) => `${number}`.padStart(2, "0")

/** `at`: ms since the epoch. "2026-11-24". */
export const dayOf = (at: number): string => {
  const date = new Date(at)
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`
}

/** "2026-11-24T07". */
export const hourOf = (at: number): string => `${dayOf(at)}T${two(new Date(at).getHours())}`

/** "2026-11". */
export const monthOf = (day: string): string => day.slice(0, 7)

/** When the next day begins, ms since the epoch. */
export const dayAfter = (at: number): number => {
  const date = new Date(at)
  return new Date(date.getFullYear(), date.getMonth(), date.getDate() + 1).getTime()
}

/**
 * Whether the day or month is over on `day`. A label later than the next day counts as over, too: a clock that was
 * ahead began it.
 */
export const isOver = (label: string, day: string): boolean => {
  const next = dayOf(dayAfter(new Date(`${day}T12:00`).getTime()))
  return label === "" || label < day.slice(0, label.length) || label > next.slice(0, label.length)
}

/** When the next month begins, ms since the epoch. */
export const monthAfter = (at: number): number => {
  const date = new Date(at)
  return new Date(date.getFullYear(), date.getMonth() + 1, 1).getTime()
}
