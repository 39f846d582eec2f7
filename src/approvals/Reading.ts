/**
 * Reading: what a simple command does, in the words of the decision. Pure types.
 *
 * The shell's parser gives words (`Word`), the table of programs reads them (`ProgramReading`), and the decision holds
 * the effects against the rules.
 */

/** A word of a simple command, after its quotes are gone. */
export interface Word {
  /** The text that the program gets; undefined if only the shell will know it. */
  readonly value: string | undefined
  /** True if the shell may put several words, or the names of files, in its place. */
  readonly globs: boolean
  /** The word as it was written. */
  readonly text: string
  /** Absolute path of the work tree, if the word may name a file below it in full. */
  readonly root?: string
}

/** The deeds of a call: reads or writes the work tree, runs other code, connects, or touches what lies outside. */
export type EffectKind = "reads" | "writes" | "runs" | "connects" | "secrets" | "trusted" | "unknown"

/**
 * An effect with its reason, such as `writes .git/config, which other programs trust`. Kinds: `secrets`: reads a
 * secret, or a file outside the work tree. `trusted`: writes a file that other programs run or trust. `unknown`: the
 * table does not tell.
 */
export interface CallEffect {
  readonly kind: EffectKind
  readonly what: string
}

/**
 * The folders, relative to the work tree, in which a command may run. "": the work tree itself. Several: a `cd` before
 * it may have failed. Undefined: not known.
 */
export type Folders = ReadonlyArray<string> | undefined

/** A word with a known text. */
export const literal = (value: string): Word => ({ value, globs: false, text: value })

/** The answer of the table of programs about a simple command. */
export interface ProgramReading {
  /** The program and its subcommands, such as `git log`, or with the script's name, `npm run build`. */
  readonly shape: ReadonlyArray<string>
  /** True if the last word of the shape is the name of a script, which `npm run *` may stand for. */
  readonly named: boolean
  /**
   * True if a rule for the program may end in a star: the table knows the program, and knows that its plain use runs
   * and sends nothing that its words say.
   */
  readonly star: boolean
  /** The words that name files or folders; absent if the table does not tell. */
  readonly files?: ReadonlyArray<Word>
  /** The effect of plain use; undefined if it only reads the work tree. */
  readonly base: CallEffect | undefined
  /** Further effects of these words. A rule with a star never covers a command that has any. */
  readonly extra: ReadonlyArray<CallEffect>
}
