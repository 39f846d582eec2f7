/**
 * ApprovalView: a complete call that waits for approval, as lines. Pure.
 *
 * Guarantees: nothing of the call is left out; each foreign line starts with a bar, so that no
 * text can imitate a second entry; characters that do not show as themselves are marked; the
 * first line has the number of lines, the last one the hash that an approval names.
 */
import * as CallHash from "../../domain/CallHash.ts"
import type { AskedCall } from "../../domain/Messages.ts"
import { lookalikes, visible } from "../../domain/Visible.ts"
import { count } from "../render/Output.ts"
import { displayWidth } from "../render/Width.ts"

/** A foreign text on one line. */
export const line = (text: string): string => visible(text).replaceAll("\n", "\\u{a}")

/** Splits a line into rows that fit; nothing is cut off. */
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

/** A foreign text on its own lines, each with a bar before it. */
export const barred = (text: string, columns: number | null): ReadonlyArray<string> =>
  visible(text)
    .split("\n")
    .flatMap((one) => wrapped(one, columns === null ? null : Math.max(20, columns - 3)))
    .map((row) => `│ ${row}`)

const fieldsOf = (input: unknown): ReadonlyArray<readonly [name: string, value: unknown]> =>
  typeof input === "object" && input !== null && !Array.isArray(input) ? Object.entries(input) : [["input", input]]

const textOf = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value, null, 2))

const pointsOf = (word: string): string => [...word].map((one) => one.codePointAt(0)!.toString(16)).join(" ")

/** A line with the words that mix alphabets and the code points of their letters; empty if there are none. */
export const alphabets = (text: string): ReadonlyArray<string> => {
  const hints = lookalikes(text)
  return hints.length === 0
    ? []
    : [`├ letters of more than one alphabet: ${hints.map((word) => `${line(word)} (${pointsOf(word)})`).join(", ")}`]
}

/** All texts of a value, so that their letters are checked and not the escapes of its JSON. */
const textsIn = (value: unknown): ReadonlyArray<string> =>
  typeof value === "string"
    ? [value]
    : typeof value === "object" && value !== null
      ? Object.entries(value).flatMap(([name, inner]) => [name, ...textsIn(inner)])
      : []

/** The command that approves the shown call. */
export const command = ({ hash, id }: Pick<AskedCall, "hash" | "id">): string =>
  `agentd approve ${line(id)} ${CallHash.short(hash)}`

/** `columns`: width of the terminal; null: lines are not wrapped. */
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
