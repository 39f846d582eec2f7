/** TerminalGrid: a terminal that supports what the board writes: text at a position, and clearing the screen. */
import { displayWidth } from "../../src/cli/render/Width.ts"

const WRITTEN =
  // oxlint-disable-next-line no-control-regex
  /\u001b\[(\d+);(\d+)H|\u001b\[(2J)|\u001b\[([\d;]*)m|\u001b(?:\[[?\d;]*[A-Za-z]|\][^\u0007]*\u0007)|([^\u001b]+)/g

export class TerminalGrid {
  readonly columns: number
  /** The character of each cell; empty in the cell to the right of a wide character. */
  text: Array<string>
  /** The style codes of each cell, as the program wrote them: `0;1;38;5;214`. */
  readonly styles: Array<string> = []
  private style = ""
  private at = 0
  private left = ""

  constructor(columns: number, rows: number, shown?: ReadonlyArray<string>) {
    this.columns = columns
    this.text = shown === undefined ? Array.from({ length: columns * rows }, () => " ") : [...shown]
  }

  take(chunk: string): void {
    const out = this.left + chunk
    // an escape sequence can be split over two chunks
    const cut = out.lastIndexOf("\u001b")
    // oxlint-disable-next-line no-control-regex
    const isWhole = cut < 0 || /^\u001b(\[[?\d;]*[A-Za-z]|\][^\u0007]*\u0007)/.test(out.slice(cut))
    this.left = isWhole ? "" : out.slice(cut)
    for (const [, row, column, clears, style, text] of (isWhole ? out : out.slice(0, cut)).matchAll(WRITTEN)) {
      if (row !== undefined) this.at = (Number(row) - 1) * this.columns + Number(column) - 1
      if (clears !== undefined) this.text.fill(" ")
      if (style !== undefined) this.style = /^0?(;|$)/.test(style) ? style : `${this.style};${style}`
      for (const { segment } of new Intl.Segmenter(undefined, { granularity: "grapheme" }).segment(text ?? "")) {
        this.text[this.at] = segment
        this.styles[this.at] = this.style
        if (displayWidth(segment) === 2) this.text[this.at + 1] = ""
        this.at += displayWidth(segment)
      }
    }
  }

  get lines(): ReadonlyArray<string> {
    return Array.from({ length: this.text.length / this.columns }, (_, y) =>
      this.text
        .slice(y * this.columns, (y + 1) * this.columns)
        .join("")
        .trimEnd()
    )
  }
}
