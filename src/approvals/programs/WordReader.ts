/**
 * WordReader: sorts the words behind a program into options and operands, by the closed lists of its entry. Pure.
 */
import { namesSecret, pathEffect, repositoryEffect } from "../Paths.ts"
import type { CallEffect, EffectKind, Folders, Word } from "../Reading.ts"
import { type Given, type GivenOption, KINDS, type Option, optionsOf, type Program } from "./Program.ts"

/** Texts that a program of the project could take for a file of its own, or for a list of words. */
const ELSEWHERE = /^[/~@]|^\.\/|(^|[/=,:])\.\.(\/|$)/

/** The effect of an option in words. */
const DOES: { readonly [kind in EffectKind]: string } = {
  reads: "reads",
  writes: "writes or removes",
  runs: "may run another program",
  connects: "connects",
  secrets: "may read secrets, or files elsewhere",
  trusted: "may bring files that other programs trust",
  unknown: "is not plain use"
}

const isOption = ({ value = "" }: Word): boolean => value.length > 1 && value.startsWith("-")

export class WordReader implements Given {
  readonly words: ReadonlyArray<Word>
  readonly operands: Array<Word> = []
  readonly options: Array<GivenOption> = []
  readonly extra: Array<CallEffect> = []
  /** Words that go on to another program. */
  behind: ReadonlyArray<Word> = []
  /** True if the program writes the files that it is given. */
  edits: boolean
  readonly folders: Folders
  private at = 0
  private readonly program: Program
  private readonly name: string

  constructor(program: Program, name: string, words: ReadonlyArray<Word>, folders: Folders) {
    this.program = program
    this.name = name
    this.words = words
    this.folders = folders
    this.edits = program.lists.edits === ""
  }

  readonly add = (kind: EffectKind, what: string): void => {
    this.extra.push({ kind, what })
  }

  /** The word that is no option at the front, and those behind it. */
  first(): ReadonlyArray<Word> {
    while (this.at < this.words.length && isOption(this.words[this.at]!) && !this.isSub()) this.option()
    return this.words.slice(this.at)
  }

  private isSub(): boolean {
    return Object.hasOwn(this.program.subs, this.words[this.at]!.value!)
  }

  read(): this {
    const { is, lists } = this.program
    const isOpen = is.has("open")
    while (this.at < this.words.length) {
      const { value } = this.words[this.at]!
      if (isOpen || value === "--" || (is.has("passes") && this.operands.length > 0)) {
        const rest = this.words.slice(value === "--" ? this.at + 1 : this.at)
        // behind it find still has its expression
        if (!isOpen && lists.behind === undefined && is.has("words")) this.refuse("--")
        if (isOpen || lists.behind === undefined) this.operands.push(...rest)
        else this.behind = rest
        break
      }
      this.next()
    }
    return this
  }

  private next(): void {
    const word = this.words[this.at]!
    if (!isOption(word)) {
      if (this.mayBeOption(word)) this.add("unknown", `${word.text} may stand for an option`)
      this.operands.push(word)
      this.at++
      return
    }
    // to some programs an option behind a word is one more word: `xxd a -ps` writes a file
    const isSecond = this.program.most === 1 && this.operands.length > 0
    if (isSecond) this.add("unknown", `${word.text} is a second word`)
    this.option()
  }

