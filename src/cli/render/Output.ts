/**
 * Output: how things look to a person: colours, columns, ages, times. Pure.
 *
 * Guarantees: columns line up whatever is in them; nothing that an agent wrote
 * reaches the terminal as a control sequence.
 */
import type { Look } from "../../domain/Words.ts"
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

/** Controls, halves of characters, and what is invisible or turns the reading direction; joiners belong to words and emoji. */
const HARMFUL = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]|(?![\u200c\u200d])\p{Cf}/gu

/** A text in a colour; no control of others is left in it. */
export const paint = (on: boolean, colour: Colour | undefined, text: string): string => {
  const harmless = text.replaceAll(HARMFUL, "·")
  return on && colour !== undefined && text !== "" ? `\u001b[${codes[colour]}m${harmless}\u001b[0m` : harmless
}

/** Makes one line without control characters: a text of an agent may hold any. */
export const plain = (text: string): string => text.replaceAll(/\s+/gu, " ").replaceAll(HARMFUL, "·").trim()

/** The same of a text whose spaces are kept, line by line. */
export const plainLines = (text: string): ReadonlyArray<string> =>
  text.split(/\r\n|[\n\v\f\r\u0085\u2028\u2029]/u).map((line) => line.replaceAll("\t", "    ").replaceAll(HARMFUL, "·"))

/** `1 rune`, `2 runes`. */
export const count = (amount: number, noun: string): string => `${amount} ${noun}${amount === 1 ? "" : "s"}`

/** At most so many columns; a cut is shown. */
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
  /** Stands at the end of a last column, and is never cut. */
  readonly tail?: string
}

export interface TableOptions {
  readonly colour: boolean
  /** The last column is cut to fit; null: nothing is. */
  readonly columns: number | null
  /** The room that the last column is given at the cost of others, where it needs that. */
  readonly room?: number
  /** Heads of columns that make room for the last one where the terminal is narrow, the first of them first. */
  readonly spare?: ReadonlyArray<string>
  /** Commands that are named are typed in this folder's world; null: in the user's own. */
  readonly world?: string | null
}

const GAP = "  "
/** The last column says what is going on: it is worth more than the others. */
const LAST_COLUMN = 32

/** A head and rows, in columns; the last one takes what room is left. */
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

/** How old, as people say it: 42s, 3m, 5h, 12d. */
export const age = (millis: number): string => {
  const seconds = Math.max(0, Math.floor(millis / 1000))
  if (seconds < 60) return `${seconds}s`
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m`
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)}h`
  return `${Math.floor(seconds / 86_400)}d`
}

const two = (value: number): string => String(value).padStart(2, "0")

/** Local time; with the date when it is another day than `now`. */
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
