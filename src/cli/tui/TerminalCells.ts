/**
 * TerminalCells: a page of a terminal as a grid, and what has to be written to make one page of another. Knows nothing of
 * agents. Pure but for the page that is drawn on.
 *
 * Guarantees: a wide character is never cut in half; nothing that steers a terminal is let through; what does not
 * differ is not written.
 */
import { displayWidth } from "../render/Width.ts"
import { plain } from "../render/Output.ts"

export interface Style {
  /** A number of the terminal's 256 colours. */
  readonly fg?: number
  readonly bg?: number
  readonly bold?: boolean
  readonly under?: boolean
}

const ASCII = /^[\x20-\x7e]*$/

/** Characters as a person counts them, with their widths; what was cut up lately is kept, since it costs most. */
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

/** At most so many columns of it; a cut is shown. */
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

/** The text in lines of at most so many columns, broken between words where that can be. */
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
  /** The characters; empty right of a wide one. */
  readonly text: Array<string>
  readonly style: Array<string>

  constructor(columns: number, rows: number) {
    this.columns = columns
    this.rows = rows
    this.text = Array.from({ length: columns * rows }, () => " ")
    this.style = Array.from({ length: columns * rows }, () => BLANK)
  }

  /** Writes as much as fits; answers the column behind it. */
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

  /** Half of a wide character that is written over leaves no other half. */
  private part(cell: number): void {
    if (this.text[cell] === "") this.text[cell - 1] = " "
    if (this.text[cell + 1] === "") this.text[cell + 1] = " "
  }

  /** Writes so that it ends before the column. */
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

/** Shown at once, so that no half of a page is seen. */
const BEGIN = "\u001b[?2026h"
const END = "\u001b[0m\u001b[?2026l"

/** Makes the page `now` of what is shown; all of it where nothing of that size is shown. Empty: they are alike. */
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
    // the cursor waits at the end of a row in ways of each terminal's own
    if (next % now.columns === 0) next = -1
  }
  return out === "" ? "" : `${BEGIN}${isFresh ? "\u001b[2J" : ""}${out}${END}`
}
