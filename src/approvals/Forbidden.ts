/**
 * Forbidden: rules that deny a part of a shell line, or ask about it. Pure.
 *
 * Guarantees: matches widely. A rule holds through wrappers, in any order of options, and for what the words tell a
 * program to run. A part that may be what such a rule names, which only the shell will know, is asked.
 */
import { resolve } from "node:path"
import { belowRoot, joined } from "./Paths.ts"
import type { Part } from "./Parts.ts"
import type { ProgramReading, Word } from "./Reading.ts"
import type { Rule } from "./Rule.ts"
import { closest, type RuleSet } from "./RuleSet.ts"
import { programName } from "./Wrappers.ts"

/** Rules that name the part for certain, and rules that may name it. */
interface Found {
  readonly deny: Array<Rule>
  readonly ask: Array<Rule>
  readonly maybe: Array<Rule>
}

/** True if the command reads the files below a folder without naming them. */
const isRecursive = (
  { files = [], shape: [program, verb = ""] }: ProgramReading,
  words: ReadonlyArray<Word>
): boolean => {
  const has = (option: RegExp) => words.some(({ value }) => option.test(value ?? ""))
  if (program === "git") {
    const paths = words.slice(words.findIndex(({ value }) => value === "--") + 1 || words.length)
    const isNamed = paths.length > 0 && paths.every(({ value }) => value !== undefined && !/[*?[:(]/.test(value))
    const isAll = verb === "add" && has(/^(-A|-u|--all|--update)$/)
    return isAll || (!isNamed && (/^(grep|diff|show)$/.test(verb) || has(/^(-p|-u|--patch)$/)))
  }
  if (files.length > 0) return false
  return program === "grep"
    ? has(/^(-[a-zA-Z]*[rR]|--(dereference-)?recursive$)/)
    : program === "rg" || program === "ag" || program === "ack"
}

/** Programs that meet no file at all. */
const FILELESS: ReadonlySet<string> = new Set(
  "echo printf cd pwd true false : sleep date seq whoami id uname".split(" ")
)

/** Rules about what the words tell a program to run: `ssh host curl x`, `node -e "…"`. */
const told = (rules: RuleSet, words: ReadonlyArray<Word>): ReadonlyArray<Rule> => {
  const texts = words.slice(1).map(({ text, value }) => value ?? text)
  const names = texts.map(programName)
  return rules.strict.flatMap(({ pattern, rule }) => {
    const more = pattern.words.flatMap((word) => (typeof word === "string" ? [] : [word.text]))
    const program = programName(pattern.program)
    const isWord = names.includes(program) && more.every((one) => texts.includes(one))
    const isText = (text: string) => /[\s;|&(`]/.test(text) && [program, ...more].every((one) => text.includes(one))
    return isWord || texts.some(isText) ? [rule] : []
  })
}

/** A path through the folder of a process, which Linux offers. */
export const OF_PROCESS = /\/(self|thread-self|\d+)\/(cwd|root)(\/|$)/

/** A path that leaves the work tree and comes back into it by its name. */
const throughRoot = (root: string | undefined, folder: string, path: string): string | undefined => {
  const whole = root === undefined ? "" : resolve(root, folder, path)
  return whole.startsWith(`${root}/`) ? whole.slice(root!.length + 1) : undefined
}

/** Adds the rules about a file that the part reads or writes. */
const meet = (rules: RuleSet, { folders, root }: Part, word: Word, access: "write" | "read", found: Found): void => {
  const { globs, value } = word
  const isLost = folders === undefined && belowRoot(word, value ?? "") === undefined
  const isAny = value === undefined || isLost || OF_PROCESS.test(value)
  const anyFile = isAny ? rules.below(access, "") : undefined
  if (anyFile !== undefined) found.maybe.push(anyFile)
  for (const folder of folders ?? [""]) {
    const path = value === undefined ? undefined : (joined(folder, value) ?? throughRoot(root, folder, value))
    if (path === undefined) continue
    const [deny, ask] = [rules.forPath("deny", access, path), rules.forPath("ask", access, path)]
    if (deny !== undefined) found.deny.push(deny)
    if (ask !== undefined) found.ask.push(ask)
    const below = rules.below(access, globs ? "" : path)
    if (below !== undefined && deny === undefined && ask === undefined) found.maybe.push(below)
  }
}

const files = (rules: RuleSet, part: Part, reading: ProgramReading): Found => {
  const { base, extra, shape } = reading
  const found: Found = { deny: [], ask: [], maybe: [] }
  for (const { access, target } of part.redirections)
    if (target !== undefined && access !== "none")
      meet(rules, part, target, access === "writes" ? "write" : "read", found)
  const [program = ""] = shape
  // some CLIs keep the folder for later calls, which read there without naming it
  for (const { value = "" } of program === "cd" ? part.words.slice(1) : [])
    for (const folder of part.folders ?? [""]) {
      const within = `${joined(folder, value) ?? value}/x`
      const rule = rules.forPath("deny", "read", within) ?? rules.forPath("ask", "read", within)
      if (rule !== undefined) found.maybe.push(rule)
    }
  if (part.words.length === 0 || FILELESS.has(program)) return found
  const isReader = base === undefined && extra.length === 0
  const names = part.words.slice(1).flatMap((word) => {
    // git names a file of a revision behind a colon
    const value = word.value?.replace(/^--?[\w-]+=/, "").replace(/^[^:/]*:(?:\([^()]*\))?(?!\/\/)/, "")
    return value?.startsWith("-") === true ? [] : [{ ...word, value }]
  })
  for (const word of names) {
    meet(rules, part, word, "read", found)
    if (!isReader) meet(rules, part, word, "write", found)
    const text = (word.value ?? word.text).toLowerCase()
    if (!isReader)
      for (const { host, rule } of rules.strictHosts) if (text.includes(host)) found[rule.effect as "ask"].push(rule)
  }
  const below = isRecursive(reading, part.words) ? rules.below("read", "") : undefined
  if (below !== undefined && found.deny.length === 0) found.maybe.push(below)
  return found
}

export interface Forbidden {
  readonly verdict: "deny" | "ask"
  readonly rule: Rule
  /** False: the part may be what the rule names. */
  readonly certain: boolean
}

/** The verdict of rules that deny or ask about a part; undefined if there is none. */
export const forbidden = (rules: RuleSet, part: Part, reading: ProgramReading): Forbidden | undefined => {
  if (!rules.isStrict) return undefined
  const { words } = part
  const { base, extra, shape, star } = reading
  const isPlain = extra.length === 0 && base?.kind !== "unknown"
  const found = files(rules, part, reading)
  const isReader = isPlain && (star || base === undefined)
  // words right behind the program are its subcommands, whatever follows
  const isShape = isPlain || shape.every((word, index) => words[index]?.value === word)
  for (const effect of ["deny", "ask"] as const) {
    const { maybe, yes } = rules.touching(effect, words, isShape ? shape : undefined)
    found[effect].push(...yes)
    found.maybe.push(...maybe)
  }
  if (!isReader && words.length > 1) found.maybe.push(...told(rules, words))
  const [denied, asked, feared] = [closest(found.deny), closest(found.ask), closest(found.maybe)]
  if (denied !== undefined) return { verdict: "deny", rule: denied, certain: true }
  const rule = asked ?? feared
  return rule === undefined ? undefined : { verdict: "ask", rule, certain: asked !== undefined }
}
