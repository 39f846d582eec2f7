/**
 * Parts: everything that a shell line would run, through its wrappers and nested shells. Pure.
 *
 * Guarantees: each program is a part, also one within a wrapper. The folder of a part is every folder in which it may
 * run, because a `cd` before it may have failed.
 */
import type { Folders, Word } from "./Reading.ts"
import { joined } from "./Paths.ts"
import { type Assignment, readShell, type SimpleCommand } from "./Shell.ts"
import type { Redirection } from "./ShellWords.ts"
import { unwrap } from "./Wrappers.ts"

export interface Part {
  readonly words: ReadonlyArray<Word>
  readonly assignments: ReadonlyArray<Assignment>
  readonly redirections: ReadonlyArray<Redirection>
  readonly folders: Folders
  /** Absolute path of the work tree, if it is known. */
  readonly root?: string | undefined
  readonly text: string
  /** Reasons why the wrapper in this use is not followed. */
  readonly doubts: ReadonlyArray<string>
  /** False: the part is there for rules that deny or ask. A wrapper that is not clear has to be allowed as a whole. */
  readonly counts: boolean
  /** True if a text reaches its input. */
  readonly fed: boolean
  /** True if it gets the files that `find` finds. */
  readonly found?: boolean
}

export interface Parts {
  readonly parts: ReadonlyArray<Part>
  readonly unclear: ReadonlyArray<string>
}

/** Maximum depth of wrappers in wrappers, and of shells in shells. */
const MAX_WRAPPED = 8
const MAX_SHELLS = 5
/** Maximum number of folders in which a part may run. Above it, the folder counts as unknown. */
const MAX_FOLDERS = 8

