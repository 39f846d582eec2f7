/**
 * ClaudeRecord: reads Claude Code's output, one JSON object per line. Pure.
 *
 * Guarantees: no function fails on a record that is unknown, incomplete or of an unexpected shape:
 * missing values are empty.
 */
import { isReadonlyObject as isObject } from "effect/Predicate"

export type ClaudeRecord = { readonly [key: string]: unknown }

const NOTHING: ClaudeRecord = {}

/** The record in a line; undefined if the line is not a JSON object. */
export const parse = (line: string): ClaudeRecord | undefined => {
  try {
    const value: unknown = JSON.parse(line)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

export const text = (record: ClaudeRecord, key: string): string => {
  const value = record[key]
  return typeof value === "string" ? value : ""
}

export const number = (record: ClaudeRecord, key: string): number | undefined => {
  const value = record[key]
  return typeof value === "number" && Number.isFinite(value) ? value : undefined
}

export const inner = (record: ClaudeRecord, key: string): ClaudeRecord => {
  const value = record[key]
  return isObject(value) ? value : NOTHING
}

export const list = (record: ClaudeRecord, key: string): ReadonlyArray<ClaudeRecord> => {
  const value = record[key]
  return Array.isArray(value) ? value.filter(isObject) : []
}

export const texts = (record: ClaudeRecord, key: string): ReadonlyArray<string> => {
  const value = record[key]
  return Array.isArray(value) ? value.filter((one) => typeof one === "string") : []
}

/** Shortens text to one line of limited length, for a log or a mail. */
export const oneLine = (words: string): string =>
  words
    .replaceAll(/[\p{Cc}\s]+/gu, " ")
    .trim()
    .slice(0, 500)
