/**
 * ApprovalView: formats a call that waits for approval, in full, as lines of text. Pure.
 *
 * Guarantees: nothing of the call is left out. Each line of the call's text starts with a bar, so that the text cannot
 * imitate other output. Characters with a misleading look are marked. The first line shows the number of lines, and the
 * last line shows the hash that an approval must name.
 */
import * as CallHash from "../../domain/CallHash.ts"
import { scopeWords } from "../../approvals/AnswerScope.ts"
import type { AnswerPreview, AskedCall } from "../../domain/Messages.ts"
import { lookalikes, visible } from "../../domain/VisibleText.ts"
import * as ConfigRows from "../projects/ConfigRows.ts"
import { count, paint } from "../render/Output.ts"
import { displayWidth } from "../render/Width.ts"

/** Puts text from outside on one line, with its special characters marked. */
export const line = (text: string): string => visible(text).replaceAll("\n", "\\u{a}")

/** Splits a line into rows that fit the terminal's width. No part of the text is lost. */
export const wrapped = (text: string, columns: number | null): ReadonlyArray<string> => {
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

const bars = (row: string, columns: number | null): ReadonlyArray<string> =>
  wrapped(row, columns === null ? null : Math.max(20, columns - 3)).map((part) => `│ ${part}`)

/** Lines of text from outside, each with a bar in front. */
export const barred = (text: string, columns: number | null): ReadonlyArray<string> =>
  visible(text)
    .split("\n")
    .flatMap((one) => bars(one, columns))

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

/** The command that approves the call and keeps the rule that was shown. */
export const keeping = ({ id }: AskedCall, { hash, scope }: AnswerPreview, offer: number): string =>
  `agentd approve ${line(id)} ${CallHash.short(hash)} --for ${scope} --rule ${offer}`

const MARKS = { run: "✓", ask: "?", deny: "✗" } as const

/** A row for each part of the call. A part that lacks leave says so, and is bold. */
const partRows = ({ parts = [] }: AskedCall, columns: number | null, colour: boolean): ReadonlyArray<string> =>
  parts.length === 0
    ? []
    : [
        "├ parts",
        ...parts.flatMap(({ reason, text, verdict }) => {
          const said = text === "" ? reason : `${line(text)}: ${line(reason)}`
          const rows = bars(`${MARKS[verdict]} ${said}${verdict === "ask" ? " ← lacks leave" : ""}`, columns)
          return verdict === "run" ? rows : rows.map((row) => paint(colour, "bold", row))
        })
      ]

/** The rules that an approval can keep, and how. */
export const offers = ({ offers: all = [], onlyHere, scopes = [] }: AskedCall): ReadonlyArray<string> =>
  all.length === 0
    ? []
    : [
        `It can be approved once, or ${scopes.map((scope) => `${scopeWords[scope]} (--for ${scope})`).join(", ")}:`,
        ...all.map(({ words }, index) => `  ${index + 1}  ${line(words)}`),
        ...(onlyHere === undefined ? [] : [`  No longer than that: ${line(onlyHere)}`]),
        "  With --for SCOPE --rule N, the command first shows what it would change."
      ]

/** The change that an approval with a rule would make. */
export const preview = ({ diff, file, offer, scope }: AnswerPreview, colour: boolean): ReadonlyArray<string> => [
  file === null
    ? `It would be kept ${scopeWords[scope]}, in its state: ${offer.rules.map(line).join(", ")}`
    : `It would be kept ${scopeWords[scope]}, in ${line(file)}:`,
  ...ConfigRows.diffLines(diff, colour)
]

/** The call as lines. `columns`: width of the terminal; null: lines are not wrapped. */
export const lines = (asked: AskedCall, columns: number | null, colour = false): ReadonlyArray<string> => {
  const { agent, folder, hash, input, reason, tool } = asked
  const parsed: unknown = JSON.parse(input)
  const body = fieldsOf(parsed).flatMap(([name, value]) => [`├ ${line(name)}`, ...barred(textOf(value), columns)])
  return [
    ...wrapped(`┌ ${line(agent)} asks for ${line(tool)} in ${line(folder)}: ${count(body.length, "line")}`, columns),
    ...body,
    ...(reason === null ? [] : ["├ why", ...barred(reason, columns)]),
    ...alphabets([tool, ...textsIn(parsed)].join("\n")),
    ...partRows(asked, columns, colour),
    `└ ${CallHash.short(hash)}`
  ]
}
