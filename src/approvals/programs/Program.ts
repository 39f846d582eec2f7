/**
 * Program: the form of an entry in the table of programs, and the reading of its closed lists of options. Pure.
 *
 * An option that does not stand in a list is not known, and neither is one that is shortened. In a list:
 *
 *     -n          takes no value
 *     -n:         takes a value: the next word, or attached. The value is text
 *     -n:any      the same, and the value may be any one word, also one that only the shell knows
 *     -n:path     the value is a path that is read; -n:out: that is written
 *     -n:names    the value has a path of a repository behind its last colon
 *     -n:format   the value is a format of git, which may run gpg
 *     -n:{a,b}    the value is one of these
 *     -n:2        takes two words, a name and a text; -n:2path: a name and a path
 *     -n?         a value may be attached, and is never the next word; -n?format: a format
 *     -n#         a number may follow
 *     -NUM        a number behind the dash, such as -5
 */
import type { CallEffect, EffectKind, Folders, Word } from "../Reading.ts"

/** The words that a command gives to a program. `words` are all words behind the program and its subcommands. */
export interface Given {
  readonly words: ReadonlyArray<Word>
  readonly operands: ReadonlyArray<Word>
  readonly options: ReadonlyArray<GivenOption>
  readonly folders: Folders
}

export interface GivenOption {
  readonly name: string
  readonly values: ReadonlyArray<Word>
}

/**
 * Meanings of words that are no options.
 *
 * - `none`: it takes no word. `text`: nothing is followed. `any`: any word, looked at as a path that is read.
 * - `read`, `write`: paths. `copy`: paths, the last of which is written. `pattern`: a text, then paths that are read.
 * - `names`: revisions and paths of a repository. `search`: a text, then those. `remote`: the name of a remote, then
 *   revisions.
 * - `project`: files or tests of the project. `packages`: packages of Go in the work tree.
 */
export const OPERANDS = "none text any read write copy pattern names search remote project packages"

/**
 * Traits of a program.
 *
 * - `*`: a rule may end in a star. `sub`: it needs a subcommand. `open`: its words are not read as options. `deaf`: no
 *   word has an effect, also none that only the shell knows.
 * - `flags`: short options are written `-abc` if none takes a value. `words`: each is a word of its own, and `-n=x` has
 *   a value. Neither: as for getopt, `-abc`, and values attached.
 * - `named`: the first word names what runs, such as a script. `fixed`: no star stands for that name, since it may be a
 *   program. `may`: it may be there. `passes`: all words behind the name go to another program.
 */
export const TRAITS = "* sub open deaf flags words named fixed may passes"

/**
 * Lists of words.
 *
 * - `options`: of plain use. The kinds of effects: options that have one. `edits`: options that make it write the files
 *   that it is given; empty: it always does.
 * - `behind`: options behind `--`, which go to another program. `tells`: words that, as the only one, print something.
 * - `by`: options that take the place of the first word of `pattern`. `marks`: words of an expression, no paths.
 */
export const KINDS = ["reads", "writes", "runs", "connects", "secrets", "trusted", "unknown"] as const
export const LISTS = ["options", "edits", "behind", "tells", "by", "marks", ...KINDS] as const

export interface Program {
  /** Where its options were read. */
  readonly source: string
  readonly operands: string
  /** The most operands. */
  readonly most: number
  readonly is: ReadonlySet<string>
  /** The effect of plain use, and its words; undefined if it only reads the work tree. */
  readonly does: EffectKind | undefined
  readonly what: string | undefined
  readonly lists: { readonly [name in (typeof LISTS)[number]]?: string }
  readonly subs: { readonly [name: string]: Program }
  /** Looks at what the words say. */
  readonly check: ((given: Given) => CallEffect | undefined) | undefined
}

export interface Option {
  readonly takes: "nothing" | "attached" | "number" | "next" | "two"
  readonly value: "text" | "any" | "path" | "out" | "names" | "format" | ReadonlyArray<string>
  /** The effect of an option that does more. */
  readonly kind?: EffectKind
  readonly edits?: true
}

export const wordsOf = (list: string | undefined): ReadonlyArray<string> => list?.match(/\S+/g) ?? []

const TAKES: { readonly [suffix: string]: Option } = {
  "": { takes: "nothing", value: "text" },
  "?": { takes: "attached", value: "text" },
  "#": { takes: "number", value: "text" },
  ":": { takes: "next", value: "text" },
  ":2": { takes: "two", value: "any" },
  ":2path": { takes: "two", value: "path" }
}
const optionOf = (suffix: string): Option => {
  const value = suffix.slice(1)
  const named = value.startsWith("{") ? value.slice(1, -1).split(",") : (value as "path")
  return TAKES[suffix] ?? { takes: suffix.startsWith("?") ? "attached" : "next", value: named }
}

/** The name of an option in a list, and what follows it. */
export const nameIn = (token: string): readonly [name: string, suffix: string] => {
  const end = token.search(/[?#:]/)
  return end < 0 ? [token, ""] : [token.slice(0, end), token.slice(end)]
}

const known = new WeakMap<Program, ReadonlyMap<string, Option>>()

/** The options of a program, read from its lists once. */
export const optionsOf = (program: Program): ReadonlyMap<string, Option> => {
  const found = known.get(program)
  if (found !== undefined) return found
  const all = new Map<string, Option>()
  const add = (list: string | undefined, rest: Partial<Option>): void => {
    for (const [name, suffix] of wordsOf(list).map(nameIn)) all.set(name, { ...optionOf(suffix), ...rest })
  }
  add(program.lists.options, {})
  add(program.lists.edits, { edits: true })
  for (const kind of KINDS) add(program.lists[kind], { kind })
  known.set(program, all)
  return all
}
