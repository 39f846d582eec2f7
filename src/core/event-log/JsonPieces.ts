/**
 * JsonPieces: converts a large value to JSON in pieces, so that other work can run between them. The joined pieces
 * equal the result of `JSON.stringify`.
 */

/** Number of array elements in one piece. */
const ELEMENTS = 256

const isLong = (value: unknown): boolean => Array.isArray(value) && value.length > ELEMENTS

const holdsLong = (value: unknown): boolean =>
  typeof value === "object" &&
  value !== null &&
  (isLong(value) || (Array.isArray(value) ? value : Object.values(value)).some(holdsLong))

/** `plain`: a value that JSON can represent. */
export const pieces = function* (plain: unknown): Generator<string> {
  if (!holdsLong(plain)) {
    yield JSON.stringify(plain) ?? "null"
  } else if (Array.isArray(plain)) {
    yield "["
    if (plain.some(holdsLong)) {
      for (let at = 0; at < plain.length; at++) {
        if (at > 0) yield ","
        yield* pieces(plain[at])
      }
    } else {
      for (let at = 0; at < plain.length; at += ELEMENTS) {
        yield (at > 0 ? "," : "") + JSON.stringify(plain.slice(at, at + ELEMENTS)).slice(1, -1)
      }
    }
    yield "]"
  } else {
    let comma = "{"
    for (const [key, value] of Object.entries(plain as object)) {
      if (value === undefined) continue
      yield `${comma}${JSON.stringify(key)}:`
      yield* pieces(value)
      comma = ","
    }
    yield "}"
  }
}
