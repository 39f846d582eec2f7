/**
 * Output: formats text for the terminal: colours, columns, ages, times. Pure.
 *
 * Guarantees: columns are aligned, whatever their cells contain. No text of an agent reaches the terminal as a control
 * sequence.
 */
import type { Look } from "../../domain/StatusWords.ts"
import { displayWidth } from "./Width.ts"

export type Colour = "red" | "green" | "yellow" | "cyan" | "blue" | "magenta" | "dim" | "bold"

const codes: { readonly [colour in Colour]: string } = {
  red: "31",
  green: "32",
  yellow: "33",
  cyan: "36",
  blue: "34",
  magenta: "35",
  dim: "2",
  bold: "1"
}

/**
 * Matches control characters, lone surrogates, and characters that are invisible or change the reading direction. Word
 * and emoji joiners are not matched.
 */
const HARMFUL = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]|(?![\u200c\u200d])\p{Cf}/gu

/** Colours a text, and replaces its control characters. */
export const paint = (on: boolean, colour: Colour | undefined, text: string): string => {
  const harmless = text.replaceAll(HARMFUL, "·")
  return on && colour !== undefined && text !== "" ? `\u001b[${codes[colour]}m${harmless}\u001b[0m` : harmless
}

/** The text on a single line, with control characters replaced. An agent's text can contain control characters. */
export const plain = (text: string): string => text.replaceAll(/\s+/gu, " ").replaceAll(HARMFUL, "·").trim()

/** Like `plain`, but keeps the lines and spaces of the text. */
export const plainLines = (text: string): ReadonlyArray<string> =>
  text.split(/\r\n|[\n\v\f\r\u0085\u2028\u2029]/u).map((line) => line.replaceAll("\t", "    ").replaceAll(HARMFUL, "·"))

/** A number with its noun, such as `1 rune` or `2 runes`. */
export const count = (amount: number, noun: string): string => `${amount} ${noun}${amount === 1 ? "" : "s"}`

/** Cuts a text to at most `columns` cells; a cut text ends with "…". */
export const cut = (text: string, columns: number): string => {
  if (displayWidth(text) <= columns) return text
  let kept = ""
  let width = 0
  for (const char of text) {
    width += displayWidth(char)
    if (width > columns - 1) break
    kept += char
  }
  return `${kept}…`
}

export interface Cell {
  readonly text: string
  readonly colour?: Colour | undefined
  readonly right?: boolean
  /** Text at the end of the cell that is never cut. Only allowed in the last column. */
  readonly tail?: string
}

export interface TableOptions {
  readonly colour: boolean
  /** Width of the terminal, to which the last column is cut; null if nothing is to be cut. */
  readonly columns: number | null
  /** Width for the last column, if its cells need so much. Columns in `spare` are dropped until it is available. */
  readonly room?: number
  /** Headings of the columns that can be dropped on a narrow terminal, in this order. */
  readonly spare?: ReadonlyArray<string>
  /** State directory that commands in the table must name; null for the default one. */
  readonly world?: string | null
}

const GAP = "  "
/** Default width for the last column. It contains the most important text, so other columns are dropped first. */
const LAST_COLUMN = 32

/** Formats a table. The last column gets the width that the others leave. */
export const table = (
  head: ReadonlyArray<string>,
  rows: ReadonlyArray<ReadonlyArray<Cell>>,
  options: TableOptions
): ReadonlyArray<string> => {
  const all: ReadonlyArray<ReadonlyArray<Cell>> = [head.map((text) => ({ text, colour: "dim" as const })), ...rows]
  const widths = head.map((_, column) => Math.max(...all.map((row) => displayWidth(row[column]?.text ?? ""))))
  const last = head.length - 1
  const before = widths.slice(0, last).reduce((sum, width) => sum + width + GAP.length, 0)
  const dropped = head.indexOf(options.spare?.find((name) => head.includes(name)) ?? "")
  const needed = Math.max(
    ...all.map((row) => displayWidth(row[last]?.text ?? "") + displayWidth(row[last]?.tail ?? ""))
  )
  const room = Math.min(options.room ?? LAST_COLUMN, needed)
  if (options.columns !== null && dropped !== -1 && before + room > options.columns) {
    const kept = <A>(row: ReadonlyArray<A>) => row.filter((_, column) => column !== dropped)
    return table(kept(head), rows.map(kept), options)
  }
  return all.map((row) =>
    row
      .map((cell, column) => {
        if (column === last) {
          const room = options.columns === null ? undefined : Math.max(8, options.columns - before)
          const tail = cell.tail ?? ""
          const left = room === undefined ? undefined : Math.max(8, room - displayWidth(tail))
          return paint(options.colour, cell.colour, left === undefined ? cell.text : cut(cell.text, left)) + tail
        }
        const padding = " ".repeat(widths[column]! - displayWidth(cell.text))
        const text = paint(options.colour, cell.colour, cell.text)
        return rows.length > 0 && rows[0]![column]?.right === true ? padding + text : text + padding
      })
      .join(GAP)
      .trimEnd()
  )
}

/** A duration in its largest unit, such as 42s, 3m, 5h or 12d. */
export const age = (millis: number): string => {
  const seconds = Math.max(0, Math.floor(millis / 1000))
  if (seconds < 60) return `${seconds}s`
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m`
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)}h`
  return `${Math.floor(seconds / 86_400)}d`
}

const two = (value: number): string => String(value).padStart(2, "0")

/** A local time of day. The date is added if it is not the date of `now`. */
export const clock = (at: number, now: number): string => {
  const date = new Date(at)
  const time = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`
  return date.toDateString() === new Date(now).toDateString()
    ? time
    : `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${time}`
}

export const lookColour: { readonly [colour in Look["colour"]]: Colour } = {
  you: "yellow",
  failed: "red",
  work: "cyan",
  quiet: "dim",
  good: "green"
}

const stateColours: { readonly [state: string]: Colour } = {
  Running: "green",
  Initializing: "cyan",
  BuildingPrompt: "cyan",
  Spawning: "cyan",
  SessionComplete: "cyan",
  Interrupting: "yellow",
  CoolingDown: "yellow",
  Stopped: "red",
  active: "green",
  paused: "yellow",
  suspended: "red",
  closing: "yellow",
  closed: "dim",
  archived: "dim"
}

export const stateColour = (state: string): Colour | undefined => stateColours[state]

/** Why a command that needs a complete list does nothing while the daemon starts. */
export const READING = { message: "The daemon is still reading its log.", remedy: "Try again in a moment." }
/** Note about a list of a daemon that has just started. */
export const INCOMPLETE = "The daemon is still reading its log, so this list is not complete."
