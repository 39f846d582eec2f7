/**
 * HookBody: parses the JSON that a hook sends. A body longer than a megabyte arrives truncated.
 *
 * Guarantees: pure; a truncated object keeps the fields before the cut, and the part of a string before the cut. It
 * gets the field `agentd_cut`, so that the truncation can be reported.
 */
import { attempt } from "../config/Attempt.ts"

export const MAX_BYTES = 1024 * 1024

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
  // drop an incomplete escape sequence at the end
  const so = text.replace(/(?<!\\)((?:\\\\)*)\\(?:u[\da-f]{0,3})?$/i, "$1")
  try {
    return JSON.parse(isText && depth === 1 ? `${so}",${mark}` : whole)
  } catch {
    // the cut was inside a field's name
    return JSON.parse(whole)
  }
}

/** Parses a body. Throws like JSON.parse if the text is not JSON, whether truncated or whole. */
export const parse = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch (error) {
    if (Buffer.byteLength(text) < MAX_BYTES) throw error
    return mended(text)
  }
}

/** Whether the text is a complete JSON object. The sender may leave its pipe open after the object. */
export const isWhole = (text: string): boolean => attempt(() => typeof JSON.parse(text) === "object") ?? false
