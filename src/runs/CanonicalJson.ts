/**
 * CanonicalJson: serializes equal values to the same JSON text, with sorted names and no spaces. Pure. Names such as
 * `__proto__` are treated like any other.
 */
import { attempt } from "../config/Attempt.ts"

/**
 * The JSON text of a value. Throws if the value is not valid JSON: a number that is not finite, or a value that is
 * nested too deeply.
 */
export const canonical = (value: unknown): string => {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`
  if (typeof value === "object" && value !== null) {
    const fields = Object.entries(value).filter(([, field]) => field !== undefined)
    const sorted = fields.toSorted(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
    return `{${sorted.map(([name, field]) => `${JSON.stringify(name)}:${canonical(field)}`).join(",")}}`
  }
  if (typeof value === "number" && !Number.isFinite(value)) throw new Error("a number in JSON must be finite")
  return JSON.stringify(value) ?? "null"
}

/** Whether two values are equal as JSON. False if that cannot be determined. */
export const isSame = (a: unknown, b: unknown): boolean => attempt(() => canonical(a) === canonical(b)) ?? false
