/**
 * Shell: the simple commands that a line of bash would run. Pure.
 *
 * Guarantees: fails closed. A node, an expansion or a character that is not on a list here makes the whole line
 * unclear, with a reason, and nothing may allow an unclear line. The commands that were found are returned all the
 * same, so that a rule that denies still meets them.
 *
 * zsh reads some words differently (`=cmd`, glob qualifiers, `[[`): such lines are unclear, too, because agents use the
 * user's shell.
 */
import { forEachChild, parse } from "unbash"
import type * as Bash from "unbash"
import type { Word } from "./Reading.ts"
import { argumentOf, isOwnName, type Loops, NO_LOOPS, type Redirection, redirectionOf, wordOf } from "./ShellWords.ts"

export interface Assignment {
  readonly name: string
  /** Undefined if only the shell will know it. */
  readonly value: string | undefined
}

export interface SimpleCommand {
  /** The program and its words; empty if the command only assigns or redirects. */
  readonly words: ReadonlyArray<Word>
  readonly assignments: ReadonlyArray<Assignment>
  readonly redirections: ReadonlyArray<Redirection>
  /** True if a text reaches its input by a pipe, a here-document or a here-string. An interpreter would run it. */
  readonly fed: boolean
  readonly text: string
  /** True if it gets the files that `find` finds. */
  readonly found?: boolean
}

export interface ShellLine {
  readonly commands: ReadonlyArray<SimpleCommand>
  /** The reasons why nothing may allow the line; empty if all of it is understood. */
  readonly unclear: ReadonlyArray<string>
}

/** Limits of a line that a rule may allow: characters, and simple commands. */
export const MAX_LENGTH = 10_000
export const MAX_COMMANDS = 50
export const TOO_LONG = `it is longer than ${MAX_LENGTH} characters`

/** Nodes that do nothing besides what their children do. */
const PLAIN: ReadonlySet<string> = new Set(
  (
    "Script Statement Command Pipeline AndOr CompoundList Subshell BraceGroup If Elif While For Case CaseItem Word " +
    "Redirect HereString HereDoc HereDocBody HereDocDelimiter Redirected Negation Time Literal SingleQuoted " +
    "DoubleQuoted AnsiCQuoted Glob SimpleExpansion ParameterExpansion Default Remove CommandExpansion " +
    "ProcessSubstitution Assignment FileDescriptor BraceExpansion ArithmeticExpansion ArithmeticBinary " +
    "ArithmeticUnary ArithmeticGroup ArithmeticWord"
  ).split(" ")
)

/** Characters that a person does not see: control and format characters, blanks other than the space. */
const HIDDEN = /(?![\n\t])[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800\ufffc\ufffd]|(?! )\p{Zs}/u

/** Characters that look like one that means something to a shell. */
const ALIKE = /[\u2010-\u2015\u2018-\u201f\u2039\u203a\u2044\u2212\u2215\u2223\u2502\u00ab\u00bb\u037e\uff00-\uffef]/u

/** Variables with known harmless content, besides those that the line itself sets. */
const OPEN_NAMES: ReadonlySet<string> = new Set(
  "? # $ ! @ * _ - 0 1 2 3 4 5 6 7 8 9 HOME PWD OLDPWD USER LANG TERM HOSTNAME TMPDIR RANDOM SECONDS".split(" ")
)

