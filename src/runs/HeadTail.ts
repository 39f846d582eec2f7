/**
 * HeadTail: keeps the beginning and the end of a text of any length, and counts what was left out between them.
 *
 * Guarantees: Uses memory for at most about three times its limits, however long the text is. A note marks where text
 * was left out.
 */
export interface HeadTail {
  readonly push: (text: string) => void
  readonly text: () => string
}

/** Creates the buffer. `head` and `tail`: maximum length of the beginning and of the end, UTF-16 code units. */
export const make = (head: number, tail: number): HeadTail => {
  let [first, last, dropped] = ["", "", 0]
  const trim = () => {
    if (last.length <= tail) return
    // never split a surrogate pair
    const code = last.charCodeAt(last.length - tail)
    const from = last.length - tail + (code >= 0xdc00 && code <= 0xdfff ? 1 : 0)
    dropped += from
    last = last.slice(from)
  }
  return {
    push: (text) => {
      const room = Math.max(0, head - first.length)
      first += text.slice(0, room)
      last += text.slice(room)
      if (last.length > 2 * tail) trim()
    },
    text: () => {
      trim()
      if (dropped === 0) return first + last
      const code = first.charCodeAt(first.length - 1)
      const half = code >= 0xd800 && code <= 0xdbff ? 1 : 0
      return `${first.slice(0, first.length - half)}\n[… ${dropped + half} characters left out …]\n${last}`
    }
  }
}

export const of = (text: string, head: number, tail: number): string => {
  const kept = make(head, tail)
  kept.push(text)
  return kept.text()
}
