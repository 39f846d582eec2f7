/**
 * RegexpSteps: counts the steps that a backtracking matcher takes on a text. It does not measure time, so a superlinear
 * pattern is found on any machine under any load.
 *
 * A pattern is compiled into a small program. The machine runs it as V8 runs a pattern: alternatives in order, and the
 * last choice is undone first. Each instruction is one step. The machine finds the same matches as `RegExp`, which a
 * test checks. `pumps` makes texts that force a pattern to make many choices: the text before each loop, and the text
 * that each loop takes, repeated.
 */

type Test = (char: string) => boolean

type Node =
  | { readonly tag: "char"; readonly test: Test; readonly sample: string }
  | { readonly tag: "seq"; readonly items: ReadonlyArray<Node> }
  | { readonly tag: "any"; readonly of: ReadonlyArray<Node> }
  | { readonly tag: "loop"; readonly body: Node; readonly min: number; readonly max: number; readonly lazy: boolean }
  | { readonly tag: "group"; readonly index: number; readonly body: Node }
  | { readonly tag: "back"; readonly index: number }
  | { readonly tag: "at"; readonly kind: "^" | "$" | "b" | "B" }
  | { readonly tag: "look"; readonly body: Node; readonly behind: boolean; readonly not: boolean }

/** Parses the part of JavaScript's regular expressions that this project uses; anything else is an error. */
class Parser {
  private at = 0
  groups = 0
  private readonly source: string
  private readonly flags: string

  constructor(source: string, flags: string) {
    this.source = source
    this.flags = flags
  }

  whole(): Node {
    const node = this.alternatives()
    if (this.at < this.source.length) throw this.unknown()
    return node
  }

  private unknown(): Error {
    return new Error(`RegexpSteps cannot read /${this.source}/ at ${this.at}`)
  }

  private take(text: string): boolean {
    if (!this.source.startsWith(text, this.at)) return false
    this.at += text.length
    return true
  }

  private alternatives(): Node {
    const of: Array<Node> = [this.sequence()]
    while (this.take("|")) of.push(this.sequence())
    return of.length === 1 ? of[0]! : { tag: "any", of }
  }

  private sequence(): Node {
    const items: Array<Node> = []
    while (this.at < this.source.length && !"|)".includes(this.source[this.at]!))
      items.push(this.quantified(this.atom()))
    return { tag: "seq", items }
  }

  private quantified(body: Node): Node {
    const counts = /^(?:[*+?]|\{(\d+)(,?)(\d*)\})/.exec(this.source.slice(this.at))
    if (counts === null) return body
    this.at += counts[0].length
    const [, least, comma, most] = counts
    const [min, max] =
      least === undefined
        ? [counts[0] === "+" ? 1 : 0, counts[0] === "?" ? 1 : Infinity]
        : [Number(least), comma === "" ? Number(least) : most === "" ? Infinity : Number(most)]
    return { tag: "loop", body, min, max, lazy: this.take("?") }
  }

  private atom(): Node {
    for (const kind of ["^", "$"] as const) if (this.take(kind)) return { tag: "at", kind }
    for (const kind of ["b", "B"] as const) if (this.take(`\\${kind}`)) return { tag: "at", kind }
    for (const [open, behind, not] of [
      ["(?=", false, false],
      ["(?!", false, true],
      ["(?<=", true, false],
      ["(?<!", true, true]
    ] as const)
      if (this.take(open)) return { tag: "look", body: this.closed(), behind, not }
    if (this.take("(?:")) return this.closed()
    if (this.source.startsWith("(?", this.at)) throw this.unknown()
    if (this.take("(")) {
      const index = ++this.groups
      return { tag: "group", index, body: this.closed() }
    }
    const back = /^\\([1-9])/.exec(this.source.slice(this.at))
    if (back !== null) {
      this.at += 2
      return { tag: "back", index: Number(back[1]) }
    }
    return this.char()
  }

  private closed(): Node {
    const body = this.alternatives()
    if (!this.take(")")) throw this.unknown()
    return body
  }

