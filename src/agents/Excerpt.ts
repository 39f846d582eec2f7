/**
 * Excerpt: a value as it may be kept: bounded, with its head and its end, and the
 * number of characters that are left out. Pure.
 */

/** A text of at most about `max` characters. */
export const text = (whole: string, max: number): string => {
  if (whole.length <= max) return whole
  const half = Math.floor(max / 2)
  return `${whole.slice(0, half)}\n… ${whole.length - 2 * half} characters are left out …\n${whole.slice(-half)}`
}

/** Any JSON value; one that is too large becomes an excerpt of its JSON. */
export const excerpt = (value: unknown, max: number): unknown => {
  if (typeof value === "string") return text(value, max)
  const json = JSON.stringify(value)
  if (json === undefined) return null
  return json.length <= max ? value : { excerpt: text(json, max) }
}
