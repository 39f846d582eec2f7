/**
 * Checks: programs whose words are a language of their own, such as the scripts of sed. Each says what the words do
 * beyond plain use; undefined if nothing. Pure.
 */
import { folderEffect, pathEffect } from "../Paths.ts"
import type { CallEffect, EffectKind, Word } from "../Reading.ts"
import { isOwnName } from "../ShellWords.ts"
import type { Given } from "./Program.ts"

type Check = (given: Given) => CallEffect | undefined

/** The effect of a word, if there is one that has it. */
const effect = (kind: EffectKind, bad: Word | undefined, what: string): CallEffect | undefined =>
  bad === undefined ? undefined : { kind, what: `${what} ${bad.text}` }

const has = ({ options }: Given, names: RegExp): boolean => options.some(({ name }) => names.test(name))

/** A number, or what the shell knows to be one. zsh evaluates other words as arithmetic, which can run something. */
const isNumber = ({ text, value = "" }: Word): boolean => /^[-+]?\d+$/.test(value) || /^"?\$[?#]"?$/.test(text)

/**
 * A command of sed that prints, deletes or replaces; none that writes, reads or runs (w, W, r, R, e). Dialects do not
 * agree on a mark within a set of characters, nor on a bracket that comes first in one: neither is read here.
 */
const SED = ["/", String.raw`\|`, "#", ","].map((mark) => {
  const text = String.raw`(?:\\.|\[(?!\^?\])(?:\[:\w{1,9}:\]|[^\]\[@\n])+\]|[^@\\\[])*`
  const line = String.raw`(?:\d+|\$|/${text.replaceAll("@", "/")}/I?)`
  const replaces = `s${mark}${text.replaceAll("@", mark)}${mark}(?:[^${mark}\\\\]|\\\\.)*${mark}[gpiI0-9]*`
  return new RegExp(String.raw`^(?:${line}(?:, ?(?:\+?\d+|${line}))?)? ?!?\{?(?:[pdq=PDNnhHgGxl]|${replaces})\}?$`)
})

/** Scripts of sed: those that follow -e, or the first word. */
export const sedScripts: Check = ({ operands, options }) => {
  const named = options.flatMap(({ name, values }) => (/^(-e|--expression|-f|--file)$/.test(name) ? values : []))
  const isPlain = ({ value }: Word): boolean =>
    value?.split(/[;\n]/).every((one) => SED.some((plain) => plain.test(one.trim()))) === true
  const scripts = named.length > 0 ? named : operands.slice(0, 1)
  return effect(
    "runs",
    scripts.find((word) => !isPlain(word)),
    "sed may write or run in"
  )
}

/**
 * A program of awk that only prints: a pattern, and `{ print … }` of fields and texts. `>` and `|` behind `print` would
 * write and run; a name would be a function, or the environment.
 */
const AWK = (() => {
  const field = String.raw`(?:\$?(?:NR|NF|FNR|\d+)|"[^"\\\n]*")`
  const term = String.raw`!?(?:${field}|/(?:[^/\\[\]\n]|\[[\w -]+\])+/)`
  const pattern = String.raw`(?:BEGIN|END|${term}(?: ?(?:[=!<>]=|[<>~%,]|!~|&&|\|\|) ?${term})*)`
  const list = String.raw`${field}(?:(?: ?, ?| |(?<=")|(?="))${field})*`
  return new RegExp(String.raw`^(?:${pattern} ?)?(?:\{ ?print(?: ?${list})? ?\})?$`)
})()

export const awkProgram: Check = ({ operands: [program] }) =>
  effect(
    "runs",
    program === undefined || AWK.test(program.value?.trim() ?? "|") ? undefined : program,
    "awk may write or run in"
  )

/** Filters of jq that read the environment, or files that no word names. */
export const jqFilter: Check = ({ words }) => {
  const bad = words.find(({ value }) => /\b(env|ENV|import|include|modulemeta|get_search_list)\b/.test(value ?? ""))
  return effect("secrets", bad, "jq may read the environment or a module in")
}

/** A word of date that is no format sets the clock. */
export const dateWords: Check = ({ operands }) =>
  effect(
    "writes",
    operands.find(({ value }) => value?.startsWith("+") === false),
    "date sets the clock to"
  )

const UNARY = /^-[abcdefghkLnNoprsStuwxzGO]$/
const FILE = /^-([abcdefghkLNOprsSuwxG]|nt|ot|ef)$/
const FILES = /^-(nt|ot|ef)$/
const BINARY = /^(=|==|!=|<|>|-nt|-ot|-ef)$/
const ARITHMETIC = /^-(eq|ne|lt|le|gt|ge|t)$/

/**
 * `test` evaluates the index of a variable's name (-v, -R). The meaning depends on how many words there are. Of files
 * elsewhere it tells that they are there.
 */