/** Programs that take the shell to a folder that is not known, or may change what `cd` means. */
const MOVERS: ReadonlySet<string> = new Set(
  "pushd popd chdir noglob nocorrect - repeat mapfile readarray fc eval source . alias trap setopt shopt enable autoload emulate bind z zi j jump ..".split(
    " "
  )
)
/** Text without quotes that may move a shell, where the line is not understood; and where it is. */
const MAY_MOVE = /cd|chdir|pushd|popd|eval|source|alias|trap|builtin|function|\(\s*\)|(?:^|[\s;&|(])\.\s/i
/** The file that activates a Python environment. It goes nowhere; whether it may run is decided as for any program. */
const isActivation = (file = ""): boolean => /(?:^|\/)\.?venv\/bin\/activate$/.test(file)
const MOVES = /cdpath|prompt_command|bash_env|\b(?:home|oldpwd|pwd)\b=/i

/** A word as a shell would accept it. */
export const quoted = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`

export const wordsText = (words: ReadonlyArray<Word>): string =>
  words.map(({ globs, text, value }) => (value === undefined || globs ? text : quoted(value))).join(" ")

/** All folders that can be reached from `from` by one of the paths. */
const reached = (from: Folders, paths: Folders): Folders => {
  if (from === undefined || paths === undefined) return undefined
  const all = new Set<string>()
  for (const folder of from)
    for (const path of paths) {
      const to = joined(folder, path)
      if (to === undefined) return undefined
      all.add(to)
    }
  return all.size > MAX_FOLDERS ? undefined : [...all]
}

const assignmentOf = (text: string): Assignment => ({
  name: text.slice(0, text.indexOf("=")),
  value: text.slice(text.indexOf("=") + 1)
})

class PartsReader {
  readonly parts: Array<Part> = []
  readonly unclear = new Set<string>()
  private folders: Folders
  private readonly depth: number

  private readonly root: string | undefined

  constructor(folders: Folders, root: string | undefined, depth: number) {
    this.folders = folders
    this.root = root
    this.depth = depth
  }

  /**
   * Names a file below the work tree by its path from there, if the command runs there. From another folder, the word
   * keeps its text.
   */
  private readonly near = (word: Word, index = 1): Word => {
    const { root } = this
    const { globs, text, value } = word
    if (root === undefined || value === undefined) return word
    if (this.folders?.join() !== "") return value.includes(root) ? { ...word, root } : word
    const start = value.startsWith("-") ? value.indexOf("=") + 1 : 0
    const path = value.slice(start)
    if (path !== root && !path.startsWith(`${root}/`)) return word
    const below = path.slice(root.length).replace(/^\/+/, "") || "."
    const short = `${value.slice(0, start)}${index === 0 || /^[-~=]/.test(below) ? "./" : ""}${below}`
    return { value: short, globs, text: globs ? short : text }
  }

  read(source: string): this {
    const { commands, unclear } = readShell(source)
    for (const reason of unclear) this.unclear.add(reason)
    for (const command of commands) this.command(command, command.words, true, 0)
    return this
  }

  /** Adds what a command runs. `counts`: false within a wrapper that is not clear. */
  private command(from: SimpleCommand, given: ReadonlyArray<Word>, counts: boolean, level: number): void {
    if (level > MAX_WRAPPED) {
      this.unclear.add("it is wrapped too deep")
      return
    }
    const { assignments, fed, found = false } = from
    // a program below the work tree is no program of the table
    const words = given.map(this.near)
    const redirections = from.redirections.map((one) =>
      one.target === undefined ? one : { ...one, target: this.near(one.target) }
    )
    const isWhole = words.length === 0 || (level === 0 && redirections.some(({ access }) => access !== "none"))
    const text = isWhole ? from.text : wordsText(words)
    const all = {
      root: this.root,
      words,
      assignments,
      redirections,
      folders: this.folders,
      text,
      doubts: [],
      counts,
      fed,
      found
    }
    const inner = unwrap(given)
    if (inner === undefined) {
      this.parts.push(all)
      this.follow(words)
      return
    }
    if (inner._tag === "Unclear") {
      this.parts.push({ ...all, doubts: [inner.why] })
      this.follow(words)
      return
    }
    // the wrapper's own words, or its redirections and assignments alone
    if (!inner.clear) this.parts.push({ ...all, doubts: inner._tag === "Text" ? ["it starts another shell"] : [] })
    else if (inner._tag === "Command" && inner.rest.length > 0)
      this.parts.push({ ...all, words: inner.rest.map(this.near) })
    else if (redirections.length > 0)
      this.parts.push({ ...all, words: [], assignments: [], text: from.text, fed: false })
    if (inner._tag === "Text") {
      this.shell(inner.text, assignments, counts && inner.clear)
      this.follow(words)
    } else {
      const set = [...assignments, ...inner.assignments.map(assignmentOf)]
      const next = { ...from, assignments: set, redirections: [], found: from.found === true || inner.rest.length > 0 }
      this.command(next, inner.words, counts && inner.clear, level + 1)
    }
  }

  /** A text that another shell runs. What it changes about the folder ends with it. */
  private shell(text: string, set: ReadonlyArray<Assignment>, counts: boolean): void {
    if (this.depth >= MAX_SHELLS) {
      this.unclear.add("it starts shells in shells")
      return
    }
    const below = new PartsReader(this.folders, this.root, this.depth + 1).read(text)
    for (const reason of below.unclear) this.unclear.add(reason)
    for (const part of below.parts)
      this.parts.push({ ...part, assignments: [...set, ...part.assignments], counts: part.counts && counts })
  }

  private follow([program, ...words]: ReadonlyArray<Word>): void {
    if (program === undefined) return
    if (program.value === undefined || (MOVERS.has(program.value) && !isActivation(words[0]?.value)))
      this.folders = undefined
    if (program.value !== "cd" || this.folders === undefined) return
    const [to, other] = words[0]?.value === "--" ? words.slice(1) : words
    // zsh takes a second word for what replaces the first in the folder's name
    const path =
      to === undefined || other !== undefined || to.globs || to.value?.startsWith("-") === true ? undefined : to.value
    const below = path === undefined || this.root === undefined ? undefined : `${path}/`.split(`${this.root}/`)
    if (path === undefined) this.folders = undefined
    else if (below?.[0] !== "") this.folders = reached(this.folders, ["", path])
    else this.folders = reached([...this.folders, joined("", below.slice(1).join(`${this.root}/`)) ?? ".."], [""])
  }

  /** The folders in which the shell may stand behind the line. */
  get left(): Folders {
    return this.folders
  }
}

/** The parts of a line that runs in one of these folders. `root`: absolute path of the work tree, if it is known. */
export const partsOf = (source: string, folders: Folders, root?: string): Parts => {
  const { parts, unclear } = new PartsReader(folders, root, 0).read(source)
  return { parts, unclear: [...unclear] }
}

/**
 * The folders in which a shell may stand behind a line that began in one of `folders`, whether or not it failed.
 * Undefined: not known.
 */
export const leftIn = (source: string, folders: Folders, root: string): Folders => {
  try {
    const { left, unclear } = new PartsReader(folders, root, 0).read(source)
    const plain = source.replaceAll(/["'\\]|\\\n/g, "")
    const mayMove = MOVES.test(plain) || (unclear.size > 0 && (MAY_MOVE.test(plain) || source.includes("$'")))
    return mayMove ? undefined : left
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  }
}
