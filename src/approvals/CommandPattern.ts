/**
 * CommandPattern: the words of a rule for commands, and the two ways in which they match. Pure.
 *
 * Guarantees: a rule that allows matches narrowly, word by word. A star covers only words of a program's plain use. A
 * rule that denies or asks matches widely: the program in any folder, its other words with anything between them,
 * options in any order and form. What only the shell knows may be what the rule names.
 */
import type { Folders, ProgramReading, Word } from "./Reading.ts"
import { type Assignment, readShell } from "./Shell.ts"
import { programName } from "./Wrappers.ts"

/** A word of a rule: a text, one word (`*`), or any words (`**`). */
export type PatternWord = { readonly text: string; readonly globs: boolean } | "one" | "many"

export interface CommandPattern {
  /** `NAME=value` before the program, as the command must have them. */
  readonly assignments: ReadonlyArray<string>
  readonly program: string
  /** The words behind the program. */
  readonly words: ReadonlyArray<PatternWord>
}

const patternWord = ({ globs, text, value = "" }: Word): PatternWord =>
  text === "*" ? "one" : text === "**" ? "many" : { text: value, globs }

/** Reads the words of a rule; undefined if they are not one simple command. */
export const commandPattern = (command: string): CommandPattern | undefined => {
  const { commands, unclear } = readShell(command)
  const [only] = commands
  if (only === undefined || commands.length > 1 || unclear.length > 0) return undefined
  const [program, ...words] = only.words
  const isKnown = only.words.every(({ value }) => value !== undefined)
  if (program === undefined || !isKnown || program.globs || only.redirections.length > 0) return undefined
  if (only.assignments.some(({ value }) => value === undefined)) return undefined
  const pattern = words.map(patternWord)
  if (pattern.slice(0, -1).includes("many")) return undefined
  const assignments = only.assignments.map(({ name, value }) => `${name}=${value}`)
  return { assignments, program: program.value!, words: pattern }
}

/** Variables before a command that change nothing of what runs, as long as their value is no path. */
const HARMLESS =
  /^(CI|NODE_ENV|FORCE_COLOR|NO_COLOR|CLICOLOR(_FORCE)?|LANG|LC_[A-Z]+|TZ|TERM|COLUMNS|LINES|RUST_BACKTRACE|RUST_LOG|PYTHONUNBUFFERED|PYTHONDONTWRITEBYTECODE|GIT_OPTIONAL_LOCKS|CGO_ENABLED)$/

export const isHarmless = ({ name, value = "" }: Assignment): boolean =>
  HARMLESS.test(name) && (/^[\w.,@+=*-]*$/.test(value) || (name === "TZ" && /^[A-Z]\w*\/[\w+-]+$/.test(value)))

export interface Command {
  readonly words: ReadonlyArray<Word>
  readonly assignments: ReadonlyArray<Assignment>
  readonly folders: Folders
}

/** A word that names a file of the work tree, if the command runs there. */
const isFile = (text: string): boolean => text.includes("/") || /\w\.[a-z]\w*$/i.test(text)

/** A word that may turn into an option, or into several words, where the shell finds files of that name. */
const mayGrow = ({ globs, value = "" }: Word): boolean => globs && !/^[\w./]/.test(value)

/** True if the rule's words are those of the command, and its stars cover plain words only. */
export const isCovered = (pattern: CommandPattern, command: Command, reading: ProgramReading): boolean => {
  const { assignments, program, words: wanted } = pattern
  const given = command.assignments.filter((one) => !isHarmless(one))
  if (given.length !== assignments.length) return false
  if (given.some(({ name, value }, index) => value === undefined || `${name}=${value}` !== assignments[index]))
    return false
  const [first, ...words] = command.words
  if (first?.value !== program || first.globs) return false
  // in another folder, the same words name other files
  const isHere = command.folders?.length === 1 && command.folders[0] === ""
  const fixedTexts = wanted.flatMap((want) => (typeof want === "string" ? [] : [want.text]))
  if (!isHere && (program.includes("/") || fixedTexts.some(isFile))) return false
  const isOpen = wanted.at(-1) === "many"
  const fixed = isOpen ? wanted.slice(0, -1) : wanted
  if (isOpen ? words.length < fixed.length : words.length !== fixed.length) return false
  // the words of the shape behind the program: a star begins behind them
  const named = reading.shape.length - 1
  if (isOpen && (!reading.star || fixed.length < named)) return false
  // a word in quotes that only the shell knows stays one word: whether it is plain, the reading says
  if (words.slice(fixed.length).some(mayGrow)) return false
  let hasStar = isOpen && words.length > fixed.length
  for (const [index, want] of fixed.entries()) {
    const word = words[index]!
    if (word.value === undefined || mayGrow(word)) return false
    if (want === "one") {
      const isName = reading.named && index === named - 1
      if ((index < named && !isName) || word.value.startsWith("-")) return false
      hasStar = true
    } else if (want === "many" || word.value !== want.text || (word.globs && !want.globs)) return false
  }
  return !hasStar || (reading.star && reading.extra.length === 0)
}

/** The letters of a short option or a cluster of them (`-rf`), or the first letter of a long one. */
const lettersOf = (option: string): string => (option.startsWith("--") ? option.charAt(2) : option.slice(1))

/** Whether an option of a rule is among the command's words: certainly, perhaps in another form, or not. */
const hasOption = (want: string, words: ReadonlyArray<Word>): "yes" | "maybe" | undefined => {
  const given = words.flatMap(({ value }) => (value?.startsWith("-") === true ? [value] : []))
  if (given.some((value) => value === want || value.startsWith(`${want}=`))) return "yes"
  const short = given.filter((value) => !value.startsWith("--")).join("")
  const areIn = (letters: string, all: string) => letters.split("").every((letter) => all.includes(letter))
  if (!want.startsWith("--") && areIn(want.slice(1), short)) return "yes"
  return areIn(lettersOf(want), given.map(lettersOf).join("")) ? "maybe" : undefined
}

/**
 * Whether a command may be what the rule names. `isPlain`: the shape is certain, so that another subcommand is another
 * command.
 */
export const touches = (
  { program, words: wanted }: CommandPattern,
  words: ReadonlyArray<Word>,
  shape: ReadonlyArray<string> | undefined
): "yes" | "maybe" | undefined => {
  const [first, ...rest] = words
  if (first === undefined) return undefined
  const isKnown = first.value !== undefined && !first.globs
  if (isKnown && programName(first.value!).toLowerCase() !== programName(program).toLowerCase()) return undefined
  const texts = wanted.flatMap((want) => (typeof want === "string" ? [] : [want.text]))
  const plain = texts.filter((text) => !text.startsWith("-"))
  if (isKnown && plain.length > 0 && shape?.[1] !== undefined && shape[1] !== plain[0] && wanted[0] !== "one")
    return undefined
  const isVague = rest.some(({ globs, value }) => value === undefined || globs)
  let at = 0
  for (const { value } of rest) if (at < plain.length && value === plain[at]) at++
  const options = texts.filter((text) => text.startsWith("-")).map((want) => hasOption(want, rest))
  if (!isKnown) return "maybe"
  if (at === plain.length && options.every((one) => one === "yes")) return "yes"
  if (isVague) return "maybe"
  return at === plain.length && options.every((one) => one !== undefined) ? "maybe" : undefined
}
