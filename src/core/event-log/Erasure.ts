/**
 * Erasure: decides which texts of a payload can be erased, and what is left of the payload. Pure, and without imports
 * at run time: the log's thread loads this file.
 *
 * A payload is never erased as a whole: states are folds of its ids, times, amounts and names of a machine's events.
 * Only the texts of the fields that are named here are erased; each becomes `[erased]`. A payload that has only other
 * fields cannot be erased.
 *
 * The hash of the original payload stays in the chain. The rune `rune.erasing` of the home stream holds the hash of
 * what is left. So the rest of the payload is as safe from edits as before.
 */

export const ERASED = "[erased]"

/** The field names that lead from the payload to a text. */
export type Path = ReadonlyArray<string>

/** An erasure as its rune records it: where the texts were, never the texts. */
export interface Erasing {
  readonly eventId: number
  readonly stream: string
  readonly fields: ReadonlyArray<Path>
  /** The hash of what is left of the payload. */
  readonly left: string
  /** The name of the person who requested it. */
  readonly by: string
}

/** Fields whose texts people, agents and tools have written. */
const TEXTS = new Set(
  "text prompt input content finalOutput final_output partialOutput partial_output message output chunk question answer summary reason error detail description instructions title task_text body subject excerpt filename sha256".split(
    " "
  )
)
/** Fields with the arguments and results of tool calls, in any shape: the whole value is erased. */
const ANYTHING = new Set(["arguments", "output"])

/**
 * Maximum number of texts in a payload. The program writes no payload with more, so no text of such a payload is
 * erased.
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

/** The payload's JSON, with `[erased]` in place of the texts at these paths. */
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

/** Number of erased characters, for the person who must confirm the erasure. */
export const sizeOf = (payload: unknown, fields: ReadonlyArray<Path>): number =>
  fields.reduce((size, path) => {
    const value = valueAt(payload, path)
    return size + (typeof value === "string" ? value.length : JSON.stringify(value ?? null).length)
  }, 0)
