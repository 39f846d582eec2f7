/**
 * LogExcerpt: shortens a value for the log to its start, its end and the number of omitted characters. Pure.
 *
 * The limit is the size in the log, in bytes: a control character takes six. The log would reject a rune that is too
 * large, and its contents would be lost.
 */

/** Size of text in the log, bytes, without its quotes. */
export const sizeOf = (text: string): number => Buffer.byteLength(JSON.stringify(text)) - 2

const WORST = 6

const fits = (text: string, max: number): boolean =>
  text.length * WORST <= max || (text.length <= max && sizeOf(text) <= max)

/**
 * The longest part of a string that fits into `max` bytes. `take` returns a part (from the start or the end) by its
 * length.
 */
const end = (whole: string, max: number, take: (count: number) => string): string => {
  let part = take(Math.min(whole.length, max))
  while (!fits(part, max)) part = take(Math.floor((part.length * max) / Math.max(sizeOf(part), max + 1)))
  return part
}

/** Shortens text to about `max` bytes. */
export const text = (whole: string, max: number): string => {
  if (fits(whole, max)) return whole
  const half = Math.floor(max / 2)
  const head = end(whole, half, (count) => whole.slice(0, count))
  const tail = end(whole, half, (count) => whole.slice(whole.length - count))
  return `${head}\n… ${whole.length - head.length - tail.length} characters are left out …\n${tail}`
}

/** Shortens any JSON value. A value that is too large is replaced by an excerpt of its JSON text. */
export const excerpt = (value: unknown, max: number): unknown => {
  if (typeof value === "string") return text(value, max)
  const json = JSON.stringify(value)
  if (json === undefined) return null
  return Buffer.byteLength(json) <= max ? value : { excerpt: text(json, max) }
}
