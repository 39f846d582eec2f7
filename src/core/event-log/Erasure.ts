/**
 * Erasure: decides which text in a payload can be erased, and computes the remaining payload. Pure, and without imports
 * at run time, because the log's thread loads this file.
 *
 * A payload is never erased as a whole, because folds need its ids, times, amounts and names of events. Only the text
 * in the fields listed here is erased: the value of each such field becomes `[erased]`. If a payload has none of these
 * fields, nothing in it can be erased.
 *
 * The hash of the original payload stays in the chain. The rune `rune.erasing` in the home stream stores the hash of
 * the remaining payload. Changes to the remaining payload are therefore detected as before.
 */

export const ERASED = "[erased]"

/** Path of an erasable field in a payload: the field names, outermost first. */
export type Path = ReadonlyArray<string>

/** An erasure, as its rune records it: the paths of the erased fields, never their text. */
export interface Erasing {
  readonly eventId: number
  readonly stream: string
  readonly fields: ReadonlyArray<Path>
  /** Hash of the remaining payload. */
  readonly left: string
  /** Name of the user who requested the erasure. */
  readonly by: string
}

/** Names of fields with text that users, agents or tools have written. */
const TEXTS = new Set(
  "text prompt input content finalOutput final_output partialOutput partial_output message output chunk question answer summary reason error detail description instructions title task_text body subject excerpt filename sha256".split(
    " "
  )
)
/** Fields with the arguments and results of tool calls: values of any shape, each of which is erased as a whole. */
const ANYTHING = new Set(["arguments", "output"])

/**
 * Maximum number of erasable fields in a payload. If a payload has more, nothing in it is erased. The program writes no
 * such payload.
 */
export const MAX_FIELDS = 1_000
const MAX_DEPTH = 12

const isText = (value: unknown): boolean => typeof value === "string" && value !== "" && value !== ERASED

export const textsIn = (payload: unknown, path: Path = []): ReadonlyArray<Path> => {
  if (typeof payload !== "object" || payload === null || path.length > MAX_DEPTH) return []
  return Object.entries(payload).flatMap(([name, value]) => {
    const here = [...path, name]
    if (ANYTHING.has(name) && value !== null && value !== ERASED && value !== "") return [here]
    if (typeof value === "string") return TEXTS.has(name) && isText(value) ? [here] : []
    return textsIn(value, here)
  })
}

/** The payload's JSON with `[erased]` as the value at each of these paths. */
export const without = (payload: string, fields: ReadonlyArray<Path>): string => {
  const left = JSON.parse(payload) as unknown
  for (const path of fields) {
    let at = left as { [name: string]: unknown } | undefined
    for (const name of path.slice(0, -1)) at = at?.[name] as typeof at
    const name = path.at(-1)
    if (at !== undefined && name !== undefined && Object.hasOwn(at, name)) at[name] = ERASED
  }
  return JSON.stringify(left)
}

export const valueAt = (payload: unknown, path: Path): unknown =>
  path.reduce<unknown>((at, name) => (at as { readonly [name: string]: unknown } | undefined)?.[name], payload)

/** Number of characters that an erasure removes. Shown to the user who must confirm the erasure. */
export const sizeOf = (payload: unknown, fields: ReadonlyArray<Path>): number =>
  fields.reduce((size, path) => {
    const value = valueAt(payload, path)
    return size + (typeof value === "string" ? value.length : JSON.stringify(value ?? null).length)
  }, 0)
