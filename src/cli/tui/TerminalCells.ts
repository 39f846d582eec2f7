/**
 * TerminalCells: a page of a terminal as a grid of cells, and the output that changes one page into another.
 * Independent of agents. Pure except for the page on which is drawn.
 *
 * Guarantees: a wide character is never cut in half. No control character reaches the terminal. Unchanged cells are not
 * written.
 */
import { displayWidth } from "../render/Width.ts"
import { plain } from "../render/Output.ts"

export interface Style {
  /** Index of the foreground colour among the terminal's 256 colours. */
  readonly fg?: number
  readonly bg?: number
  readonly bold?: boolean
  readonly under?: boolean
}

const ASCII = /^[\x20-\x7e]*$/

/**
 * Splits a text into graphemes with their widths. Recent results are cached, because this is the slowest step of
 * drawing.
 */
const cluster = (() => {
  const known = new Map<string, ReadonlyArray<readonly [text: string, width: number]>>()
  let segmenter: Intl.Segmenter | undefined
  return (text: string) => {
    const found = known.get(text)
    if (found !== undefined) return found
    segmenter ??= new Intl.Segmenter(undefined, { granularity: "grapheme" })
    const made = ASCII.test(text)
      ? Array.from(text, (one) => [one, 1] as const)
      : Array.from(segmenter.segment(text), ({ segment }) => [segment, displayWidth(segment)] as const).filter(
          ([, width]) => width > 0
        )
    if (known.size > 4_000) known.clear()
    known.set(text, made)
    return made
  }
})()

/** Cuts a text to at most `columns` cells; a cut text ends with "…". */
export const fit = (text: string, columns: number): string => {
  if (columns <= 0) return ""
  if (displayWidth(text) <= columns) return text
  let kept = ""
  let width = 0
  for (const [one, wide] of cluster(text)) {
    if (width + wide > columns - 1) break
    kept += one
    width += wide
  }
  return `${kept}…`
}

/** Breaks a text into lines of at most `columns` cells, between words if possible. */
export const wrap = (text: string, columns: number): ReadonlyArray<string> => {
  const room = Math.max(1, columns)
  const lines: Array<string> = [""]
  for (const word of plain(text).split(/(?<= )/)) {
    const last = lines.at(-1)!
    if (displayWidth(last) + displayWidth(word.trimEnd()) <= room) {
      lines[lines.length - 1] = last + word
      continue
    }
    if (last !== "") lines.push("")
    let width = 0
    for (const [one, wide] of cluster(word)) {
      if (width + wide > room) {
        lines.push("")
        width = 0
      }
      lines[lines.length - 1] += one
      width += wide
    }
  }
  return lines.map((line) => line.trimEnd())
}

const BLANK = "0"

const codeOf = ({ bg, bold, fg, under }: Style): string =>
  [
    BLANK,
    ...(bold === true ? ["1"] : []),
    ...(under === true ? ["4"] : []),
    ...(fg === undefined ? [] : [`38;5;${fg}`]),
    ...(bg === undefined ? [] : [`48;5;${bg}`])
  ].join(";")

export class Cells {
  readonly columns: number
  readonly rows: number
  /** The characters of all cells, row by row. The cell to the right of a wide character contains "". */
  readonly text: Array<string>
  readonly style: Array<string>

  constructor(columns: number, rows: number) {
    this.columns = columns
    this.rows = rows
    this.text = Array.from({ length: columns * rows }, () => " ")
    this.style = Array.from({ length: columns * rows }, () => BLANK)
  }

  /** Writes as much of a text as fits, and returns the column after it. */
  put(x: number, y: number, text: string, style: Style = {}, room = this.columns - x): number {
    if (y < 0 || y >= this.rows) return x
    const code = codeOf(style)
    const end = Math.min(this.columns, x + Math.max(0, room))
    let at = Math.max(0, x)
    for (const [one, wide] of cluster(text)) {
      if (at + wide > end) break
      const cell = y * this.columns + at
      this.part(cell)
      if (wide === 2) this.part(cell + 1)
      this.text[cell] = one < " " || one === "\u007f" ? "·" : one
      this.style[cell] = code
      if (wide === 2) {
        this.text[cell + 1] = ""
        this.style[cell + 1] = code
      }
      at += wide
    }
    return at
  }

  /** If one half of a wide character is overwritten, blanks the other half. */
  private part(cell: number): void {
    if (this.text[cell] === "") this.text[cell - 1] = " "
    if (this.text[cell + 1] === "") this.text[cell + 1] = " "
  }

  /** Writes a text right-aligned, so that it ends before the column `end`. */
  right(end: number, y: number, text: string, style: Style = {}): void {
    this.put(end - displayWidth(text), y, text, style)
  }

  /** Blanks a row, or a part of it. */
  fill(x: number, y: number, width: number, style: Style = {}): void {
    this.put(x, y, " ".repeat(Math.max(0, Math.min(width, this.columns - x))), style)
  }

  get lines(): ReadonlyArray<string> {
    return Array.from({ length: this.rows }, (_, y) =>
      this.text
        .slice(y * this.columns, (y + 1) * this.columns)
        .join("")
        .trimEnd()
    )
  }
}

/** Begins synchronized output, which makes the terminal show the whole page at once. */
const BEGIN = "\u001b[?2026h"
/** Resets the style, and ends synchronized output. */
const END = "\u001b[0m\u001b[?2026l"

/**
 * The output that changes the page `shown` into `now`: the whole page if their sizes differ, or nothing if they are
 * equal.
 */
export const difference = (shown: Cells | undefined, now: Cells): string => {
  const isFresh = shown === undefined || shown.columns !== now.columns || shown.rows !== now.rows
  let out = ""
  let style = ""
  let next = -1
  for (let at = 0; at < now.text.length; at++) {
    const one = now.text[at]!
    const code = now.style[at]!
    if (!isFresh && shown.text[at] === one && shown.style[at] === code) continue
    if (one === "") continue
    if (next !== at) out += `\u001b[${Math.floor(at / now.columns) + 1};${(at % now.columns) + 1}H`
    if (code !== style) out += `\u001b[${code}m`
    style = code
    out += one
    next = at + (now.text[at + 1] === "" ? 2 : 1)
    // after a write to the last column, terminals differ in the cursor's position, so the next write moves the cursor
    // first
    if (next % now.columns === 0) next = -1
  }
  return out === "" ? "" : `${BEGIN}${isFresh ? "\u001b[2J" : ""}${out}${END}`
}
