/**
 * LineSplitter: bytes in, lines of text out, as they become whole, each with its place in the output that it is from.
 *
 * Guarantees: a character cut in two by a chunk's end is put together again; bytes
 * that are no UTF-8 become U+FFFD and fail nothing; a line that exceeds the limit is
 * handed out in pieces, all but the last marked with `CONTINUED`, so that no child
 * can make the daemon hold more than the limit; "\r\n" ends a line as "\n" does. A line's place is the number of
 * bytes up to its end, that of a piece of a long one lies before it; places rise, and are the same however the bytes
 * came in chunks.
 */

/** Ends a piece whose line goes on in the next one. */
export const CONTINUED = " ⏎"

export interface Line {
  readonly text: string
  /** Bytes from the beginning of the output. */
  readonly end: number
}

const NEWLINE = 10

export class LineSplitter {
  private readonly limit: number
  private readonly decoder = new TextDecoder("utf-8")
  /** Where the line under way begins, and the bytes that were taken. */
  private begin = 0
  private taken = 0
  /** The line under way, as far as it is not handed out, and the characters of it that are. */
  private rest = ""
  private given = 0

  /** `limit` in UTF-16 units, of a piece without its mark. A surrogate pair is never cut. `from`: bytes before the first. */
  constructor(limit: number, from = 0) {
    this.limit = limit
    this.begin = from
    this.taken = from
  }

  /** Bytes that were taken. */
  get size(): number {
    return this.taken
  }

  /** Bytes up to the end of the last line, where nothing of the next one is handed out; undefined in the midst of a long one. */
  get whole(): number | undefined {
    return this.given === 0 ? this.begin : undefined
  }

  /** The lines that this chunk completes, and the pieces of one that has grown too long. */
  push(chunk: Uint8Array): ReadonlyArray<Line> {
    const lines: Array<Line> = []
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
  end(): ReadonlyArray<Line> {
    this.rest += this.decoder.decode()
    const lines: Array<Line> = []
    this.cut(lines)
    if (this.rest !== "") lines.push({ text: this.rest, end: this.taken })
    this.rest = ""
    return lines
  }

  private finish(end: number, lines: Array<Line>): void {
    this.rest = this.rest.slice(0, this.rest.endsWith("\r\n") ? -2 : -1)
    this.cut(lines)
    lines.push({ text: this.rest, end })
    this.rest = ""
    this.given = 0
    this.begin = end
  }

  private cut(lines: Array<Line>): void {
    while (this.rest.length > this.limit) {
      const last = this.rest.charCodeAt(this.limit - 1)
      const cut = last >= 0xd800 && last <= 0xdbff && this.limit > 1 ? this.limit - 1 : this.limit
      this.given += cut
      lines.push({ text: this.rest.slice(0, cut) + CONTINUED, end: this.begin + this.given })
      this.rest = this.rest.slice(cut)
    }
  }
}
