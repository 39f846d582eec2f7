/**
 * Fit: cuts a text so that it fits a receiver's limit as it is sent: escaped, and in the receiver's measure. Pure.
 *
 * Guarantees: what is given is never longer than the limit; no escape and no character is cut in two; linear in the limit.
 */

/** How a text is sent, character by character, and how long that is to the receiver. */
export interface Shape {
  readonly escape: (character: string) => string
  readonly size: (text: string) => number
}

const MORE = "…"

/** The text as it is sent; one that was cut ends with `…`. */
export const fit = (text: string, most: number, { escape, size }: Shape): string => {
  const more = size(MORE)
  let [whole, length] = ["", 0]
  // as it stands before the last characters, which must go where more come
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
