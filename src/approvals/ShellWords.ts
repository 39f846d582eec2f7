/**
 * ShellWords: the words, assignments and redirections of one command of a shell line. Pure.
 *
 * Guarantees: a word has a value only if it is certain which text the program gets.
 */
import type * as Bash from "unbash"
import type { Word } from "./Reading.ts"

export interface Redirection {
  readonly operator: string
  /** The file; undefined if there is none, as in `2>&1`. */
  readonly target: Word | undefined
  readonly access: "reads" | "writes" | "none"
}

/** Names for variables of the line's own that no program reads. */
const OWN_NAME =
  /^(?!.*(npm|proxy|path|prompt|ifs|env|argv|status|fignore|psvar|watch|hist|signal|dirs|alias|function|command|option|config))[a-z][a-z0-9]*(_[a-z0-9]+)*$/

export const isOwnName = (name: string): boolean => OWN_NAME.test(name)

const WRITES: ReadonlySet<string> = new Set([">", ">>", ">|", "&>", "&>>", "<>", ">&"])

const unknown = (text: string): Word => ({ value: undefined, globs: true, text })

/** The values of variables that loops set, within the loop. */
export type Loops = ReadonlyMap<string, Word>

/** The value of a loop's variable; undefined if the part is something else, or if the shell may split the value. */
const loopValue = (part: Bash.WordPart, loops: Loops, quoted: boolean): Word | undefined => {
  const name =
    part.type === "SimpleExpansion"
      ? part.text.slice(1)
      : part.type === "ParameterExpansion" && part.text === `\${${part.parameter}}`
        ? part.parameter
        : ""
  const word = loops.get(name)
  return word !== undefined && (quoted || (!word.globs && /^[\w@%+:,./-]+$/.test(word.value ?? " "))) ? word : undefined
}

/** The value that parts of a word have together. `quoted`: in double quotes, where an expansion stays one word. */
const valueOf = (parts: ReadonlyArray<Bash.WordPart>, loops: Loops, quoted: boolean): Omit<Word, "text"> => {
  let value: string | undefined = ""
  let globs = false
  const add = (text: string | undefined) => {
    value = value === undefined || text === undefined ? undefined : value + text
  }
  for (const part of parts) {
    if (part.type === "Literal" || part.type === "SingleQuoted" || part.type === "AnsiCQuoted") add(part.value)
    else if (part.type === "DoubleQuoted" || part.type === "LocaleString") {
      const inner = valueOf(part.parts, loops, true)
      globs ||= inner.globs
      add(inner.value)
    } else if (part.type === "Glob") {
      globs = true
      add(part.text)
    } else {
      const known = loopValue(part, loops, quoted)
      globs ||= known === undefined ? !quoted : known.globs
      add(known?.value)
    }
  }
  return { value, globs }
}

export const NO_LOOPS: Loops = new Map()

/** True if braces may make several words of it: the parser takes some such words for one text. */
const mayBrace = ({ parts, text }: Bash.Word): boolean =>
  text.includes("{") &&
  /,|\.\./.test(text) &&
  (parts ?? [{ type: "Literal", text }]).some((part) => part.type === "Literal" && part.text.includes("{"))

export const wordOf = (word: Bash.Word, loops = NO_LOOPS): Word => {
  const { parts, text } = word
  if (mayBrace(word)) return unknown(text)
  // the shell puts a home folder in the place of a tilde, also behind the = of an assignment
  if (/^~|^[A-Za-z_]\w*=~/.test(text)) return unknown(text)
  if (parts === undefined) return { value: word.value, globs: false, text }
  const { globs, value } = valueOf(parts, loops, false)
  const isOfLoop = loops.size > 0 && value !== undefined && text.includes("$")
  return { value, globs, text: isOfLoop ? value : text }
}

export const argumentOf = (argument: Bash.CommandArgument, loops: Loops): Word => {
  if (argument.type === "Word") return wordOf(argument, loops)
  const { name, text, value } = argument
  const given = value.type === "Word" ? wordOf(value, loops) : unknown(text)
  return { ...given, text, value: given.value === undefined ? undefined : `${name}=${given.value}` }
}

export const redirectionOf = (node: Bash.Redirection, loops: Loops): Redirection => {
  const { operator } = node
  if (node.type !== "Redirect") return { operator, target: undefined, access: "none" }
  const target = node.target === undefined ? undefined : wordOf(node.target, loops)
  const isDescriptor = /^(\d+-?|-)$/.test(target?.value ?? "")
  if (operator === "<&") return { operator, target, access: isDescriptor ? "none" : "reads" }
  if (operator === ">&" && isDescriptor) return { operator, target, access: "none" }
  return { operator, target, access: WRITES.has(operator) ? "writes" : "reads" }
}
