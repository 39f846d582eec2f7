/**
 * Jsonc: parses JSON with comments and trailing commas, and reports the position of every mistake.
 *
 * Guarantees: no text makes the parser throw, and the nesting depth is limited. Every value, key and problem has its
 * offset. A duplicate key is a problem. A missing comma is reported, and parsing continues. Other broken syntax ends
 * the parsing.
 *
 * The library jsonc-parser cannot be used instead: deep nesting overflows its stack, it does not report duplicate keys,
 * and after broken syntax it reports errors that its own recovery causes.
 */

/** A value with its place in the text, up to `end`; `value` is the result that `JSON.parse` would return. */
export interface Node {
  readonly offset: number
  readonly end: number
  readonly value: unknown
  readonly members?: ReadonlyMap<string, Member>
  readonly items?: ReadonlyArray<Node>
}

export interface Member {
  readonly keyOffset: number
  readonly node: Node
}

export interface Problem {
  readonly offset: number
  readonly message: string
  readonly remedy: string
}

export interface Reading {
  /** The parsed value; undefined if the syntax is broken. */
  readonly root: Node | undefined
  readonly problems: ReadonlyArray<Problem>
}

const MAX_DEPTH = 64
const MAX_PROBLEMS = 50
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
const WORD = /[A-Za-z_$][\w$]*/y
const CONSTANTS = new Map<string, unknown>([
  ["true", true],
  ["false", false],
  ["null", null]
])

/** Thrown to stop parsing at broken syntax; only `read` catches it. */
class Broken {
  readonly problem: Problem
  constructor(problem: Problem) {
    this.problem = problem
  }
}

class Reader {
  readonly text: string
  readonly problems: Array<Problem> = []
  at = 0

  constructor(text: string) {
    this.text = text
  }

  broken(offset: number, message: string, remedy: string): never {
    throw new Broken({ offset, message, remedy })
  }

  note(offset: number, message: string, remedy: string): void {
    if (this.problems.length >= MAX_PROBLEMS) throw new Broken({ offset, message, remedy })
    this.problems.push({ offset, message, remedy })
  }

  /** A description of the next character or token, for a message. */
  found(): string {
    if (this.at >= this.text.length) return "the end of the file"
    const char = String.fromCodePoint(this.text.codePointAt(this.at)!)
    if (char === '"') return "the next text"
    return /^[\p{Cc}\p{Cf}\p{Z}]$/u.test(char)
      ? `the character U+${char.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}`
      : `"${char}"`
  }

  /** Skips white space and comments. */
  skip(): void {
    for (;;) {
      const char = this.text[this.at]
      if (char === " " || char === "\t" || char === "\n" || char === "\r" || (char === "\uFEFF" && this.at === 0)) {
        this.at++
      } else if (char === "/" && this.text[this.at + 1] === "/") {
        const end = this.text.indexOf("\n", this.at)
        this.at = end === -1 ? this.text.length : end
      } else if (char === "/" && this.text[this.at + 1] === "*") {
        const end = this.text.indexOf("*/", this.at + 2)
        if (end === -1) this.broken(this.at, "the comment does not end", "Close it with */.")
        this.at = end + 2
      } else return
    }
  }

  value(depth: number): Node {
    if (depth > MAX_DEPTH) this.broken(this.at, `nested deeper than ${MAX_DEPTH} levels`, "Flatten it.")
    const offset = this.at
    const char = this.text[offset]
    if (char === "{") return this.object(depth)
    if (char === "[") return this.array(depth)
    if (char === '"') return { offset, value: this.string(), end: this.at }
    NUMBER.lastIndex = offset
    const digits = NUMBER.exec(this.text)?.[0]
    if (digits !== undefined) {
      this.at += digits.length
      if (/[\w.]/.test(this.text[this.at] ?? ""))
        this.broken(offset, "is not a JSON number", "Write it as 12 or 1.5, or put it in quotes.")
      return { offset, value: Number(digits), end: this.at }
    }
    WORD.lastIndex = offset
    const word = WORD.exec(this.text)?.[0]
    if (word !== undefined && CONSTANTS.has(word)) {
      this.at += word.length
      return { offset, value: CONSTANTS.get(word), end: this.at }
    }
    if (word !== undefined) this.broken(offset, `${word} is not a value`, `Put text in double quotes: "${word}".`)
    if (char === "'") this.broken(offset, "the text is in single quotes", 'Use double quotes: "…".')
    return this.broken(
      offset,
      `a value is missing before ${this.found()}`,
      'Write a value: "text", 1, true, [ … ] or { … }.'
    )
  }

