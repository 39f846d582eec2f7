/**
 * Excerpt: a bounded form of a value for the log: its head and its end, and the number of omitted characters. Pure.
 *
 * The limit is in bytes of the log, where a control character takes six: a rune that is too large would be refused, and
 * the fact lost.
 */

/** Bytes that a text takes in the log, without its quotes. */
export const sizeOf = (text: string): number => Buffer.byteLength(JSON.stringify(text)) - 2

const WORST = 6

const fits = (text: string, max: number): boolean =>
  text.length * WORST <= max || (text.length <= max && sizeOf(text) <= max)

/** The longest part of one end of a text that takes at most `max` bytes. */
const end = (whole: string, max: number, take: (count: number) => string): string => {
  let part = take(Math.min(whole.length, max))
  while (!fits(part, max)) part = take(Math.floor((part.length * max) / Math.max(sizeOf(part), max + 1)))
  return part
}

/** A text that takes at most about `max` bytes. */
export const text = (whole: string, max: number): string => {
  if (fits(whole, max)) return whole
  const half = Math.floor(max / 2)
  const head = end(whole, half, (count) => whole.slice(0, count))
  const tail = end(whole, half, (count) => whole.slice(whole.length - count))
  return `${head}\n… ${whole.length - head.length - tail.length} characters are left out …\n${tail}`
}

/** Any JSON value. A value that is too large becomes an excerpt of its JSON. */
export const excerpt = (value: unknown, max: number): unknown => {
  if (typeof value === "string") return text(value, max)
  const json = JSON.stringify(value)
  if (json === undefined) return null
  return Buffer.byteLength(json) <= max ? value : { excerpt: text(json, max) }
}
