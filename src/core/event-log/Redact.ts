/**
 * Redact: removes known secrets from text and payloads before they are stored or logged.
 *
 * Known secrets are values from the environment and from configured files, in every form that `SecretValues` lists.
 * Passwords in addresses are removed, too, and everything that has the shape of a well-known service's key. Each secret
 * becomes `[redacted]`, in values and in field names.
 *
 * Guarantees: for every text, the run time is linear in its length. No regular expression with a repetition searches
 * the text, and no part is scanned to its end twice. A secret that is found by its shape is part of one word, and never
 * contains a quote, a space or a line break. In a private key, only lines that are entirely base64 are removed. A text
 * that arrives in chunks is redacted like a whole text, because unfinished lines, or at least unfinished words, are
 * held back. A secret that was not registered and has no known shape is not found. A secret that is encrypted,
 * reversed, or broken into lines by the base64 tool is not found either.
 */
import { Context, Effect, Layer } from "effect"
import { type Form, formsOf, partsOf } from "./SecretValues.ts"

export const REDACTED = "[redacted]"

/**
 * Maximum number of known secrets. If there are more, the oldest are dropped, because more would slow down every
 * append. Each project of the daemon has only a few.
 */
const MAX_SECRETS = 1_000

/** A range of characters to remove from a text. */
interface Span {
  readonly from: number
  readonly to: number
}

const tableOf = (characters: string): Uint8Array => {
  const table = new Uint8Array(128)
  for (const character of characters) table[character.charCodeAt(0)] = 1
  return table
}
const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
const WORD = tableOf(`${LETTERS}_-`)
const BASE64 = tableOf(`${LETTERS}+/=`)
const QUERY = tableOf(`${LETTERS}_-.~%+/=`)
/** Characters that end the name and password of an address. */
const ENDS_ADDRESS = tableOf("/\"'`<>\\${ @")

const has = (table: Uint8Array, code: number): boolean => code < 128 && table[code] === 1
const endOf = (table: Uint8Array, text: string, from: number): number => {
  let at = from
  while (at < text.length && has(table, text.charCodeAt(at))) at++
  return at
}

const BACKSLASH = 92
const isEscaped = (text: string, at: number): boolean => at > 0 && text.charCodeAt(at - 1) === BACKSLASH

/**
 * Number of characters in a gram. Grams are looked up at every third offset of a text. Each form has at least six
 * characters, so one of these grams is always entirely within it.
 */
const GRAM = 3
const SLOTS = 1 << 16

const slotOf = (text: string, at: number): number =>
  (Math.imul(text.charCodeAt(at), 0x9e3779b1) ^
    Math.imul(text.charCodeAt(at + 1), 0x85ebca6b) ^
    Math.imul(text.charCodeAt(at + 2), 0xc2b2ae35)) >>>
  16

interface Candidate {
  readonly form: Form
  /** Offset of the gram in the form. */
  readonly offset: number
}

/** The forms of all known values, indexed by the grams at their first three offsets. */
class Forms {
  private readonly slots = new Uint8Array(SLOTS)
  private readonly candidates = new Map<number, Array<Candidate>>()
  /** Length of the longest form that contains a space. Such a form could be split when text is cut between words. */
  readonly longestSpaced: number = 0

  constructor(values: Iterable<string>) {
    const seen = new Set<string>()
    for (const value of values) {
      for (const form of formsOf(value)) {
        if (seen.has(form.text)) continue
        seen.add(form.text)
        if (form.text.includes(" ")) this.longestSpaced = Math.max(this.longestSpaced, form.text.length)
        for (let offset = 0; offset < GRAM; offset++) this.add({ form, offset })
      }
    }
  }

  private add(candidate: Candidate): void {
    const slot = slotOf(candidate.form.text, candidate.offset)
    this.slots[slot] = 1
    const known = this.candidates.get(slot)
    if (known === undefined) this.candidates.set(slot, [candidate])
    else known.push(candidate)
  }

