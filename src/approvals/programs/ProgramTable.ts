/**
 * ProgramTable: reads the entries of programs from a text, which is denser than code. Pure.
 *
 *     # man 1 %, Debian 12                    the source of the entries below; % is the last word of the name
 *     @NAME: OPTIONS                          a list that other lists include by @NAME
 *     git tag|branch, hub tag: names *        the entries `git tag`, `git branch` and `hub tag`, and what they are
 *       -l --list                             options of plain use, over any number of lines
 *       writes -d --delete                    options with a further effect, or another list of the form
 *     cargo fmt: none writes = formats files  the effect of plain use, and its words
 *
 * What an entry is: one of the operands, traits, a number (the most words) and the effect of plain use. With any other
 * word, nothing is known of it.
 */
import { KINDS, LISTS, OPERANDS, type Program, TRAITS, wordsOf } from "./Program.ts"

type Programs = { [name: string]: Program }
type Checks = { readonly [name: string]: NonNullable<Program["check"]> }

const NONE = "no option is read"
const KNOWN: ReadonlySet<string> = new Set([...KINDS, ...OPERANDS.split(" "), ...TRAITS.split(" ")])

/** An entry as its first line has it. */
const headOf = (source: string, words: string, what: string | undefined): Program => {
  const all = words.split(" ")
  const isRead = all.every((word) => /^\d$/.test(word) || KNOWN.has(word))
  const does = isRead ? KINDS.find((kind) => all.includes(kind)) : "unknown"
  const operands = OPERANDS.split(" ").find((word) => all.includes(word)) ?? "none"
  const most = all.find((word) => /^\d$/.test(word)) ?? (operands === "none" ? 0 : Infinity)
  const is = new Set(TRAITS.split(" ").filter((trait) => all.includes(trait)))
  const own = does === "runs" ? "runs the project's own code" : undefined
  const lists = is.has("open") ? {} : { options: "" }
  return { source, operands, most: Number(most), is, does, what: what ?? own, lists, subs: {}, check: undefined }
}

/** A program that the table does not have, to which words go that another program passes on. */
export const otherProgram = (options: string): Program => ({
  ...headOf(NONE, "project words", undefined),
  lists: { options }
})

/** An entry with one more line of it. */
const withLine = (program: Program, line: string): Program => {
  const [key = "", ...rest] = wordsOf(line)
  const list = LISTS.find((name) => name === key) ?? "options"
  const more = list === key ? rest.join(" ") : line
  return { ...program, lists: { ...program.lists, [list]: `${program.lists[list] ?? ""} ${more}`.trim() } }
}

/** The names of entries: `a b|c, d` is `a b`, `a c` and `d`. */
const namesOf = (text: string): ReadonlyArray<ReadonlyArray<string>> =>
  text
    .split(", ")
    .flatMap((name) =>
      name
        .split(" ")
        .reduce<ReadonlyArray<ReadonlyArray<string>>>(
          (all, word) => all.flatMap((before) => word.split("|").map((one) => [...before, one])),
          [[]]
        )
    )

/** Puts an entry below its program, which then has subcommands. */
const put = (programs: Programs, [name = "", ...below]: ReadonlyArray<string>, program: Program): void => {
  const own = programs[name]
  if (below.length === 0) {
    programs[name] = { ...program, subs: own?.subs ?? {} }
    return
  }
  const parent = own ?? headOf(program.source, "sub", undefined)
  const subs = { ...parent.subs }
  put(subs, below, program)
  programs[name] = { ...parent, subs }
}

/** The entries of a text. A check is found by the names of its entry, as they are written. */
export const tableOf = (text: string, checks: Checks = {}): { readonly [name: string]: Program } => {
  const programs: Programs = Object.create(null)
  const lists = new Map<string, string>()
  let source = NONE
  for (const block of text.split(/\n(?! )/)) {
    const [head = "", ...body] = block.split("\n")
    if (head.startsWith("#")) source = head.slice(2)
    else if (head.startsWith("@")) {
      const end = head.indexOf(":")
      lists.set(head.slice(0, end), included([head.slice(end + 1), ...body].join(" "), lists))
    } else if (head !== "") {
      const at = head.indexOf(": ")
      const [words = "", what] = head.slice(at + 2).split(" = ")
      for (const name of namesOf(head.slice(0, at))) {
        const last = source.replace("%", name.at(-1)!)
        const program = body.reduce(
          (found, line) => withLine(found, included(line, lists)),
          headOf(words.split(" ").includes("open") ? NONE : last, words, what)
        )
        put(programs, name, { ...program, check: checks[head.slice(0, at)] })
      }
    }
  }
  return programs
}

const included = (line: string, lists: ReadonlyMap<string, string>): string =>
  line
    .split(" ")
    .map((word) => lists.get(word) ?? word)
    .join(" ")
