/**
 * PlacedLines: bytes in, lines of text out, each with its place in the output that it is from.
 *
 * Guarantees: those of LineSplitter; a line's place is the number of bytes up to its end, that of a piece of a long
 * one lies before it; places rise, and are the same however the bytes came in chunks.
 */
import { CONTINUED } from "./LineSplitter.ts"

export interface PlacedLine {
  readonly text: string
  /** Bytes from the beginning of the output. */
  readonly end: number
}

const NEWLINE = 10

export class PlacedLines {
  private readonly limit: number
  private readonly decoder = new TextDecoder("utf-8")
  /** Where the line under way begins, and the bytes that were taken. */
  private begin = 0
  private taken = 0
  /** The line under way, as far as it is not handed out, and the characters of it that are. */
  private rest = ""
  private given = 0

  /** `limit` in UTF-16 units, of a piece without its mark. A surrogate pair is never cut. */
  constructor(limit: number) {
    this.limit = limit
  }

  /** Bytes that were taken. */
  get size(): number {
    return this.taken
  }

  /** The lines that this chunk completes, and the pieces of one that has grown too long. */
  push(chunk: Uint8Array): ReadonlyArray<PlacedLine> {
    const lines: Array<PlacedLine> = []
    let from = 0
    for (let at = chunk.indexOf(NEWLINE); at >= 0; at = chunk.indexOf(NEWLINE, from)) {
      this.rest += this.decoder.decode(chunk.subarray(from, at + 1), { stream: true })
      from = at + 1
      this.finish(this.taken + from, lines)
    }
    this.rest += this.decoder.decode(chunk.subarray(from), { stream: true })
    this.taken += chunk.length
    this.cut(lines)
    return lines
  }

  /** The rest when no more comes: at most one line, one that no "\n" ended. */
  end(): ReadonlyArray<PlacedLine> {
    this.rest += this.decoder.decode()
    const lines: Array<PlacedLine> = []
    this.cut(lines)
    if (this.rest !== "") lines.push({ text: this.rest, end: this.taken })
    this.rest = ""
    return lines
  }

  private finish(end: number, lines: Array<PlacedLine>): void {
    this.rest = this.rest.slice(0, this.rest.endsWith("\r\n") ? -2 : -1)
    this.cut(lines)
    lines.push({ text: this.rest, end })
    this.rest = ""
    this.given = 0
    this.begin = end
  }

  private cut(lines: Array<PlacedLine>): void {
    while (this.rest.length > this.limit) {
      const last = this.rest.charCodeAt(this.limit - 1)
      const cut = last >= 0xd800 && last <= 0xdbff && this.limit > 1 ? this.limit - 1 : this.limit
      this.given += cut
      lines.push({ text: this.rest.slice(0, cut) + CONTINUED, end: this.begin + this.given })
      this.rest = this.rest.slice(cut)
    }
  }
}