export const testWords: Check = ({ folders, words }) => {
  const all = words.at(-1)?.value === "]" ? words.slice(0, -1) : words
  const rest = all[0]?.value === "!" ? all.slice(1) : all
  const [first, second] = rest.map(({ value = "" }) => value)
  const counts = all.some(({ value = "" }) => ARITHMETIC.test(value))
  const isClear =
    rest.length < 2 ||
    (rest.length === 2 && UNARY.test(first!)) ||
    (rest.length === 3 && (BINARY.test(second!) || ARITHMETIC.test(second!)))
  const bad = all.find((word) => {
    const { globs, value } = word
    if (value === "-v" || value === "-R") return true
    if (counts) return !isNumber(word) && !/^(-\w+|!|\(|\))$/.test(value ?? "")
    return value === undefined && (globs || !isClear)
  })
  const files = all.filter(
    ({ value }, at) =>
      value !== undefined && (FILE.test(all[at - 1]?.value ?? "") || FILES.test(all[at + 1]?.value ?? ""))
  )
  const read = files.map((file) => pathEffect(file, folders, "reads")).find((one) => one !== undefined)
  return effect("runs", bad, "test may evaluate") ?? read
}

/** `printf -v` sets a variable, whose name may have an index that runs something. */
export const printfWords: Check = ({ words }) => {
  const [format, ...rest] = words[0]?.value === "--" ? words.slice(1) : words
  if (format === undefined) return undefined
  const bad = format.value === undefined || format.value.startsWith("-v") ? format : undefined
  const counts = /%[^%sbqc]/.test(format.value?.replaceAll("%%", "") ?? "")
  return effect("runs", bad ?? (counts ? rest.find((word) => !isNumber(word)) : undefined), "printf may evaluate")
}

/** The words of `exit` and its like are numbers. */
export const numbers: Check = ({ words }) =>
  effect(
    "runs",
    words.find((word) => !isNumber(word)),
    "the shell may evaluate"
  )

/** Variables that programs do not read may be set. Without a name, `read` sets one. */
export const readWords: Check = ({ operands }) =>
  operands.length === 0
    ? { kind: "runs", what: "read sets a variable of the shell" }
    : effect(
        "runs",
        operands.find(({ value }) => !isOwnName(value ?? "")),
        "the shell or a program may read the variable"
      )

export const cdWords: Check = ({ folders, operands: [to] }) => {
  if (to === undefined) return { kind: "secrets", what: "cd goes to the home folder, outside the work tree" }
  const isMany = to.globs || to.value?.startsWith("+") === true
  return isMany
    ? { kind: "unknown", what: `cd goes to a folder that is not known (${to.text})` }
    : folderEffect(to, folders)
}

/** Words that list; without one of them, a name makes a branch or a tag. */
const LISTS = /^(-l|--list|--contains|--no-contains|--merged|--no-merged|--points-at)$/
export const makesRef: Check = (given) =>
  effect("writes", has(given, LISTS) ? undefined : given.operands[0], "makes or moves")

/** Words before a colon have git open an editor for the message: `reword:HEAD`. */
export const commitWords: Check = ({ options }) => {
  const commits = options.flatMap(({ name, values }) => (name === "--fixup" ? values : []))
  return effect(
    "runs",
    commits.find(({ value }) => value?.includes(":") !== false),
    "git opens an editor for"
  )
}

/** `+a:b` and `a:b` name a branch that is written. */
export const fetchWords: Check = ({ operands }) =>
  effect(
    "writes",
    operands.slice(1).find(({ value }) => /[+:]/.test(value ?? "")),
    "moves the branch of"
  )

/** make takes variables among its targets. */
export const makeWords: Check = ({ operands }) =>
  effect(
    "runs",
    operands.find(({ value }) => value?.includes("=") === true),
    "make is given the variable"
  )

/**
 * npm up to 8.11 puts words behind a script between double quotes, where a shell expands them. A filter of pnpm in
 * brackets becomes a word of git.
 */
export const scriptWords: Check = ({ options, words }) => {
  const filters = options.flatMap(({ name, values }) => (/^(--filter|-F)$/.test(name) ? values : []))
  return (
    effect(
      "runs",
      words.find(({ value }) => /`|\$[({A-Za-z_]/.test(value ?? "")),
      "the shell of the script may expand"
    ) ??
    effect(
      "runs",
      filters.find(({ value }) => value?.includes("[") !== false),
      "pnpm gives git the word"
    )
  )
}

/** `env` is a script that package managers have without the project. */
export const scriptName: Check = (given) => {
  const [name] = given.operands
  return effect("secrets", name?.value === "env" ? name : undefined, "shows the environment:") ?? scriptWords(given)
}

/** A file that describes a target names its linker. */
export const cargoTarget: Check = ({ options }) => {
  const targets = options.flatMap(({ name, values }) => (name === "--target" ? values : []))
  return effect(
    "runs",
    targets.find(({ value }) => value?.endsWith(".json") !== false),
    "may run the linker of"
  )
}

export const setWords: Check = ({ words }) =>
  words.length === 0 ? { kind: "secrets", what: "set shows all variables" } : undefined