  /** True for a word that the shell replaces by names of files, one of which may be an option with an effect. */
  private mayBeOption({ globs, value = "" }: Word): boolean {
    const { does, lists, operands } = this.program
    const isRisky =
      does !== undefined || operands === "names" || [...KINDS, "edits" as const].some((name) => name in lists)
    return globs && /^[*?[]/.test(value) && isRisky
  }

  private refuse(what: string): void {
    this.add("unknown", `${this.name} ${what} is not in the table`)
  }

  /** Reads the option at this place. */
  private option(): void {
    const word = this.words[this.at++]!
    const value = word.value!
    const options = optionsOf(this.program)
    const exact = options.get(value)
    const equals = value.indexOf("=")
    // the shell may put several words in its place
    if (word.globs && !/^--[\w-]+=/.test(value)) this.refuse(word.text)
    else if (exact !== undefined) this.spaced(value, exact)
    else if (equals > 0 && (value.startsWith("--") || this.program.is.has("words"))) {
      const name = value.slice(0, equals)
      const option = options.get(name)
      if (option === undefined || option.takes === "nothing" || option.takes === "two") this.refuse(`${name}=`)
      else this.given(name, option, [{ ...word, value: value.slice(equals + 1) }])
    } else if (/^-\d+$/.test(value) && options.has("-NUM")) this.given(value, options.get("-NUM")!, [])
    else if (value.startsWith("--") || this.program.is.has("words")) this.refuse(value)
    else this.cluster(word, value)
  }

  /** `-abc`, and `-n5` where values are attached. */
  private cluster(word: Word, value: string): void {
    for (let at = 1; at < value.length; at++) {
      const name = `-${value[at]}`
      const option = optionsOf(this.program).get(name)
      const rest = value.slice(at + 1)
      if (option === undefined) return this.refuse(value.length === 2 ? name : `${name} (in ${value})`)
      const takesNone = option.takes === "nothing" || (option.takes === "number" && !/^\d/.test(rest))
      if (takesNone && rest !== "") this.given(name, option, [])
      else if (rest === "") return this.spaced(name, option)
      else if (this.program.is.has("flags") || option.takes === "two") return this.refuse(value)
      // some programs take -n=5 for -n5
      else return this.given(name, option, [{ ...word, value: rest.replace(/^=/, "") }])
    }
  }

  /** An option whose value, if it has one, is the next word. */
  private spaced(name: string, option: Option): void {
    const isNumber = option.takes === "number" && /^\d+$/.test(this.words[this.at]?.value ?? "")
    const wanted = option.takes === "next" || isNumber ? 1 : option.takes === "two" ? 2 : 0
    const values = this.words.slice(this.at, this.at + wanted)
    this.at += wanted
    if (values.length < wanted) this.refuse(`${name} without a value`)
    if (values.some((word) => this.mayBeOption(word))) this.add("unknown", `${name} may have an option for its value`)
    this.given(name, option, values)
  }

  private given(name: string, option: Option, values: ReadonlyArray<Word>): void {
    if (option.kind !== undefined) this.add(option.kind, `${this.name} ${name} ${DOES[option.kind]}`)
    if (option.edits === true) this.edits = true
    for (const word of option.takes === "two" ? values.slice(1) : values) {
      const effect = this.valueEffect(name, option.value, word)
      if (effect !== undefined) this.extra.push(effect)
    }
    this.options.push({ name, values })
  }

  private valueEffect(name: string, expected: Option["value"], word: Word): CallEffect | undefined {
    const { globs, text, value } = word
    if (expected === "any" && !globs) return undefined
    if (value === undefined) return { kind: "unknown", what: `${text} is not known before it runs` }
    if (expected === "format") {
      const mayRun = globs || /%[-+ ]?G|signature/.test(value)
      return mayRun ? { kind: "runs", what: `${this.name} ${name} ${value} may run gpg` } : undefined
    }
    if (expected === "path") return pathEffect(word, this.folders, "reads")
    if (expected === "names") {
      return repositoryEffect({ ...word, value: value.slice(value.lastIndexOf(":") + 1) }, this.folders)
    }
    if (expected === "out") return pathEffect(word, this.folders, "writes")
    const isElsewhere = this.program.operands === "project" && ELSEWHERE.test(value)
    const isListed = typeof expected === "string" || expected.includes(value)
    const what = `${this.name} ${name} names ${value}`
    if (/^-\D/.test(value) || isElsewhere || !isListed) return { kind: "unknown", what }
    return namesSecret(value) ? { kind: "secrets", what } : undefined
  }
}
