/**
 * RuleSet: the rules in force, indexed so that a call meets only those that can be about it. Pure.
 */
import { type Command, type CommandPattern, commandPattern, isCovered, touches } from "./CommandPattern.ts"
import { fixedFolder, matchesPath, matchesText } from "./Glob.ts"
import type { ProgramReading, Word } from "./Reading.ts"
import { type Rule, type RuleEffect, type RuleSubject, subjectWords } from "./Rule.ts"
import { programName } from "./Wrappers.ts"

interface CommandRule {
  readonly rule: Rule
  readonly pattern: CommandPattern
}

type Kind = "write" | "read" | "url" | "tool"
const KINDS: ReadonlyArray<Kind> = ["write", "read", "url", "tool"]
const kindOf = (subject: RuleSubject): Kind | undefined => KINDS.find((kind) => kind in subject)

/** The more of a rule is fixed, the closer it names a call. This decides only which of several rules is named. */
const closeness = ({ subject }: Rule): number =>
  subjectWords(subject)
    .split(/\s+/)
    .reduce((sum, word) => sum + (word === "**" ? 0 : word.includes("*") ? 1 : 10), 0)

export const closest = (rules: ReadonlyArray<Rule>): Rule | undefined =>
  rules.reduce<Rule | undefined>(
    (best, rule) => (best === undefined || closeness(rule) > closeness(best) ? rule : best),
    undefined
  )

interface Origin {
  readonly protocol: string
  readonly host: string
  readonly path: string
}

/** An address in parts; undefined if it is no address of the web. `isPlain`: nor one with a user's name. */
export const originOf = (url: string, isPlain = true): Origin | undefined => {
  if (!URL.canParse(url)) return undefined
  const { host, password, pathname, protocol, search, username } = new URL(url)
  const isNamed = username !== "" || password !== ""
  return /^https?:$/.test(protocol) && !(isPlain && isNamed)
    ? { protocol, host, path: `${pathname}${search}` }
    : undefined
}

const bareHost = (host: string): string => host.replace(/:\d+$/, "").replace(/\.$/, "")