  /** Parses a string. `at` must be at the opening quote. */
  string(): string {
    const offset = this.at
    for (let index = offset + 1; index < this.text.length; index++) {
      const code = this.text.charCodeAt(index)
      if (code === 0x5c) index++
      else if (code === 0x22) {
        this.at = index + 1
        return this.unescape(offset)
      } else if (code === 0x0a || code === 0x0d) {
        this.broken(
          offset,
          "the text does not end on its line",
          "Close it with a double quote; write \\n for a line break."
        )
      } else if (code < 0x20) {
        this.at = index
        this.broken(
          index,
          `text must not contain ${this.found()}`,
          `Write it as \\u${code.toString(16).padStart(4, "0")}, or remove it.`
        )
      }
    }
    return this.broken(offset, "the text does not end", "Close it with a double quote.")
  }

  unescape(offset: number): string {
    const token = this.text.slice(offset, this.at)
    try {
      return JSON.parse(token) as string
    } catch {
      return this.broken(
        offset,
        `${token.length > 60 ? "the text" : token} has an escape that JSON does not know`,
        String.raw`Write \\ for a backslash.`
      )
    }
  }

  object(depth: number): Node {
    const offset = this.at
    const members = new Map<string, Member>()
    this.list("}", () => {
      const keyOffset = this.at
      const key = this.key()
      this.skip()
      if (this.text[this.at] === ":") this.at++
      else this.broken(this.at, `a colon is missing after "${key}"`, `Write "${key}": and its value.`)
      this.skip()
      const node = this.value(depth + 1)
      if (members.has(key)) this.note(keyOffset, `"${key}" appears twice`, "Keep one of them.")
      else members.set(key, { keyOffset, node })
    })
    const value = Object.fromEntries([...members].map(([key, { node }]) => [key, node.value]))
    return { offset, end: this.at, members, value }
  }

  key(): string {
    if (this.text[this.at] === '"') return this.string()
    WORD.lastIndex = this.at
    const word = WORD.exec(this.text)?.[0]
    if (word !== undefined) this.broken(this.at, `the key ${word} has no quotes`, `Write "${word}".`)
    return this.broken(
      this.at,
      `a key in double quotes is missing before ${this.found()}`,
      'Write "key": value, or close the object with }.'
    )
  }

  array(depth: number): Node {
    const offset = this.at
    const items: Array<Node> = []
    this.list("]", () => items.push(this.value(depth + 1)))
    return { offset, end: this.at, items, value: items.map((item) => item.value) }
  }

  /** Parses elements, separated by commas, up to the closing bracket. A trailing comma is accepted. */
  list(close: string, element: () => void): void {
    const open = this.at++
    const name = close === "}" ? "object" : "list"
    for (let first = true; ; first = false) {
      this.skip()
      const char = this.text[this.at]
      if (char === close) break
      if (char === undefined) this.broken(open, `the ${name} does not end`, `Close it with ${close}.`)
      if (!first) {
        if (char === ",") {
          this.at++
          this.skip()
          if (this.text[this.at] === close) break
        } else if (char === '"' || char === "{" || char === "[") {
          this.note(this.at, `a comma is missing before ${this.found()}`, "Put a comma between the two.")
        } else
          this.broken(
            this.at,
            `expected a comma or ${close}, found ${this.found()}`,
            `Close the ${name} with ${close}.`
          )
      }
      element()
    }
    this.at++
  }

  document(): Node {
    this.skip()
    if (this.at >= this.text.length) this.broken(0, "the file is empty", 'Write at least { "agents": {} }.')
    const root = this.value(1)
    this.skip()
    if (this.at < this.text.length)
      this.broken(this.at, `${this.found()} follows the end`, "Remove what follows the last bracket.")
    return root
  }
}

export const read = (text: string): Reading => {
  const reader = new Reader(text)
  try {
    return { root: reader.document(), problems: reader.problems }
  } catch (error) {
    if (error instanceof Broken) return { root: undefined, problems: [...reader.problems, error.problem] }
    throw error
  }
}

/** The line and column of an offset, both counted from 1, as in editors. */
export const position = (text: string, offset: number): { readonly line: number; readonly column: number } => {
  const before = text.slice(text.startsWith("\uFEFF") ? 1 : 0, offset)
  const start = before.lastIndexOf("\n") + 1
  return { line: before.split("\n").length, column: before.length - start + 1 }
}

/** The offset of the node at a path, or of its nearest existing parent. With `key`: the offset of the node's key. */
export const locate = (root: Node, path: ReadonlyArray<PropertyKey>, key: boolean): number => {
  let node = root
  for (const [index, segment] of path.entries()) {
    const member = node.members?.get(String(segment))
    const next = member?.node ?? (typeof segment === "number" ? node.items?.[segment] : undefined)
    if (next === undefined) return node.offset
    if (key && member !== undefined && index === path.length - 1) return member.keyOffset
    node = next
  }
  return node.offset
}