  /** A character, an escape or a class; JavaScript's own RegExp decides which characters match. */
  private char(): Node {
    const text = /^(?:\[\^?(?:\\[^]|[^\]\\])*\]|\\(?:u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|[pP]\{[\w=]+\}|[^])|[^])/u.exec(
      this.source.slice(this.at)
    )?.[0]
    if (text === undefined) throw this.unknown()
    this.at += text.length
    const one = new RegExp(`^(?:${text})$`, this.flags.replaceAll(/[gym]/g, ""))
    const known = new Map<string, boolean>()
    const test: Test = (char) => {
      const said = known.get(char) ?? one.test(char)
      known.set(char, said)
      return said
    }
    return { tag: "char", test, sample: [...text].length === 1 ? text : (ALPHABET.find(test) ?? "\u0001") }
  }
}

/** Characters that are tried as samples of a class. */
const ALPHABET = [..."a0-_ .\t\n\r/@:;,<>\"'`=*#()[]{}|~+%$!?&^\\ZS9\u0000\u00a0\u2028\uFFFDé"]

type Op =
  | { readonly op: "char"; readonly test: Test }
  | { readonly op: "split"; readonly first: number; readonly second: number }
  | { readonly op: "jump"; readonly to: number }
  | { readonly op: "save"; readonly slot: number }
  | { readonly op: "mark"; readonly slot: number }
  | { readonly op: "moved"; readonly slot: number }
  | { readonly op: "back"; readonly index: number }
  | { readonly op: "at"; readonly kind: "^" | "$" | "b" | "B" }
  | { readonly op: "look"; readonly program: ReadonlyArray<Op>; readonly behind: boolean; readonly not: boolean }
  | { readonly op: "match" }

const MAX_OPS = 20_000

class Compiler {
  readonly ops: Array<Op> = []
  private slots: number

  constructor(slots: number) {
    this.slots = slots
  }

  compile(node: Node): ReadonlyArray<Op> {
    this.emit(node)
    this.ops.push({ op: "match" })
    if (this.ops.length > MAX_OPS)
      throw new Error("RegexpSteps: the pattern is too long when its counts are written out")
    return this.ops
  }

  private emit(node: Node): void {
    switch (node.tag) {
      case "char":
        this.ops.push({ op: "char", test: node.test })
        return
      case "seq":
        for (const item of node.items) this.emit(item)
        return
      case "any":
        return this.alternatives(node.of)
      case "loop":
        return this.loop(node)
      case "group":
        this.ops.push({ op: "save", slot: node.index * 2 })
        this.emit(node.body)
        this.ops.push({ op: "save", slot: node.index * 2 + 1 })
        return
      case "look":
        this.ops.push({ ...node, op: "look", program: new Compiler(this.slots).compile(node.body) })
        return
      case "back":
        this.ops.push({ op: "back", index: node.index })
        return
      case "at":
        this.ops.push({ op: "at", kind: node.kind })
    }
  }

  private alternatives(of: ReadonlyArray<Node>): void {
    const jumps: Array<number> = []
    for (const [index, node] of of.entries()) {
      const split = index < of.length - 1 ? this.ops.push({ op: "match" }) - 1 : undefined
      this.emit(node)
      if (split === undefined) continue
      jumps.push(this.ops.push({ op: "match" }) - 1)
      this.ops[split] = { op: "split", first: split + 1, second: this.ops.length }
    }
    for (const jump of jumps) this.ops[jump] = { op: "jump", to: this.ops.length }
  }

  private loop({ body, lazy, max, min }: Extract<Node, { tag: "loop" }>): void {
    const choice = (at: number, into: number, past: number) => {
      this.ops[at] = lazy ? { op: "split", first: past, second: into } : { op: "split", first: into, second: past }
    }
    for (let n = 0; n < min; n++) this.emit(body)
    const splits: Array<number> = []
    if (max === Infinity) {
      // As in JavaScript, an iteration that matches no text ends the loop.
      const slot = this.slots++
      const split = this.ops.push({ op: "match" }) - 1
      this.ops.push({ op: "mark", slot })
      this.emit(body)
      this.ops.push({ op: "moved", slot }, { op: "jump", to: split })
      choice(split, split + 1, this.ops.length)
      return
    }
    for (let n = min; n < max; n++) {
      splits.push(this.ops.push({ op: "match" }) - 1)
      this.emit(body)
    }
    for (const split of splits) choice(split, split + 1, this.ops.length)
  }
}