  /** Returns the spans of known values, in text order. The spans do not overlap. */
  find(text: string): Array<Span> {
    const spans: Array<Span> = []
    if (this.candidates.size === 0) return spans
    for (let at = 0; at + GRAM <= text.length; at += GRAM) {
      const slot = slotOf(text, at)
      if (this.slots[slot] === 0) continue
      for (const { form, offset } of this.candidates.get(slot)!) {
        const from = at - offset
        if (from >= 0 && text.startsWith(form.text, from) && (!form.whole || isWhole(text, from, form.text.length))) {
          cover(spans, from, from + form.text.length)
        }
      }
    }
    return spans
  }
}

/**
 * Returns true if the span is a whole word: no word character precedes or follows it. The letter of an escape sequence
 * does not count as a word character.
 */
const isWhole = (text: string, from: number, length: number): boolean => {
  const to = from + length
  if (to < text.length && has(WORD, text.charCodeAt(to))) return false
  return from === 0 || !has(WORD, text.charCodeAt(from - 1)) || isEscaped(text, from - 1)
}

/** Adds a span to a list that is ordered by position. Overlapping spans become one. */
const cover = (spans: Array<Span>, begin: number, end: number): void => {
  let [from, to] = [begin, end]
  for (let last = spans.at(-1); last !== undefined && last.to > from; last = spans.at(-1)) {
    if (last.from >= to) break
    from = Math.min(from, last.from)
    to = Math.max(to, last.to)
    spans.pop()
  }
  spans.push({ from, to })
}

/** Prefixes of the keys of well-known services, each with the minimum number of characters after the prefix. */
const SHAPES: ReadonlyArray<readonly [prefix: string, least: number]> = [
  ["sk-", 20],
  ["sk_live_", 16],
  ["rk_live_", 16],
  ["ghp_", 30],
  ["gho_", 30],
  ["ghu_", 30],
  ["ghs_", 30],
  ["ghr_", 30],
  ["github_pat_", 22],
  ["glpat-", 20],
  ["xoxa-", 10],
  ["xoxb-", 10],
  ["xoxe-", 10],
  ["xoxp-", 10],
  ["xoxr-", 10],
  ["xoxs-", 10],
  ["AIza", 35],
  ["ya29", 20],
  ["npm_", 36],
  ["hf_", 30],
  ["dop_v1_", 40],
  ["pypi-", 40],
  ["AGE-SECRET-KEY-", 40],
  ["gsk_", 40],
  ["xai-", 40]
]
const BY_FIRST: ReadonlyMap<number, typeof SHAPES> = Map.groupBy(SHAPES, ([prefix]) => prefix.charCodeAt(0))
/** Minimum number of characters in a key. */
const MIN_KEY = 14
const AWS_KEY = 20
/** Maximum number of offsets in a word at which a key can begin: after escape letters and after dashes. */
const MAX_STARTS = 6
const WEB_TOKEN = "eyJ"
const MIN_TOKEN_PART = 10
/** Maximum number of characters in the name and password of an address. */
const MAX_ADDRESS = 512
const HEADER = "-----BEGIN"
/** Maximum number of characters in the first line of a private key. */
const MAX_HEADER = 64
/** Names of URL parameters whose values are secrets. */
const PARAMETERS = new Set(
  "access_token api_key apikey auth client_secret id_token password passwd pwd refresh_token secret sig signature token x-amz-signature".split(
    " "
  )
)
const MIN_PARAMETER = 8

/** Returns true if the text mixes digits with letters, or has no dash or underscore. Identifiers rarely do either. */
const isRandom = (text: string, from: number, to: number): boolean => {
  if (isMixed(text, from, to)) return true
  for (let at = from; at < to; at++) {
    const code = text.charCodeAt(at)
    if (code === 45 || code === 95) return false
  }
  return true
}

const isMixed = (text: string, from: number, to: number): boolean => {
  let [digit, letter] = [false, false]
  for (let at = from; at < to && !(digit && letter); at++) {
    const code = text.charCodeAt(at)
    if (code > 47 && code < 58) digit = true
    else if (code > 64 && code !== 95) letter = true
  }
  return digit && letter
}

const isAwsKey = (text: string, from: number, to: number): boolean => {
  if (to - from !== AWS_KEY || !(text.startsWith("AKIA", from) || text.startsWith("ASIA", from))) return false
  for (let at = from + 4; at < to; at++) {
    const code = text.charCodeAt(at)
    if (!((code > 47 && code < 58) || (code > 64 && code < 91))) return false
  }
  return true
}

