/**
 * JsoncEdit: adds an entry to a list in a text of JSON with comments, or removes a value from it. Pure.
 *
 * Guarantees: all other values stay as they are, character by character, with their comments. A new entry takes the
 * indentation, the line ends and the trailing comma of its neighbors. A text in which `Jsonc` finds a problem is not
 * edited.
 *
 * The library jsonc-parser cannot be used instead: it lays out the neighbors again, and removes the comments between a
 * removed entry and the next one.
 */
import * as Jsonc from "./Jsonc.ts"

/** Keys of objects, and indices of lists. */
export type Path = ReadonlyArray<string | number>

const isObject = (value: unknown): value is { readonly [key: string]: unknown } =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** A value on one line: `{ "allow": "npm test" }`. */
const inline = (value: unknown): string => {
  if (Array.isArray(value)) return `[${value.map(inline).join(", ")}]`
  if (!isObject(value)) return JSON.stringify(value)
  const members = Object.entries(value).map(([key, one]) => `${JSON.stringify(key)}: ${inline(one)}`)
  return members.length === 0 ? "{}" : `{ ${members.join(", ")} }`
}

/** The offset behind white space and comments. `isLine`: only those that end on the same line. */
const skip = (text: string, from: number, isLine = false): number => {
  let at = from
  for (;;) {
    const char = text[at]
    if (char === " " || char === "\t" || char === "\r" || (char === "\n" && !isLine)) at++
    else if (text.startsWith("//", at)) {
      const end = text.indexOf("\n", at)
      at = end === -1 ? text.length : end
    } else if (text.startsWith("/*", at)) {
      const end = text.indexOf("*/", at) + 2
      if (isLine && text.slice(at, end).includes("\n")) return at
      at = end
    } else return at
  }
}

const isSpace = (char: string | undefined): boolean => char === " " || char === "\t"

/** The offset behind the comma that follows an entry, or its own end without such a comma. */
const behindComma = (text: string, end: number): number => {
  const at = skip(text, end)
  return text[at] === "," ? at + 1 : end
}

/** The white space at the begin of the line of an offset. */
const marginOf = (text: string, at: number): string =>
  /^[ \t]*/.exec(text.slice(text.lastIndexOf("\n", at - 1) + 1, at))![0]

const isFirstOfLine = (text: string, at: number): boolean =>
  text.lastIndexOf("\n", at - 1) + 1 + marginOf(text, at).length === at

interface Entry {
  readonly start: number
  readonly end: number
}

const entriesOf = ({ items = [], members }: Jsonc.Node): ReadonlyArray<Entry> =>
  members === undefined
    ? items.map(({ end, offset }) => ({ start: offset, end }))
    : [...members.values()].map(({ keyOffset, node }) => ({ start: keyOffset, end: node.end }))

const childOf = (node: Jsonc.Node, step: string | number): Jsonc.Node | undefined =>
  typeof step === "number" ? node.items?.[step] : node.members?.get(step)?.node

const rootOf = (text: string): Jsonc.Node | undefined => {
  const { problems, root } = Jsonc.read(text)
  return problems.length === 0 ? root : undefined
}

/** The text with a new last entry in a list or an object. `written` lays the entry out for its indentation. */
const withEntry = (
  text: string,
  parent: Jsonc.Node,
  { indent, newline }: { readonly indent: string; readonly newline: string },
  written: (margin: string) => string
): string => {
  const last = entriesOf(parent).at(-1)
  const outer = marginOf(text, parent.offset)
  if (last === undefined) {
    const inside = text.slice(parent.offset + 1, parent.end - 1)
    const entry = `${inside.trimEnd()}${newline}${outer}${indent}${written(outer + indent)}${newline}${outer}`
    return text.slice(0, parent.offset + 1) + entry + text.slice(parent.end - 1)
  }
  if (!text.slice(parent.offset, parent.end).includes("\n"))
    return `${text.slice(0, last.end)}, ${written(outer)}${text.slice(last.end)}`
  const margin = isFirstOfLine(text, last.start) ? marginOf(text, last.start) : outer + indent
  const behind = behindComma(text, last.end)
  // a comment behind the last entry is about that entry
  const at = behind + text.slice(behind, skip(text, behind, true)).trimEnd().length
  const [before, own] = behind === last.end ? [",", ""] : ["", ","]
  return `${text.slice(0, last.end)}${before}${text.slice(last.end, at)}${newline}${margin}${written(margin)}${own}${text.slice(at)}`
}

/**
 * The text with a value as the new last entry of the list at `path`. Missing objects and the missing list are added.
 * Undefined if the text has a problem, or something else is at `path` or on the way to it.
 */
export const append = (text: string, path: Path, value: unknown): string | undefined => {
  let parent = rootOf(text)
  let missing = path
  while (parent !== undefined && missing.length > 0) {
    const next = childOf(parent, missing[0]!)
    if (next === undefined) break
    parent = next
    missing = missing.slice(1)
  }
  if (parent === undefined || (missing.length === 0 ? parent.items : parent.members) === undefined) return undefined
  const style = {
    indent: /\n([ \t]+)["{[]/.exec(text)?.[1] ?? "  ",
    newline: text.includes("\r\n") ? "\r\n" : "\n"
  }
  const grown = ([key, ...rest]: Path, margin: string): string => {
    if (key === undefined) return inline(value)
    const [open, close] = rest.length === 0 ? ["[", "]"] : ["{", "}"]
    const inner = margin + style.indent
    return `${JSON.stringify(key)}: ${open}${style.newline}${inner}${grown(rest, inner)}${style.newline}${margin}${close}`
  }
  return withEntry(text, parent, style, (margin) => grown(missing, margin))
}

/**
 * The text without the value at `path`. An entry that has its lines for itself goes with a comment behind it on its
 * last line. Undefined if the text has a problem, or nothing is at `path`.
 */
export const remove = (text: string, path: Path): string | undefined => {
  let parent = rootOf(text)
  for (const step of path.slice(0, -1)) parent = parent === undefined ? undefined : childOf(parent, step)
  const step = path.at(-1)
  if (parent === undefined || step === undefined || childOf(parent, step) === undefined) return undefined
  const entries = entriesOf(parent)
  const index = typeof step === "number" ? step : [...parent.members!.keys()].indexOf(step)
  const { end, start } = entries[index]!
  const behind = behindComma(text, end)
  const rest = skip(text, behind, true)
  const isAlone = isFirstOfLine(text, start) && text[rest] === "\n"
  const isLast = index === entries.length - 1
  let from = isAlone ? text.lastIndexOf("\n", start - 1) : start
  if (!isAlone && isLast) while (isSpace(text[from - 1])) from--
  let to = isAlone ? rest : behind
  if (!isAlone && !isLast) while (isSpace(text[to])) to++
  const before = entries[index - 1]
  // without a comma behind the last entry, the comma before it goes
  const comma = behind === end && before !== undefined ? behindComma(text, before.end) - 1 : from
  const kept = text.slice(0, comma) + text.slice(comma + 1, from)
  const left = text.slice(to)
  const isEmpty = kept.trimEnd().length === parent.offset + 1 && /^\s*[\]}]/.test(left)
  return isEmpty ? kept.trimEnd() + left.trimStart() : kept + left
}
