/**
 * ApprovalView: formats a call that waits for approval, in full, as lines of text. Pure.
 *
 * Guarantees: nothing of the call is left out. Each line of the call's text starts with a bar, so that the text cannot
 * imitate other output. Characters with a misleading look are marked. The first line shows the number of lines, and the
 * last line shows the hash that an approval must name.
 */
import * as CallHash from "../../domain/CallHash.ts"
import type { AskedCall } from "../../domain/Messages.ts"
import { lookalikes, visible } from "../../domain/VisibleText.ts"
import { count } from "../render/Output.ts"
import { displayWidth } from "../render/Width.ts"

/** Puts text from outside on one line, with its special characters marked. */
export const line = (text: string): string => visible(text).replaceAll("\n", "\\u{a}")

/** Splits a line into rows that fit the terminal's width. No part of the text is lost. */
const wrapped = (text: string, columns: number | null): ReadonlyArray<string> => {
  if (columns === null || displayWidth(text) <= columns) return [text]
  const rows: Array<string> = []
  let row = ""
  let width = 0
  for (const character of text) {
    const cells = character < "\u007f" ? 1 : displayWidth(character)
    if (width + cells > columns && row !== "") {
      rows.push(row)
      ;[row, width] = ["", 0]
    }
    row += character
    width += cells
  }
  return [...rows, row]
}

/** Lines of text from outside, each with a bar in front. */
export const barred = (text: string, columns: number | null): ReadonlyArray<string> =>
  visible(text)
    .split("\n")
    .flatMap((one) => wrapped(one, columns === null ? null : Math.max(20, columns - 3)))
    .map((row) => `│ ${row}`)

const fieldsOf = (input: unknown): ReadonlyArray<readonly [name: string, value: unknown]> =>
  typeof input === "object" && input !== null && !Array.isArray(input) ? Object.entries(input) : [["input", input]]

const textOf = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value, null, 2))

const pointsOf = (word: string): string => [...word].map((one) => one.codePointAt(0)!.toString(16)).join(" ")

/**
 * A line that names words with letters of several alphabets, with the code points of the letters. Empty if there are no
 * such words.
 */
export const alphabets = (text: string): ReadonlyArray<string> => {
  const hints = lookalikes(text)
  return hints.length === 0
    ? []
    : [`├ letters of more than one alphabet: ${hints.map((word) => `${line(word)} (${pointsOf(word)})`).join(", ")}`]
}

/** All strings in a value. Their letters are checked directly, because JSON could hide them as escapes. */
const textsIn = (value: unknown): ReadonlyArray<string> =>
  typeof value === "string"
    ? [value]
    : typeof value === "object" && value !== null
      ? Object.entries(value).flatMap(([name, inner]) => [name, ...textsIn(inner)])
      : []

/** The command that approves the displayed call. */
export const command = ({ hash, id }: Pick<AskedCall, "hash" | "id">): string =>
  `agentd approve ${line(id)} ${CallHash.short(hash)}`

/** The call as lines. `columns`: width of the terminal; null: lines are not wrapped. */
export const lines = (asked: AskedCall, columns: number | null): ReadonlyArray<string> => {
  const { agent, folder, hash, input, reason, tool } = asked
  const parsed: unknown = JSON.parse(input)
  const body = fieldsOf(parsed).flatMap(([name, value]) => [`├ ${line(name)}`, ...barred(textOf(value), columns)])
  return [
    `┌ ${line(agent)} asks for ${line(tool)} in ${line(folder)}: ${count(body.length, "line")}`,
    ...body,
    ...(reason === null ? [] : ["├ why", ...barred(reason, columns)]),
    ...alphabets([tool, ...textsIn(parsed)].join("\n")),
    `└ ${CallHash.short(hash)}`
  ]
}
