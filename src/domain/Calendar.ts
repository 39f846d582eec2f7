/**
 * Calendar: labels and boundaries of days and months in the local time zone of this machine. Pure except for the time
 * zone.
 *
 * Guarantees: a day begins at local midnight, even if daylight saving time begins or ends on that day.
 */

const two = (number: number) => `${number}`.padStart(2, "0")

/** Label of the day, such as "2026-11-24". `at`: ms since the epoch. */
export const dayOf = (at: number): string => {
  const date = new Date(at)
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`
}

/** Label of the hour, such as "2026-11-24T07". `at`: ms since the epoch. */
export const hourOf = (at: number): string => `${dayOf(at)}T${two(new Date(at).getHours())}`

/** Label of the month that contains the day, such as "2026-11". */
export const monthOf = (day: string): string => day.slice(0, 7)

/** Start of the day after `at`, in ms since the epoch. */
export const dayAfter = (at: number): number => {
  const date = new Date(at)
  return new Date(date.getFullYear(), date.getMonth(), date.getDate() + 1).getTime()
}

/**
 * Returns true if the day or month named by `label` is over on `day`. A label more than one day in the future also
 * counts as over, because a fast clock produced it.
 */
export const isOver = (label: string, day: string): boolean => {
  const next = dayOf(dayAfter(new Date(`${day}T12:00`).getTime()))
  return label === "" || label < day.slice(0, label.length) || label > next.slice(0, label.length)
}

/** Start of the month after `at`, in ms since the epoch. */
export const monthAfter = (at: number): number => {
  const date = new Date(at)
  return new Date(date.getFullYear(), date.getMonth() + 1, 1).getTime()
}
