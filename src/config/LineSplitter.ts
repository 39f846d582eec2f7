/**
 * LineSplitter: splits bytes into lines of text as they become complete. Each line has its position in the output.
 *
 * Guarantees: A character that is split between two chunks is joined again. Bytes that are not UTF-8 become U+FFFD and
 * cause no error. A line that exceeds the limit is returned in pieces; all except the last are marked with `CONTINUED`.
 * A child therefore cannot make the daemon buffer more than the limit. "\r\n" ends a line like "\n".
 *
 * A line's position is the number of bytes up to its end. The position of a piece of a long line is smaller. Positions
 * increase, and do not depend on how the bytes were split into chunks.
 *
 * `MessageLines` splits in the same way where a part of a line is useless, such as a protocol with one message per line.
 *
 * The module has no imports, because the gateway and the entry points use it.
 */

/** Marks the end of a piece whose line continues in the next piece. */
export const CONTINUED = " ⏎"

export interface Line {
  readonly text: string
  /** Number of bytes from the beginning of the output to the end of the line. */
  readonly end: number
}

const NEWLINE = 10

export class LineSplitter {
  private readonly limit: number
  private readonly decoder = new TextDecoder("utf-8")
  /** The position where the current line begins, and the number of bytes received. */
  private begin = 0
  private taken = 0
  /** The part of the current line that has not been returned yet, and how many characters of the line have been. */
  private rest = ""
  private given = 0

  /**
   * `limit`: maximum length of a piece in UTF-16 code units, without its mark. A surrogate pair is never split. `from`:
   * position of the first byte.
   */
  constructor(limit: number, from = 0) {
    this.limit = limit
    this.begin = from
    this.taken = from
  }

  /** Number of bytes received. */
  get size(): number {
    return this.taken
  }

  /** Number of bytes up to the end of the last line; undefined if only a part of a long line has been returned. */
  get whole(): number | undefined {
    return this.given === 0 ? this.begin : undefined
  }

  /** Adds a chunk. Returns the lines that the chunk completes, and the pieces of a line that exceeds the limit. */
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

  /** Returns the text after the last "\n", at the end of the output. */
  end(): ReadonlyArray<Line> {
    this.rest += this.decoder.decode()
    const lines: Array<Line> = []
    this.cut(lines, true)
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

  private cut(lines: Array<Line>, isEnd = false): void {
    while (this.rest.length > this.limit) {
      // a "\r" can belong to the line's end, which is not part of the line
      if (!isEnd && this.rest.length === this.limit + 1 && this.rest.endsWith("\r")) return
      const last = this.rest.charCodeAt(this.limit - 1)
      const cut = last >= 0xd800 && last <= 0xdbff && this.limit > 1 ? this.limit - 1 : this.limit
      this.given += cut
      lines.push({ text: this.rest.slice(0, cut) + CONTINUED, end: this.begin + this.given })
      this.rest = this.rest.slice(cut)
    }
  }
}

/** Splits bytes into lines. A line that exceeds the limit is discarded: `undefined` stands for it, once. */
export class MessageLines {
  private readonly splitter: LineSplitter
  private readonly limit: number
  private isSkipping = false

  /** `limit`: maximum length of a line in UTF-16 code units. */
  constructor(limit: number) {
    this.splitter = new LineSplitter(limit)
    this.limit = limit
  }

  push(chunk: Uint8Array): ReadonlyArray<string | undefined> {
    return this.whole(this.splitter.push(chunk))
  }

  /** Returns the last line, if it has no line end. */
  end(): ReadonlyArray<string | undefined> {
    return this.whole(this.splitter.end())
  }

  private whole(lines: ReadonlyArray<Line>): ReadonlyArray<string | undefined> {
    return lines.flatMap(({ text }) => {
      const wasSkipping = this.isSkipping
      // with its mark, a piece of a long line exceeds the limit
      this.isSkipping = text.length > this.limit
      return wasSkipping ? [] : [this.isSkipping ? undefined : text]
    })
  }
}
