/**
 * QuickArgs: parses a command line for the quick entry into a declared verb and its arguments.
 *
 * Guarantees: pure. If a command line is parsed here, it has the same meaning in the whole program. For an ambiguous or
 * invalid command line the result is undefined, and the whole program parses it. Examples are an unknown flag, a value
 * with a leading dash, `--`, `--help`, and too many arguments.
 */
import { modesOf } from "./Renamed.ts"
import { type Arg, type Args, type DeclaredVerb, isOne, type Shape } from "./DeclaredVerb.ts"

export interface Line {
  readonly verb: DeclaredVerb
  readonly input: { readonly [field: string]: unknown }
  readonly state: string | undefined
  readonly json: boolean
}

const POSITIONAL = new Set<Shape["kind"]>(["word", "maybe", "maybeText", "words", "text", "pick"])

const isWord = (given: string | undefined): given is string => given !== undefined && given !== "" && given[0] !== "-"

/** Parses the value of an argument; undefined if only the whole program can parse the command line. */
const valueOf = (shape: Shape, given: string): unknown => {
  switch (shape.kind) {
    case "count": {
      const value = /^\d{1,9}$/u.test(given) ? Number(given) : -1
      return value >= shape.least && value <= shape.most ? value : undefined
    }
    case "choice":
    case "pick":
      return shape.of.includes(given) ? given : undefined
    case "moment":
      return undefined
    default:
      return given
  }
}

/** The values of all fields before any argument has been parsed. */
const unsaid = (args: Args): { [field: string]: unknown } =>
  Object.fromEntries(
    Object.entries<Arg<unknown>>(args).map(([field, shape]) => [
      field,
      shape.kind === "switch"
        ? false
        : shape.kind === "options" || shape.kind === "words"
          ? []
          : "default" in shape
            ? shape.default
            : undefined
    ])
  )

interface Read {
  readonly input: { [field: string]: unknown }
  readonly words: Array<string>
  readonly given: Set<string>
}

/**
 * Parses a flag, and returns the number of arguments that were used. 0: only the whole program can parse the command
 * line.
 */
const flag = (args: Args, read: Read, rest: ReadonlyArray<string>): number => {
  const [first = "", value] = rest
  const found = Object.entries<Arg<unknown>>(args).find(
    ([field, { alias, kind, name = field }]) =>
      !POSITIONAL.has(kind) && (first === `--${name}` || (alias !== undefined && first === `-${alias}`))
  )
  if (found === undefined) return 0
  const [field, shape] = found
  if (shape.kind !== "options" && read.given.has(field)) return 0
  read.given.add(field)
  if (shape.kind === "switch") {
    read.input[field] = true
    return 1
  }
  const meant = isWord(value) ? valueOf(shape, value) : undefined
  if (meant === undefined) return 0
  read.input[field] = shape.kind === "options" ? [...(read.input[field] as ReadonlyArray<string>), meant] : meant
  return 2
}

/**
 * Assigns the positional words to their fields. Returns false if a word is invalid, or if there are too few or too
 * many.
 */
const places = (args: Args, { input, words }: Read): boolean => {
  let at = 0
  for (const [field, shape] of Object.entries<Arg<unknown>>(args)) {
    if (!POSITIONAL.has(shape.kind)) continue
    if (shape.kind === "words") {
      input[field] = words.slice(at)
      at = words.length
      continue
    }
    const given = words[at]
    if (given === undefined) {
      if (
        shape.kind === "maybe" ||
        shape.kind === "maybeText" ||
        (shape.kind === "word" && shape.default !== undefined)
      )
        continue
      return false
    }
    const meant = valueOf(shape, given)
    if (meant === undefined) return false
    input[field] = meant
    at++
  }
  return at === words.length
}

export const parse = (line: ReadonlyArray<string>, declared: ReadonlyMap<string, DeclaredVerb>): Line | undefined => {
  let state: string | undefined
  let json = false
  let verb: DeclaredVerb | undefined
  let name = ""
  const read: Read = { input: {}, words: [], given: new Set() }
  for (let at = 0; at < line.length;) {
    const arg = line[at]!
    if (arg === "--json") {
      if (json) return undefined
      json = true
      at++
    } else if (arg === "--state") {
      const folder = line[at + 1]
      if (state !== undefined || !isWord(folder) || folder.trim() === "") return undefined
      state = folder
      at += 2
    } else if (verb === undefined) {
      name = name === "" ? arg : `${name} ${arg}`
      // a second word can be part of the verb, because both `goal` and `goal ls` are verbs
      verb = declared.has(`${name} ${line[at + 1]}`) ? undefined : declared.get(name)
      // `log --text` has separate flags, which only the whole program parses
      if (verb !== undefined && modesOf(name).includes(`${name} ${line[at + 1]}`)) return undefined
      if (verb !== undefined) Object.assign(read.input, unsaid(verb.args))
      else if (name.includes(" ")) return undefined
      at++
    } else if (isWord(arg)) {
      read.words.push(arg)
      at++
    } else {
      const taken = flag(verb.args, read, line.slice(at, at + 2))
      if (taken === 0) return undefined
      at += taken
    }
  }
  if (verb === undefined || !places(verb.args, read)) return undefined
  const { input } = read
  if (verb.several !== undefined && !isOne(input)) return undefined
  const isQuick = typeof verb.quick === "boolean" ? verb.quick : verb.quick(input as never, json)
  return isQuick ? { verb, input, state, json } : undefined
}