/** Addresses of which every program reads the same host. */
const CLEAR = /^https?:\/\/[\w.-]+(:\d+)?([/?#][\x21-\x5b\x5d-\x7e]*)?$/i

const isHost = (pattern: string, host: string): boolean =>
  pattern.startsWith("*.") ? host.endsWith(pattern.slice(1)) : pattern === host

const textOf = (value: unknown): string | undefined => (typeof value === "string" ? value : JSON.stringify(value))

const entriesOf = (input: unknown): ReadonlyArray<readonly [string, unknown]> =>
  typeof input === "object" && input !== null ? Object.entries(input) : []

const patterns = new WeakMap<Rule, CommandPattern>()

/** The words of a rule for commands. Kept as long as the rule, because lists of rules are made anew for each run. */
const patternOf = (rule: Rule): CommandPattern | undefined => {
  const { subject } = rule
  const known = patterns.get(rule)
  if (known !== undefined || !("command" in subject)) return known
  const pattern = commandPattern(subject.command)
  if (pattern !== undefined) patterns.set(rule, pattern)
  return pattern
}

export class RuleSet {
  private readonly commands = new Map<string, Array<CommandRule>>()
  private readonly others: Readonly<Record<Kind, Array<Rule>>> = { write: [], read: [], url: [], tool: [] }
  /** Rules for commands that deny or ask. */
  readonly strict: ReadonlyArray<CommandRule>
  /** True if a rule about commands, files or addresses denies or asks: then an unclear line must be asked. */
  readonly isStrict: boolean
  /** The hosts of rules that deny or ask. */
  readonly strictHosts: ReadonlyArray<{ readonly host: string; readonly rule: Rule }>

  constructor(rules: ReadonlyArray<Rule>) {
    for (const rule of rules) {
      const { subject } = rule
      const kind = kindOf(subject)
      if (kind !== undefined) this.others[kind].push(rule)
      const pattern = patternOf(rule)
      if (pattern === undefined) continue
      const name = programName(pattern.program).toLowerCase()
      const known = this.commands.get(name)
      if (known === undefined) this.commands.set(name, [{ rule, pattern }])
      else known.push({ rule, pattern })
    }
    this.strict = [...this.commands.values()].flat().filter(({ rule }) => rule.effect !== "allow")
    this.isStrict = rules.some(({ effect, subject }) => effect !== "allow" && kindOf(subject) !== "tool")
    this.strictHosts = this.others.url.flatMap((rule) => {
      const origin = "url" in rule.subject && rule.effect !== "allow" ? originOf(rule.subject.url) : undefined
      return origin === undefined ? [] : [{ host: bareHost(origin.host).replace(/^\*\./, ""), rule }]
    })
  }

  private about(name: string): ReadonlyArray<CommandRule> {
    return this.commands.get(programName(name).toLowerCase()) ?? []
  }

  /** Rules that deny or ask about a command, in a wide reading. */
  touching(
    effect: RuleEffect,
    words: ReadonlyArray<Word>,
    shape: ReadonlyArray<string> | undefined
  ): { readonly yes: ReadonlyArray<Rule>; readonly maybe: ReadonlyArray<Rule> } {
    const first = words[0]
    if (first === undefined) return { yes: [], maybe: [] }
    const candidates = first.value === undefined || first.globs ? this.strict : this.about(first.value)
    const found = { yes: [] as Array<Rule>, maybe: [] as Array<Rule> }
    for (const { pattern, rule } of candidates) {
      if (rule.effect !== effect) continue
      const how = touches(pattern, words, shape)
      if (how !== undefined) found[how].push(rule)
    }
    return found
  }

  /** The closest rule that allows a command as it stands. */
  covering(command: Command, reading: ProgramReading): Rule | undefined {
    const { value } = command.words[0] ?? {}
    if (value === undefined) return undefined
    const fits = this.about(value).filter(
      ({ pattern, rule }) => rule.effect === "allow" && isCovered(pattern, command, reading)
    )
    return closest(fits.map(({ rule }) => rule))
  }

  /** Rules for files. `path`: relative to the work tree. */
  forPath(effect: RuleEffect, access: "write" | "read", path: string): Rule | undefined {
    return closest(
      this.others[access].filter((rule) => {
        if (rule.effect !== effect) return false
        const pattern = subjectWords(rule.subject).slice(access.length + 1)
        // on some file systems, another letter case is the same file
        return effect === "allow" ? matchesPath(pattern, path) : matchesPath(pattern.toLowerCase(), path.toLowerCase())
      })
    )
  }

  /** Rules that deny or ask about files which a program may meet that goes through `folder`. */
  below(access: "write" | "read", folder: string): Rule | undefined {
    return closest(
      this.others[access].filter(({ effect, subject }) => {
        if (effect === "allow") return false
        const fixed = fixedFolder(subjectWords(subject).slice(access.length + 1)).toLowerCase()
        const at = folder.toLowerCase()
        return at === "" || fixed === at || fixed.startsWith(`${at}/`)
      })
    )
  }

  /** Rules for addresses. One that allows names protocol, host and port; one that denies or asks needs the host alone. */
  forUrl(effect: RuleEffect, url: string): Rule | undefined {
    const asked = originOf(url, effect === "allow")
    if (asked === undefined || (effect === "allow" && !CLEAR.test(url)))
      // a program may read the text as an address of this host
      return closest(
        this.strictHosts.flatMap(({ host, rule }) =>
          rule.effect === effect && url.toLowerCase().includes(host) ? [rule] : []
        )
      )
    return closest(
      this.others.url.filter(({ effect: its, subject }) => {
        if (its !== effect || !("url" in subject)) return false
        const wanted = originOf(subject.url)
        if (wanted === undefined) return false
        const isSame =
          effect === "allow"
            ? wanted.protocol === asked.protocol && isHost(wanted.host, asked.host)
            : isHost(bareHost(wanted.host), bareHost(asked.host))
        return isSame && matchesText(wanted.path, asked.path)
      })
    )
  }

  /**
   * Rules for a tool by its name and arguments. One that allows names every argument of the call, or none at all; one
   * that denies or asks needs only its own.
   */
  forTool(effect: RuleEffect, tool: string, input: unknown): Rule | undefined {
    const given = entriesOf(input)
    const isText = typeof input === "string" || Array.isArray(input)
    return closest(
      this.others.tool.filter(({ effect: its, subject }) => {
        if (its !== effect || !("tool" in subject) || !matchesText(subject.tool, tool)) return false
        const { argument } = subject
        if (argument === undefined || (isText && effect !== "allow")) return true
        const fits = (name: string, value: unknown) => {
          const text = textOf(value)
          return Object.hasOwn(argument, name) && text !== undefined && matchesText(argument[name]!, text)
        }
        const named = Object.keys(argument)
        return effect === "allow"
          ? given.every(([name, value]) => fits(name, value)) &&
              named.every((name) => given.some(([one]) => one === name))
          : named.every((name) => given.some(([one, value]) => one === name && fits(name, value)))
      })
    )
  }
}

const sets = new WeakMap<ReadonlyArray<Rule>, RuleSet>()

/** The set of these rules. Kept as long as the list, which must not change. */
export const ruleSet = (rules: ReadonlyArray<Rule>): RuleSet => {
  const known = sets.get(rules)
  if (known !== undefined) return known
  const made = new RuleSet(rules)
  sets.set(rules, made)
  return made
}