/** Escapes that shells and the parser read alike. */
const ANSI = /^\$'(?:[^\\']|\\(?:[abeEfnrtv\\"?]|[0-7]{3}|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}))*'$/

/** Builtins that change the folder of the shell, and those that set variables. */
const FOLDERS: ReadonlySet<string> = new Set(["cd", "pushd", "popd"])
const SETTERS: ReadonlySet<string> = new Set(
  "read printf unset declare local export typeset readonly getopts mapfile readarray let eval source . select".split(
    " "
  )
)

/** Maximum number of values of a loop's variable that are followed, and of all loops around a command together. */
const MAX_VALUES = 12

/** Where a node stands. */
interface Place {
  /** The text in which positions count. Scripts in escaped backticks have one of their own. */
  readonly source: string
  readonly loops: ReadonlyArray<Loops>
  /** Variables that this shell has set before, whatever happened. Commands of a sequence share the set. */
  readonly known: Set<string>
  /** True if a text reaches the input. */
  readonly fed: boolean
  /** True in a loop, where a `cd` holds for the commands before it, too, from the second time on. */
  readonly inLoop: boolean
}

/** A place in which variables are set that are not known behind it. */
const apart = (place: Place): Place => ({ ...place, known: new Set(place.known) })

/** Reads one line. */
class LineReader {
  readonly commands: Array<SimpleCommand> = []
  readonly unclear = new Set<string>()
  private readonly source: string
  private readonly tree: Bash.ParsedScript
  private found: ReadonlyMap<string, number> | undefined

  constructor(source: string) {
    this.source = source
    this.tree = parse(source)
  }

  private visit(node: Bash.SyntaxNode, place: Place): void {
    if (!PLAIN.has(node.type)) this.unclear.add(`${node.type} is not followed`)
    this.check(node, place)
    switch (node.type) {
      case "Command":
        return this.command(node, place)
      case "Script":
        return this.script(node, place)
      case "Statement":
        return this.visit(node.command, node.background === true ? apart(place) : place)
      case "CompoundList":
      case "BraceGroup":
        return forEachChild(node, (child) => this.visit(child, place))
      case "Redirected":
        return this.redirected(node, place)
      case "AndOr":
        return this.andOr(node, place)
      case "Pipeline":
        return forEachChild(node, (child) =>
          this.visit(child, { ...apart(place), fed: place.fed || node.commands.indexOf(child as never) > 0 })
        )
      case "For":
        return this.loop(node, place)
      case "If":
      case "While":
        return this.branches(node, place)
      default:
        return forEachChild(node, (child) => this.visit(child, apart(place)))
    }
  }

  private script(node: Bash.Script, place: Place): void {
    const source = node.source ?? place.source
    this.covered(node.commands, source, node.pos, node.end)
    forEachChild(node, (child) => this.visit(child, { ...place, source }))
  }

  /** The first command always runs; behind `||` none is certain to have run. */
  private andOr(node: Bash.AndOr, place: Place): void {
    const rest = apart(place)
    const firstOr = node.operators.indexOf("||") + 1 || node.commands.length
    for (const [index, command] of node.commands.entries()) {
      if (index === 0) {
        this.visit(command, place)
        for (const name of place.known) rest.known.add(name)
      } else this.visit(command, index < firstOr ? rest : apart(place))
    }
  }

  private branches(node: Bash.If | Bash.While, place: Place): void {
    const base = { ...apart(place), inLoop: place.inLoop || node.type === "While" }
    this.visit(node.clause, base)
    forEachChild(node, (child) => {
      if (child !== node.clause) this.visit(child, apart(base))
    })
  }

  private loop(node: Bash.For, place: Place): void {
    for (const word of node.wordlist ?? []) this.visit(word, apart(place))
    const body = { ...apart(place), loops: this.loopsOf(node, place.loops), inLoop: true }
    body.known.add(node.name.text)
    this.visit(node.body, body)
  }

  /** The values that variables have in the body of a loop: those from around it, each with each of its own. */
  private loopsOf(
    { name: { text: name }, wordlist = [] }: Bash.For,
    around: ReadonlyArray<Loops>
  ): ReadonlyArray<Loops> {
    const values = wordlist.map((word) => wordOf(word))
    const isKnown = values.length > 0 && values.every(({ value }) => value !== undefined) && this.isOfOneLoop(name)
    if (!isKnown || values.length * around.length > MAX_VALUES)
      return around.map((loops) => new Map([...loops].filter(([one]) => one !== name)))
    return around.flatMap((loops) => values.map((word) => new Map([...loops, [name, word]])))
  }

  /** True if nothing but one loop of the line sets the variable. */
  private isOfOneLoop(name: string): boolean {
    return isOwnName(name) && !this.source.includes("\\\n") && this.setters.get(name) === 1 && !this.setters.has("")
  }

  /** How often the line sets each variable: a loop once, an assignment twice. "": a command that may set any. */
  private get setters(): ReadonlyMap<string, number> {
    if (this.found !== undefined) return this.found
    const all = new Map<string, number>()
    const add = (name: string, times: number) => all.set(name, (all.get(name) ?? 0) + times)
    const look = (node: Bash.SyntaxNode): void => {
      if (node.type === "For") add(node.name.text, 1)
      else if (node.type === "Assignment") add(node.name, 2)
      else if (node.type === "Command" && SETTERS.has(node.name === undefined ? "" : (wordOf(node.name).value ?? ".")))
        add("", 1)
      forEachChild(node, look)
    }
    look(this.tree)
    return (this.found = all)
  }

  private command(node: Bash.Command, place: Place): void {
    const { fed, inLoop, known, loops, source } = place
    const text = source.slice(node.pos, node.end)
    const isText = ({ type }: Bash.Redirection) => type === "HereDoc" || type === "HereString"
    const uses = loops.length > 1 && [...loops[0]!.keys()].some((name) => text.includes(name))
    const assignments = node.prefix.flatMap((one) => (one.type === "Assignment" ? [this.assignment(one)] : []))
    forEachChild(node, (child) => this.visit(child, apart(place)))
    for (const values of uses ? loops : loops.slice(0, 1)) {
      const words = node.name === undefined ? [] : [wordOf(node.name, values)]
      words.push(...node.args.map((argument) => argumentOf(argument, values)))
      const redirections = node.redirects.map((one) => redirectionOf(one, values))
      if (inLoop && words.some(({ value }, index) => FOLDERS.has(value ?? "") || (index === 0 && value === undefined)))
        this.unclear.add("a loop changes its folder")
      this.commands.push({ words, assignments, redirections, fed: fed || node.redirects.some(isText), text })
    }
    // sh takes &> for the end of the command: words behind it would be another one
    const both = node.redirects.find(({ operator }) => operator === "&>" || operator === "&>>")
    if (both !== undefined && both.end < node.end) this.unclear.add("shells read words behind &> differently")
    const named = node.name === undefined ? [] : [node.name]
    this.covered([...node.prefix, ...named, ...node.suffix], source, node.pos, node.end)
    // variables before a program are set for the program alone
    if (node.name === undefined) for (const { name } of assignments) known.add(name)
    if (node.name?.text === "read")
      for (const argument of node.args) if (isOwnName(argument.text)) known.add(argument.text)
  }

  /**
   * Adds a doubt if the text between nodes holds a character that the parser has dropped: it takes an open parenthesis
   * behind a command without an error.
   */
  private covered(nodes: ReadonlyArray<Bash.SyntaxNode>, source: string, pos: number, end: number): void {
    let at = pos
    for (const one of [...nodes, { pos: end, end }]) {
      const gap = source.slice(at, one.pos).replaceAll(/(?<![^\s;&|])#[^\n]*/g, "")
      if (gap.includes("(") && !source.includes("<<")) this.unclear.add("a shell would not read it")
      at = Math.max(at, one.end)
    }
  }

  private assignment({ append, index, name, value }: Bash.Assignment): Assignment {
    if (index !== undefined || append === true) this.unclear.add(`it changes ${name} in a way that is not followed`)
    return { name, value: value.type === "Word" ? wordOf(value).value : undefined }
  }

  /** Redirections of a group of commands. */
  private redirected({ command, redirects }: Bash.Redirected, place: Place): void {
    for (const values of place.loops) {
      const redirections = redirects.map((one) => redirectionOf(one, values))
      this.commands.push({ words: [], assignments: [], redirections, fed: false, text: "a redirection" })
    }
    for (const one of redirects) this.visit(one, apart(place))
    this.visit(command, { ...place, fed: place.fed || redirects.some(({ type }) => type !== "Redirect") })
  }

  /** Adds the reasons for which this node alone is unclear. */
  private check(node: Bash.SyntaxNode, { known }: Place): void {
    const doubt = (reason: string) => this.unclear.add(reason)
    const use = (name: string) => OPEN_NAMES.has(name) || known.has(name) || doubt(`$${name} may hold a secret`)
    switch (node.type) {
      case "Script":
        for (const { message } of ("errors" in node ? node.errors : undefined) ?? [])
          doubt(`a shell would not read it: ${message}`)
        return
      case "Word":
        if (node.text.startsWith("=") && !/^==?$/.test(node.text)) doubt("zsh replaces a word that begins with =")
        if (node.parts === undefined && ALIKE.test(node.text)) doubt("it holds a look-alike of a shell's character")
        return
      case "Literal":
        if (ALIKE.test(node.text)) doubt("it holds a look-alike of a shell's character")
        return
      case "SimpleExpansion":
        use(node.text.slice(1))
        return
      case "ParameterExpansion":
        use(node.parameter)
        if (node.prefix !== undefined || node.index !== undefined) doubt(`${node.text} is not followed`)
        // ${x=y} and ${x:=y} set x
        if (node.operation?.type === "Default" && node.operation.operator.endsWith("="))
          doubt(`${node.text} sets a variable`)
        return
      case "ArithmeticExpansion":
        if (!/^\$\(\([\d\s+\-*/%()<>]*\)\)$/.test(node.text)) doubt("arithmetic with names can run commands")
        return
      case "AnsiCQuoted":
        if (!ANSI.test(node.text)) doubt("shells read this text in $'…' differently")
        return
      case "For":
        if (!isOwnName(node.name.text)) doubt("a loop sets a variable that programs may read")
        return
      case "HereDoc":
        if (node.closing === undefined) doubt("a here-document has no end")
        return
      case "CommandExpansion":
      case "ProcessSubstitution":
        if (node.script === undefined) doubt("a substitution could not be read")
        return
      default:
    }
  }

  line(): ShellLine {
    this.visit(this.tree, { source: this.source, loops: [NO_LOOPS], known: new Set(), fed: false, inLoop: false })
    if (this.commands.length > MAX_COMMANDS) this.unclear.add(`it has more than ${MAX_COMMANDS} parts`)
    return { commands: this.commands, unclear: [...this.unclear] }
  }
}

export const readShell = (source: string): ShellLine => {
  const reader = new LineReader(source)
  const hidden = HIDDEN.exec(source)?.[0]
  if (source.length > MAX_LENGTH) reader.unclear.add(TOO_LONG)
  if (hidden !== undefined)
    reader.unclear.add(
      `it holds a character that is not seen (U+${hidden.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")})`
    )
  if (/\$[~=^+][\w{]|\$\w+\[/.test(source)) reader.unclear.add("zsh reads this variable differently")
  // two brackets may begin a subshell in a subshell, or arithmetic: shells and the parser choose by what follows
  if (/(?<!\$)\(\(/.test(source)) reader.unclear.add("two open brackets are not followed")
  // within a word, parsers and shells differ in what a continued line means
  if (/[^\s]\\\r?\n/.test(source)) reader.unclear.add("a line is continued within a word")
  // shells differ in where such a here-document begins
  const lines = source.split("\n")
  const isContinued = (line: string | undefined) => line?.endsWith("\\") === true || line?.endsWith("\\\r") === true
  if (lines.some((line, index) => line.includes("<<") && (isContinued(line) || isContinued(lines[index - 1]))))
    reader.unclear.add("a continued line opens a here-document")
  return reader.line()
}
