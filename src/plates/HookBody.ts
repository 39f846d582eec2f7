/**
 * HookBody: the JSON that a hook hands over, cut where it is longer than a megabyte.
 *
 * Guarantees: pure; of an object that was cut come the fields before the cut, a text that was cut through as far as it
 * came, and a mark, so that the cut is told of.
 */
import { attempt } from "../config/Attempt.ts"

export const MAX_BYTES = 1024 * 1024

/** The mark's field. */
export const CUT = "agentd_cut"

export const isCut = (body: unknown): boolean => typeof body === "object" && body !== null && CUT in body

const mended = (text: string): unknown => {
  let [depth, isText, end] = [0, false, 1]
  for (const { 0: sign, index } of text.matchAll(/\\.|["{}[\],]/gs)) {
    if (sign === '"') isText = !isText
    else if (isText) continue
    else if (sign === "{" || sign === "[") depth++
    else if (sign === "}" || sign === "]") depth--
    else if (depth === 1) end = index
  }
  const mark = `"${CUT}":true}`
  const whole = `${text.slice(0, end)}${end === 1 ? "" : ","}${mark}`
  // half of an escape stands for nothing
  const so = text.replace(/(?<!\\)((?:\\\\)*)\\(?:u[\da-f]{0,3})?$/i, "$1")
  try {
    return JSON.parse(isText && depth === 1 ? `${so}",${mark}` : whole)
  } catch {
    // it was a field's name that was cut through
    return JSON.parse(whole)
  }
}

/** Throws as JSON.parse does where it is no JSON, cut or whole. */
export const parse = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch (error) {
    if (Buffer.byteLength(text) < MAX_BYTES) throw error
    return mended(text)
  }
}

/** Whether it is an object that is whole: a session may leave its end open. */
export const isWhole = (text: string): boolean => attempt(() => typeof JSON.parse(text) === "object") ?? false