const isKey = (text: string, from: number, to: number): boolean =>
  BY_FIRST.get(text.charCodeAt(from))?.some(
    ([prefix, least]) =>
      to - from >= prefix.length + least && text.startsWith(prefix, from) && isRandom(text, from + prefix.length, to)
  ) === true || isAwsKey(text, from, to)

/** A key can begin at the start of the word, after the letters of an escape sequence, or after a dash. */
const startsIn = (text: string, from: number, to: number): ReadonlyArray<number> => {
  const starts = [from]
  if (isEscaped(text, from)) starts.push(from + 1, from + 5)
  for (let at = from + 1; at < to && starts.length < MAX_STARTS; at++) {
    if (text.charCodeAt(at - 1) !== 45) continue
    const code = text.charCodeAt(at)
    if (code === 101 ? text.startsWith(WEB_TOKEN, at) : BY_FIRST.has(code) || code === 65) starts.push(at)
  }
  return starts
}

/**
 * Quick check: a text that does not match contains no secret with a known shape. Checking the text word by word would
 * take five times as long.
 */
const HINT =
  /sk-|[rs]k_live_|gh[pousr]_|github_pat_|glpat-|xox[abeprs]-|AIza|ya29|npm_|hf_|dop_v1_|pypi-|AGE-SECRET|gsk_|xai-|AKIA|ASIA|\.eyJ|-----BEGIN|:\/\/|[?&][\w-]/

/** `isInKey`: true while a private key continues from one text into the next. */
class Shapes {
  readonly spans: Array<Span> = []
  isInKey: boolean
  private readonly text: string
  private at = 0

  constructor(text: string, isInKey: boolean) {
    this.text = text
    this.isInKey = isInKey
  }

  read(): this {
    const { text } = this
    if (!this.isInKey && !HINT.test(text)) return this
    if (this.isInKey) this.keyLines()
    while (this.at < text.length) {
      const code = text.charCodeAt(this.at)
      if (has(WORD, code)) this.word()
      else if (code === 58 && text.startsWith("://", this.at)) this.address()
      else this.at += 1
    }
    return this
  }

  private word(): void {
    const { text } = this
    const from = this.at
    const to = endOf(WORD, text, from)
    this.at = to
    if (to - from >= HEADER.length && text.startsWith(HEADER, to - HEADER.length)) return this.keyHeader(to)
    if (text.charCodeAt(to) === 61) this.parameter(from, to)
    if (to - from < MIN_KEY) return
    for (const start of startsIn(text, from, to)) {
      if (text.charCodeAt(to) === 46 && text.startsWith(WEB_TOKEN, start)) {
        if (this.webToken(start, to)) return
      } else if (to - start >= MIN_KEY && isKey(text, start, to)) {
        this.spans.push({ from: start, to })
        return
      }
    }
  }

  /** Finds a JSON Web Token: three words with dots between them. The first word ends at `dot`. */
  private webToken(from: number, dot: number): boolean {
    const { text } = this
    if (dot - from < MIN_TOKEN_PART + 3 || !text.startsWith(WEB_TOKEN, dot + 1)) return false
    const second = endOf(WORD, text, dot + 1)
    if (second - dot < MIN_TOKEN_PART + 4 || text.charCodeAt(second) !== 46) return false
    const third = endOf(WORD, text, second + 1)
    if (third - second <= MIN_TOKEN_PART) return false
    this.spans.push({ from, to: third })
    this.at = third
    return true
  }

  /** Finds a secret in a parameter of an address: `?token=…` or `&token=…`. */
  private parameter(from: number, to: number): void {
    const { text } = this
    const before = text.charCodeAt(from - 1)
    if ((before !== 63 && before !== 38) || !PARAMETERS.has(text.slice(from, Math.min(to, from + 32)).toLowerCase())) {
      return
    }
    const end = endOf(QUERY, text, to + 1)
    this.at = end
    if (end - to > MIN_PARAMETER && isMixed(text, to + 1, end)) this.spans.push({ from: to + 1, to: end })
  }

