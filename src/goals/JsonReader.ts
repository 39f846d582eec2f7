/**
 * JsonReader: reads a long JSON text as `JSON.parse` does, a little at a time: the text is cut at the members of its
 * outer object or list, and at the entries of those.
 *
 * Guarantees: what `JSON.parse` takes gives the same value, and what it refuses is refused, with the place; no step
 * is longer than one entry, and of what is too long or too much nothing is made.
 */
import { isUtf8 } from "node:buffer"
import type { Steps } from "../domain/InTurns.ts"

/** The text is no JSON, or more than is taken. */
export class NotRead extends Error {}

/** The words of a text that is none. */
export const NOT_UTF8 = "not UTF-8"

export interface Most {
  /** Entries of a list or an object. */
  readonly entries: number
  /** Bytes of one entry. */
  readonly bytes: number
}

/** Levels that are cut: what lies deeper is read as one. */
const LEVELS = 2
/** Bytes that are read in what a small step takes (InTurns). */
const A_STEP = 1_024

const [QUOTE, BACKSLASH, COMMA, COLON] = [0x22, 0x5c, 0x2c, 0x3a]
const [OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d]

const isSpace = (byte: number | undefined): boolean => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09

class Reader {
  private readonly text: Buffer
  private readonly most: Most
  private at = 0

  constructor(text: Buffer, most: Most) {
    this.text = text
    this.most = most
  }

  *whole(): Steps<unknown> {
    const value = yield* this.value(LEVELS)
    this.space()
    if (this.at < this.text.length) this.unexpected()
    return value
  }

  private space(): void {
    const from = this.at
    while (isSpace(this.text[this.at])) this.at++
    if (this.at - from > this.most.bytes) throw new NotRead(`nothing but white space from position ${from} on`)
  }

  private unexpected(): never {
    const byte = this.text[this.at]
    if (byte === undefined) throw new NotRead("unexpected end of JSON input")
    const found = byte > 0x20 && byte < 0x7f ? `'${String.fromCharCode(byte)}'` : `byte ${byte}`
    throw new NotRead(`unexpected ${found} at position ${this.at}`)
  }

  /** The next value; `levels`: how many more are cut. */
  private *value(levels: number): Steps<unknown> {
    this.space()
    const open = this.text[this.at]
    if (levels === 0 || (open !== OPEN_LIST && open !== OPEN_OBJECT)) return yield* this.entry()
    this.at++
    return open === OPEN_LIST ? yield* this.list(levels - 1) : yield* this.object(levels - 1)
  }

  private *list(levels: number): Steps<ReadonlyArray<unknown>> {
    const all: Array<unknown> = []
    for (let isFirst = true; this.goesOn(CLOSE_LIST, isFirst); isFirst = false) {
      this.count(all.length)
      all.push(yield* this.value(levels))
    }
    return all
  }

  private *object(levels: number): Steps<object> {
    const all: Array<[string, unknown]> = []
    for (let isFirst = true; this.goesOn(CLOSE_OBJECT, isFirst); isFirst = false) {
      this.count(all.length)
      if (this.text[this.at] !== QUOTE) this.unexpected()
      const key = (yield* this.entry()) as string
      this.space()
      if (this.text[this.at] !== COLON) this.unexpected()
      this.at++
      all.push([key, yield* this.value(levels)])
    }
    return Object.fromEntries(all)
  }

  /** Whether another entry follows, which then is the next; behind the end where none does. */
  private goesOn(close: number, isFirst: boolean): boolean {
    this.space()
    const byte = this.text[this.at]
    if (byte === close) {
      this.at++
      return false
    }
    if (isFirst) return true
    if (byte !== COMMA) this.unexpected()
    this.at++
    this.space()
    return true
  }

  private count(entries: number): void {
    if (entries >= this.most.entries) throw new NotRead(`a list of more than ${this.most.entries} entries`)
  }

  /** A value that is read as one. */
  private *entry(): Steps<unknown> {
    const from = this.at
    const end = this.end()
    if (end === from) this.unexpected()
    this.at = end
    yield 1 + (end - from) / A_STEP
    try {
      return JSON.parse(this.text.toString("utf8", from, end)) as unknown
    } catch (error) {
      const why = error instanceof Error ? error.message.replace(/ at position \d+.*$/su, "") : String(error)
      throw new NotRead(`${why}, in what begins at position ${from}`)
    }
  }

  /** Where the value that begins here ends, if it is one. */
  private end(): number {
    const { text } = this
    const last = Math.min(text.length, this.at + this.most.bytes)
    let depth = 0
    let at = this.at
    for (; at < last; at++) {
      const byte = text[at]!
      if (byte === QUOTE) {
        at = this.endOfString(at, last)
        if (depth === 0 && at < last) return at + 1
      } else if (byte === OPEN_LIST || byte === OPEN_OBJECT) depth++
      else if (byte === CLOSE_LIST || byte === CLOSE_OBJECT) {
        if (depth === 0) return at
        if (--depth === 0) return at + 1
      } else if (depth === 0 && (byte === COMMA || byte === COLON || isSpace(byte))) return at
    }
    if (at < text.length)
      throw new NotRead(`what begins at position ${this.at} is longer than ${this.most.bytes} bytes`)
    return text.length
  }

  /** The place of the quote that ends it; `last` where none does. */
  private endOfString(from: number, last: number): number {
    for (let at = from + 1; at < last; at++) {
      const byte = this.text[at]
      if (byte === QUOTE) return at
      if (byte === BACKSLASH) at++
    }
    return last
  }
}

/** Reads a whole text, which may begin with a byte order mark; throws `NotRead`. */
export const read = function* (bytes: Uint8Array, most: Most): Steps<unknown> {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  if (!isUtf8(text)) throw new NotRead(NOT_UTF8)
  const isMarked = text[0] === 0xef && text[1] === 0xbb && text[2] === 0xbf
  return yield* new Reader(isMarked ? text.subarray(3) : text, most).whole()
}
