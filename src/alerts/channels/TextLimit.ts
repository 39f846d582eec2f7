/**
 * TextLimit: cuts text to a receiver's limit, measured after escaping and in the receiver's unit. Pure.
 *
 * Guarantees: the result is never longer than the limit; no escape sequence and no character is cut in two; the cost is
 * linear in the limit.
 */

export interface Shape {
  readonly escape: (character: string) => string
  readonly size: (text: string) => number
}

const MORE = "…"

/** The escaped text; if it was cut, it ends with `…`. */
export const fit = (text: string, most: number, { escape, size }: Shape): string => {
  const more = size(MORE)
  let [whole, length] = ["", 0]
  // the longest beginning that leaves room for `…`, if the text must be cut
  let [cut, isFull] = ["", false]
  for (const character of text.toWellFormed()) {
    const next = escape(character)
    length += size(next)
    if (!isFull && length > most - more) [cut, isFull] = [whole, true]
    if (length > most) return more > most ? "" : `${cut.trimEnd()}${MORE}`
    whole += next
  }
  return whole
}

export const asItIs = (character: string): string => character
export const characters = (text: string): number => text.length
export const bytes = (text: string): number => Buffer.byteLength(text)