  /** Finds a password in an address: `://name:password@`. */
  private address(): void {
    const { text } = this
    const from = this.at + 3
    const last = Math.min(text.length, from + MAX_ADDRESS)
    let [colon, at] = [-1, from]
    for (; at < last; at++) {
      const code = text.charCodeAt(at)
      if (code === 58 && colon < 0) colon = at
      else if (code <= 32 || has(ENDS_ADDRESS, code)) break
    }
    const isPassword = text.charCodeAt(at) === 64 && colon >= 0 && at - colon > 3
    if (isPassword) this.spans.push({ from: colon + 1, to: at })
    // text that is not a password is read again as words, and a third time only if it contains another `://`
    this.at = isPassword ? at : from
  }

  private keyHeader(to: number): void {
    const { text } = this
    const line = text.slice(to, to + MAX_HEADER)
    const end = line.indexOf("PRIVATE KEY-----")
    if (end < 0 || line.slice(0, end).includes("\n")) return
    this.at = to + end + "PRIVATE KEY-----".length
    this.isInKey = true
    this.lineBreak()
    this.keyLines()
  }

  /** Skips line breaks, plain or escaped. Returns true if there was one. */
  private lineBreak(): boolean {
    const { text } = this
    const from = this.at
    for (;;) {
      const code = text.charCodeAt(this.at)
      if (code === 10 || code === 13) this.at += 1
      else if (code === BACKSLASH && (text[this.at + 1] === "n" || text[this.at + 1] === "r")) this.at += 2
      else return this.at > from
    }
  }

  /** Removes lines that are entirely base64. Any other line ends the key, except header lines of older key formats. */
  private keyLines(): void {
    const { text } = this
    while (this.at < text.length) {
      const from = this.at
      const to = endOf(BASE64, text, from)
      this.at = to
      if (to > from && (to === text.length || this.lineBreak())) {
        this.spans.push({ from, to })
        continue
      }
      this.at = from
      if (this.lineBreak()) continue
      if (!/^(?:Proc-Type|DEK-Info|Comment|Version): /.test(text.slice(from, from + 12))) {
        this.isInKey = false
        return
      }
      let end = from
      while (end < text.length && text.charCodeAt(end) !== 10 && text.charCodeAt(end) !== BACKSLASH) end++
      this.at = end
      if (!this.lineBreak()) this.at = end + 1
    }
  }
}

/** Merges two lists of spans that are ordered by position. Overlapping spans become one. */
const merge = (a: ReadonlyArray<Span>, b: ReadonlyArray<Span>): ReadonlyArray<Span> => {
  if (a.length === 0 || b.length === 0) return a.length === 0 ? b : a
  const all: Array<Span> = []
  let [i, j] = [0, 0]
  while (i < a.length || j < b.length) {
    const isA = j === b.length || (i < a.length && a[i]!.from <= b[j]!.from)
    const { from, to } = isA ? a[i++]! : b[j++]!
    cover(all, from, to)
  }
  return all
}

const without = (text: string, spans: ReadonlyArray<Span>): string => {
  if (spans.length === 0) return text
  let [kept, at] = ["", 0]
  for (const { from, to } of spans) {
    kept += text.slice(at, from) + REDACTED
    at = to
  }
  return kept + text.slice(at)
}

/** Removes values that are secret only in this text. */
export const masked = (text: string, values: ReadonlyArray<string>): string =>
  without(text, new Forms(values.flatMap(partsOf)).find(text))

/** An escape sequence that `JSON.stringify` does not write, and that could hide a secret. */
const FOREIGN_ESCAPE = /\\u(?!00[01]|d[89a-f])|\\\//

/** Applies `scrub` to each string in a JSON text, including field names. The rest of the text stays unchanged. */
const eachString = (json: string, scrub: (text: string) => string): string => {
  let [kept, at] = ["", 0]
  for (let open = json.indexOf('"'); open >= 0; open = json.indexOf('"', at)) {
    let close = json.indexOf('"', open + 1)
    while (close >= 0 && isEscapedQuote(json, close)) close = json.indexOf('"', close + 1)
    if (close < 0) break
    const literal = json.slice(open, close + 1)
    const text = JSON.parse(literal) as string
    const clean = scrub(text)
    kept += json.slice(at, open) + (clean === text ? literal : JSON.stringify(clean))
    at = close + 1
  }
  return kept + json.slice(at)
}

