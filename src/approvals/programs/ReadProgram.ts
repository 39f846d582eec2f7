/**
 * ReadProgram: what a simple command does, as far as the table of programs tells. Pure.
 *
 * Wrappers such as `timeout` and `xargs` are unwrapped before: the table has them for their use alone.
 */
import { pathEffect, repositoryEffect } from "../Paths.ts"
import type { CallEffect, Folders, ProgramReading, Word } from "../Reading.ts"
import { type Program, wordsOf } from "./Program.ts"
import { otherProgram } from "./ProgramTable.ts"
import { programNamed } from "./Programs.ts"
import { WordReader } from "./WordReader.ts"

const unknown = (what: string): CallEffect => ({ kind: "unknown", what })

/** A program found by its name and its subcommands, and the words that are left. */
interface Found {
  readonly program: Program
  readonly shape: ReadonlyArray<string>
  readonly rest: ReadonlyArray<Word>
  readonly folders: Folders
  readonly extra: ReadonlyArray<CallEffect>
}

/** The program by its last subcommand in the table. */
const narrowed = (found: Found): Found => {
  const { extra, folders, program, rest, shape } = found
  const reader = new WordReader(program, shape.join(" "), rest, folders)
  const [next, ...others] = reader.first()
  if (next?.value === undefined || next.globs || !Object.hasOwn(program.subs, next.value)) return found
  return narrowed({
    program: program.subs[next.value]!,
    shape: [...shape, next.value],
    rest: others,
    folders: reader.folders,
    extra: [...extra, ...reader.extra]
  })
}

/** A subcommand that the table does not have: its name is said, and nothing is known of it. */
const strange = ({ extra, rest, shape }: Found): ProgramReading => {
  const name = rest.find(({ globs, value }) => !globs && value?.startsWith("-") === false)?.value ?? ""
  const whole = /^[a-z][\w:-]*$/.test(name) ? [...shape, name] : shape
  return { shape: whole, named: false, star: false, base: unknown(`${whole.join(" ")} is not in the table`), extra }
}

/** The effect of a word that is no option. */
const operandEffect = (program: Program, given: WordReader, word: Word, index: number): CallEffect | undefined => {
  const { edits, folders, operands, options } = given
  const value = word.value!
  const file = (from = word): CallEffect | undefined => pathEffect(from, folders, edits ? "writes" : "reads")
  const has = (names: ReadonlyArray<string>): boolean => options.some(({ name }) => names.includes(name))
  switch (program.operands) {
    case "read":
      return wordsOf(program.lists.marks).includes(value) ? undefined : file()
    case "write":
      return pathEffect(word, folders, "writes")
    case "copy": {
      const isTarget = index === operands.length - 1 && !has(["-t", "--target-directory"])
      // a copy may keep its name
      return (isTarget ? undefined : file()) ?? pathEffect(word, folders, "writes")
    }
    case "pattern":
      return index === 0 && !has(wordsOf(program.lists.by)) ? undefined : file()
    case "search":
      return index === 0 && !has(wordsOf(program.lists.by)) ? undefined : repositoryEffect(word, folders)
    case "names":
      return repositoryEffect(word, folders)
    case "remote":
      return index > 0 || /^\w[\w.-]*$/.test(value)
        ? undefined
        : { kind: "connects", what: `${value} is not the name of a remote` }
    case "project":
      // a list of options, or a value that is a path
      return /^@|[=:,]([/~]|\.\.(\/|$))/.test(value)
        ? unknown(`${value} may name a file elsewhere`)
        : edits && !word.globs && /[*?[{!(]/.test(value)
          ? { kind: "trusted", what: `${value} may stand for a file that other programs trust` }
          : file({ ...word, globs: true })
    case "packages":
      return /^\.{1,2}(\/|$)|\.go$/.test(value) ? file() : { kind: "connects", what: `${value} may be fetched` }
    case "any":
      return /\s/.test(value) ? undefined : file()
    default:
      return undefined
  }
}

/** Adds the effects of the words that are no options. The first of them may be a name. */
const follow = (program: Program, given: WordReader, isNamed: boolean, name: string): void => {
  const { add, extra, folders } = given
  const operands = isNamed ? given.operands.slice(1) : given.operands
  const isMany = program.most < Infinity && operands.some(({ globs, value }) => globs && value !== undefined)
  if (operands.length > program.most || isMany) add("unknown", `${name} has more words than the table knows`)
  const isText = program.operands === "text" || program.operands === "none"
  if (program.is.has("deaf")) return
  if (folders === undefined && !(isText && program.does === undefined)) {
    add("unknown", `${name} runs in a folder that is not known`)
  }
  for (const [index, word] of operands.entries()) {
    const effect = word.value === undefined ? undefined : operandEffect(program, given, word, index)
    if (word.value === undefined) add("unknown", `${word.text} is not known before it runs`)
    else if (effect !== undefined) extra.push(effect)
  }
}

/** The effects of words that go on to a program that the table does not know. */
const passedOn = (options: string, { behind, folders }: WordReader, name: string): ReadonlyArray<CallEffect> => {
  const other = otherProgram(options)
  const given = new WordReader(
    other,
    `${name} --`,
    behind[0]?.value === "--" ? behind.slice(1) : behind,
    folders
  ).read()
  follow(other, given, false, name)
  return given.extra
}

const plain = ({ extra, folders, program, rest, shape }: Found): ProgramReading => {
  const called = shape.join(" ")
  const given = new WordReader(program, called, rest, folders).read()
  const { is, lists } = program
  const { globs = true, value = "" } = (is.has("named") || is.has("may") ? given.operands[0] : undefined) ?? {}
  const named = !globs && /^[\w@][\w@:./+-]*$/.test(value) && !value.includes("..")
  if (is.has("named") && !named) given.add("unknown", `${called} runs what is not named`)
  follow(program, given, named, called)
  const checked = program.check?.(given)
  const passed = lists.behind === undefined ? [] : passedOn(lists.behind, given, called)
  const all = [...extra, ...given.extra, ...passed, ...(checked === undefined ? [] : [checked])]
  const hasText = given.options.some(({ name }) => wordsOf(lists.by).includes(name))
  const { does = given.edits ? "writes" : undefined, what = `${called} ${does} the work tree` } = program
  return {
    shape: named ? [...shape, value] : shape,
    named: named && !is.has("fixed"),
    star: is.has("*"),
    // the first word may be what is looked for
    files: given.operands.slice(program.operands === "pattern" && !hasText ? 1 : 0),
    base: does === undefined ? undefined : { kind: does, what },
    extra: all.filter((one, index) => all.findIndex(({ what }) => what === one.what) === index)
  }
}

/** Reads what a command does. The first word is the program; the folders are those in which it may run. */
export const readProgram = (words: ReadonlyArray<Word>, folders: Folders): ProgramReading => {
  const [first, ...rest] = words
  const name = first?.globs === true ? undefined : first?.value
  const program = name === undefined ? undefined : programNamed(name)
  if (name === undefined || program === undefined) {
    const what = name === undefined ? "the shell alone knows which program it is" : `${name} is not in the table`
    return { shape: name === undefined ? [] : [name], named: false, star: false, base: unknown(what), extra: [] }
  }
  const found = narrowed({ program, shape: [name], rest, folders, extra: [] })
  const { is, lists } = found.program
  const isTold = found.rest.length === 1 && wordsOf(lists.tells).includes(found.rest[0]!.value ?? "")
  if (isTold) return { shape: found.shape, named: false, star: is.has("*"), base: undefined, extra: found.extra }
  return is.has("sub") ? strange(found) : plain(found)
}
