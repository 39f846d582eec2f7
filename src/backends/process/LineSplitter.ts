/**
 * LineSplitter: bytes in, lines of text out, as they become whole.
 *
 * Guarantees: a character cut in two by a chunk's end is put together again; bytes
 * that are no UTF-8 become U+FFFD and fail nothing; a line that exceeds the limit is
 * handed out in pieces, all but the last marked with `CONTINUED`, so that no child
 * can make the daemon hold more than the limit; "\r\n" ends a line as "\n" does.
 */

/** Ends a piece whose line goes on in the next one. */
export const CONTINUED = " ⏎"

export interface LineSplitter {
  /** The lines that this chunk completes. */
  readonly push: (chunk: Uint8Array) => ReadonlyArray<string>
  /** The rest when no more comes: at most one line, one that no "\n" ended. */
  readonly end: () => ReadonlyArray<string>
}

/** `limit` in UTF-16 units, of a piece without its mark. A surrogate pair is never cut. */
export const make = (limit: number): LineSplitter => {
  const decoder = new TextDecoder("utf-8")
  let rest = ""

  const pieces = (line: string): Array<string> => {
    const out: Array<string> = []
    let from = 0
    while (line.length - from > limit) {
      const last = line.charCodeAt(from + limit - 1)
      const cut = from + (last >= 0xd800 && last <= 0xdbff && limit > 1 ? limit - 1 : limit)
      out.push(line.slice(from, cut) + CONTINUED)
      from = cut
    }
    out.push(line.slice(from))
    return out
  }

  const push = (text: string) => {
    const lines = (rest + text).split("\n")
    rest = lines.pop() ?? ""
    const whole = lines.flatMap((line) => pieces(line.endsWith("\r") ? line.slice(0, -1) : line))
    const open = pieces(rest)
    rest = open.pop() ?? ""
    return [...whole, ...open]
  }

  return {
    push: (chunk) => push(decoder.decode(chunk, { stream: true })),
    end: () => {
      const lines = push(decoder.decode())
      const last = rest
      rest = ""
      return last === "" ? lines : [...lines, last]
    }
  }
}