const isEscapedQuote = (json: string, quote: number): boolean => {
  let at = quote
  while (json.charCodeAt(at - 1) === BACKSLASH) at--
  return (quote - at) % 2 === 1
}

/** Maximum number of characters of an unfinished line that are held back. */
const MAX_HELD = 16 * 1024
/** Maximum number of characters of an unfinished word that are held back. */
const MAX_WORD = 4 * 1024

export interface RedactedChunks {
  /** Adds a chunk. Returns the redacted text that can be released: whole lines, or whole words of a very long line. */
  readonly push: (chunk: string) => string
  /** Returns the whole words of an unfinished line. Call this if the line is not completed for some time. */
  readonly words: () => string
  /** Returns all text that is held back. Call this if no chunk has arrived for some time. */
  readonly rest: () => string
  /** Number of characters that are held back. */
  readonly held: () => number
}

class Chunks implements RedactedChunks {
  private waiting = ""
  private isInKey = false
  private readonly forms: () => Forms

  constructor(forms: () => Forms) {
    this.forms = forms
  }

  push(chunk: string): string {
    const line = chunk.lastIndexOf("\n")
    const cut = line < 0 ? 0 : this.waiting.length + line + 1
    this.waiting += chunk
    return this.let(cut) + (this.waiting.length > MAX_HELD ? this.words() : "")
  }

  words(): string {
    const { waiting: held } = this
    const most = held.length - this.forms().longestSpaced
    let cut = Math.max(0, most)
    while (cut > 0 && has(QUERY, held.charCodeAt(cut - 1))) cut--
    // a very long word is split, far from its beginning
    return this.let(held.length - cut > 2 * MAX_WORD ? held.length - MAX_WORD : cut)
  }

  rest(): string {
    return this.let(this.waiting.length)
  }

  held(): number {
    return this.waiting.length
  }

  private let(most: number): string {
    if (most === 0) return ""
    const { waiting: held } = this
    const values = this.forms().find(held)
    // a value that crosses the cut is held back until its end has arrived
    const across = values.find(({ from, to }) => from < most && to > most)
    const cut = across === undefined ? most : across.from
    const text = held.slice(0, cut)
    const shapes = new Shapes(text, this.isInKey).read()
    this.isInKey = shapes.isInKey
    this.waiting = held.slice(cut)
    return without(text, merge(this.forms().find(text), shapes.spans))
  }
}

export class Redact extends Context.Service<
  Redact,
  {
    /** Adds known secrets. Values of fewer than six characters are ignored. */
    readonly register: (values: Iterable<string>) => Effect.Effect<void>
    readonly text: (text: string) => string
    /**
     * Removes only registered values. Used for text about which a user must decide, because text that looks like a key
     * can be harmless there.
     */
    readonly known: (text: string) => string
    /** Removes secrets from a JSON text, whether they are found by value or by shape. */
    readonly json: (text: string) => string
    /** Removes only registered values from the strings in a JSON text. */
    readonly values: (text: string) => string
    readonly chunks: () => RedactedChunks
  }
>()("agentd/runes/Redact") {
  static readonly layer: Layer.Layer<Redact> = Layer.sync(Redact, () => {
    let secrets: ReadonlySet<string> = new Set()
    let forms = new Forms([])
    const spansOf = (text: string) => merge(forms.find(text), new Shapes(text, false).read().spans)
    const text = (text: string): string => without(text, spansOf(text))
    const known = (text: string): string => without(text, forms.find(text))
    return Redact.of({
      register: (values) =>
        Effect.sync(() => {
          const all = new Set(secrets)
          for (const value of values) for (const part of partsOf(value)) all.add(part)
          if (all.size === secrets.size) return
          secrets = new Set([...all].slice(-MAX_SECRETS))
          forms = new Forms(secrets)
        }),
      text,
      known,
      values: (json) => (FOREIGN_ESCAPE.test(json) || forms.find(json).length > 0 ? eachString(json, known) : json),
      // A replacement in the raw JSON could split an escape sequence. Therefore the raw JSON only decides whether its
      // strings must be parsed.
      json: (json) => (FOREIGN_ESCAPE.test(json) || spansOf(json).length > 0 ? eachString(json, text) : json),
      chunks: () => new Chunks(() => forms)
    })
  })
}