/** Texts that can stand before a loop, and texts that one iteration can match. */
interface Leads {
  readonly before: Set<string>
  readonly units: Set<string>
}

const MAX_SAMPLES = 4
const MAX_LEADS = 24
const MAX_UNITS = 16

/** Some texts that a node matches, but not all of them. */
const samplesOf = (node: Node): ReadonlyArray<string> => {
  switch (node.tag) {
    case "char":
      return [node.sample]
    case "group":
      return samplesOf(node.body)
    case "any":
      return node.of.flatMap((one) => samplesOf(one).slice(0, 1)).slice(0, MAX_SAMPLES)
    case "loop":
      return samplesOf(node.body).map((one) => one.repeat(Math.max(1, node.min)))
    case "seq":
      return node.items.reduce<ReadonlyArray<string>>(
        (texts, item) => texts.flatMap((text) => samplesOf(item).map((more) => text + more)).slice(0, MAX_SAMPLES),
        [""]
      )
    default:
      return [""]
  }
}

const charsOf = (node: Node): ReadonlyArray<Extract<Node, { tag: "char" }>> =>
  node.tag === "char"
    ? [node]
    : node.tag === "seq"
      ? node.items.flatMap(charsOf)
      : node.tag === "any"
        ? node.of.flatMap(charsOf)
        : "body" in node
          ? charsOf(node.body)
          : []

const loopsOf = (node: Node): ReadonlyArray<Extract<Node, { tag: "loop" }>> =>
  node.tag === "seq"
    ? node.items.flatMap(loopsOf)
    : node.tag === "any"
      ? node.of.flatMap(loopsOf)
      : node.tag === "loop"
        ? [node, ...loopsOf(node.body)]
        : "body" in node
          ? loopsOf(node.body)
          : []

/** Collects the texts before each node and the units of its loops; returns texts that can stand after the node. */
const lead = (node: Node, before: ReadonlyArray<string>, found: Leads): ReadonlyArray<string> => {
  for (const text of before) found.before.add(text)
  switch (node.tag) {
    case "seq":
      return node.items.reduce((texts, item) => lead(item, texts, found), before)
    case "any":
      return node.of.flatMap((one) => lead(one, before, found).slice(0, 2)).slice(0, MAX_SAMPLES)
    case "group":
      return lead(node.body, before, found)
    case "look":
      lead(node.body, before, found)
      return before
    case "loop": {
      lead(node.body, before, found)
      const taken = samplesOf(node)
      if (node.max === Infinity) for (const text of taken) found.units.add(text)
      return before.flatMap((text) => taken.map((more) => text + more)).slice(0, MAX_SAMPLES)
    }
    default:
      return before.flatMap((text) => samplesOf(node).map((more) => text + more))
  }
}

interface Found {
  readonly index: number
  readonly end: number
}

const LINE_END = /[\n\r\u2028\u2029]/
const WORD = /\w/

const withSlot = (saved: ReadonlyArray<number>, slot: number, at: number): ReadonlyArray<number> => {
  const next = [...saved]
  next[slot] = at
  return next
}

/** A compiled pattern that counts its steps. */
export class CountedPattern {
  /** Instructions run since this pattern was made. */
  steps = 0
  private end = Infinity
  readonly source: string
  readonly flags: string
  private readonly tree: Node
  private readonly program: ReadonlyArray<Op>
  private readonly slots: number

  constructor(source: string, flags: string) {
    this.source = source
    this.flags = flags
    const parser = new Parser(source, flags)
    this.tree = parser.whole()
    this.slots = (parser.groups + 1) * 2
    this.program = new Compiler(this.slots).compile(this.tree)
  }

  /** Whether the pattern has a loop without a maximum. Without one, each position costs a bounded number of steps. */
  get unbounded(): boolean {
    return loopsOf(this.tree).some(({ max }) => max === Infinity)
  }

