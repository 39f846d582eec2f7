/**
 * PlainJson: checks whether a value stays the same when it is converted to JSON and parsed again. If so, the value
 * itself can be folded instead of the parsed text, at a tenth of the cost.
 */

/** Returns false for NaN, -0, undefined, functions, dates, class instances, and all values that JSON changes. */
export const isPlainJson = (value: unknown): boolean => {
  switch (typeof value) {
    case "string":
    case "boolean":
      return true
    case "number":
      return Number.isFinite(value) && !Object.is(value, -0)
    case "object":
      return value === null || (Array.isArray(value) ? isPlainArray(value) : isPlainObject(value))
    default:
      return false
  }
}

const isPlainArray = (values: ReadonlyArray<unknown>): boolean => {
  // a loop by index also visits holes in the array, which read as undefined
  for (let index = 0; index < values.length; index++) if (!isPlainJson(values[index])) return false
  return true
}

const isPlainObject = (value: object): boolean => {
  if (Object.getPrototypeOf(value) !== Object.prototype) return false
  for (const key in value) if (!isPlainJson((value as { readonly [key: string]: unknown })[key])) return false
  return true
}