  /** Functions that make a text of about the wanted length that forces the pattern to make many choices. */
  pumps(): ReadonlyArray<(length: number) => string> {
    const found: Leads = { before: new Set([""]), units: new Set() }
    for (const text of lead(this.tree, [""], found)) found.before.add(text)
    const bodies = loopsOf(this.tree).flatMap(({ body, max }) => (max === Infinity ? [charsOf(body)] : []))
    for (const { test } of bodies.flat())
      for (const char of ALPHABET.filter(test).slice(0, MAX_SAMPLES)) found.units.add(char)
    for (const { sample } of charsOf(this.tree))
      if (bodies.some((chars) => chars.some(({ test }) => test(sample)))) found.units.add(sample)
    const units = [...found.units].slice(0, MAX_UNITS)
    return [...found.before]
      .slice(0, MAX_LEADS)
      .flatMap((before) =>
        units.flatMap((unit) =>
          ["", "\n\u0001", "a"].flatMap((end) => [
            (length: number) => before + unit.repeat(length / unit.length) + end,
            (length: number) => (before + unit).repeat(length / (before.length + unit.length)) + end
          ])
        )
      )
  }

  /** The matches in a text: all of them if the pattern is global or sticky, otherwise the first. */
  all(text: string): ReadonlyArray<Found> {
    const found: Array<Found> = []
    for (let from = 0; from <= text.length;) {
      if (this.steps > this.end) break
      const end = this.run(this.program, text, from, [])
      if (end !== undefined) found.push({ index: from, end })
      if (end !== undefined && !/[gy]/.test(this.flags)) break
      from = Math.max(end ?? 0, from + 1)
    }
    return found
  }

  /** The steps of a search through a text. The search stops at the limit, because some patterns would never end. */
  stepsOver(text: string, limit = 10_000_000): number {
    const before = this.steps
    this.end = before + limit
    this.all(text)
    this.end = Infinity
    return this.steps - before
  }

  private stands(kind: "^" | "$" | "b" | "B", text: string, at: number): boolean {
    const lines = this.flags.includes("m")
    const [before, after] = [text[at - 1], text[at]]
    if (kind === "^") return before === undefined || (lines && LINE_END.test(before))
    if (kind === "$") return after === undefined || (lines && LINE_END.test(after))
    const edge = (before !== undefined && WORD.test(before)) !== (after !== undefined && WORD.test(after))
    return edge === (kind === "b")
  }

  /** A lookbehind is only supported for one character; this project's patterns need no more. */
  private looks(op: Extract<Op, { op: "look" }>, text: string, at: number, saved: ReadonlyArray<number>): boolean {
    if (!op.behind) return this.run(op.program, text, at, saved) !== undefined
    return at > 0 && this.run(op.program, text, at - 1, saved) === at
  }

  private run(
    program: ReadonlyArray<Op>,
    text: string,
    start: number,
    given: ReadonlyArray<number>
  ): number | undefined {
    const choices: Array<readonly [pc: number, at: number, saved: ReadonlyArray<number>]> = [[0, start, given]]
    for (let choice = choices.pop(); choice !== undefined; choice = choices.pop()) {
      let [pc, at, saved] = choice
      if (this.steps > this.end) return undefined
      for (let going = true; going;) {
        this.steps++
        const op = program[pc]!
        switch (op.op) {
          case "match":
            return at
          case "char":
            going = at < text.length && op.test(text[at]!)
            at++
            pc++
            break
          case "split":
            choices.push([op.second, at, saved])
            pc = op.first
            break
          case "jump":
            pc = op.to
            break
          case "save":
          case "mark":
            saved = withSlot(saved, op.slot, at)
            pc++
            break
          case "moved":
            going = saved[op.slot] !== at
            pc++
            break
          case "back": {
            const group = text.slice(saved[op.index * 2] ?? 0, saved[op.index * 2 + 1] ?? 0)
            this.steps += group.length
            going = text.startsWith(group, at)
            at += group.length
            pc++
            break
          }
          case "at":
            going = this.stands(op.kind, text, at)
            pc++
            break
          case "look":
            going = this.looks(op, text, at, saved) !== op.not
            pc++
        }
      }
    }
    return undefined
  }
}
