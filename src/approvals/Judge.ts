/**
 * Judge: the verdict about one part of a call. Pure.
 *
 * Guarantees: a part runs only if all its effects are free or allowed by a rule.
 */
import { isHarmless } from "./CommandPattern.ts"
import { forbidden, OF_PROCESS } from "./Forbidden.ts"
import type { Part } from "./Parts.ts"
import { belowRoot, joined, pathEffect } from "./Paths.ts"
import { readProgram } from "./programs/ReadProgram.ts"
import { type CallEffect, type Folders, literal, type ProgramReading, type Word } from "./Reading.ts"
import { type Rule, type RuleSubject, ruleWords, subjectWords } from "./Rule.ts"
import { type RuleSet, ruleSet } from "./RuleSet.ts"
import { isOwnName } from "./ShellWords.ts"
import { programName } from "./Wrappers.ts"

export type Verdict = "run" | "ask" | "deny"

export interface Setting {
  readonly mode: "read_only" | "auto" | "full_access"
  readonly rules: ReadonlyArray<Rule>
  /** True if a sandbox holds the agent in its work tree, without a network. */
  readonly confined?: boolean
  /** `run`: a call whose effects stay in that sandbox needs nobody. */
  readonly inside?: "ask" | "run"
  /** Absolute path of the work tree, if calls may name it. */
  readonly root?: string
  /** True if git may take this folder, relative to the work tree, for a bare repository. */
  readonly isBare?: (folder: string) => boolean
}

export interface PartVerdict {
  /** The part as a person reads it. */
  readonly text: string
  readonly verdict: Verdict
  readonly reason: string
  readonly rule?: Rule
}

/** The leave that a part lacks. */
export interface Lack {
  /** The command, if a rule for commands can give the leave. */
  readonly command: Part | undefined
  readonly reading: ProgramReading
  /** Rules for other subjects that the part needs: the narrowest, and a wider one. */
  readonly others: ReadonlyArray<{ readonly exact: RuleSubject; readonly wide: RuleSubject }>
  /** True if no rule may give the leave: the part can be allowed once only. */
  readonly isOnce: boolean
}

export interface Judged extends PartVerdict {
  readonly lack?: Lack
}

/** Programs that run the text that reaches their input. */
const INTERPRETERS: ReadonlySet<string> = new Set(
  (
    "sh bash dash zsh ksh fish node deno bun tsx python python2 python3 perl ruby php lua awk gawk mawk sqlite3 psql " +
    "mysql ed ex vim at batch crontab xargs parallel ssh docker podman kubectl make m4 bc dc R Rscript julia"
  ).split(" ")
)

const NOTHING: ProgramReading = { shape: [], named: false, star: false, base: undefined, extra: [] }

const runs = (what: string): CallEffect => ({ kind: "runs", what })

const fileRules = (kind: "write" | "read", path: string): Lack["others"][number] => {
  const folder = path.slice(0, Math.max(0, path.lastIndexOf("/")))
  const wide = folder === "" ? path : `${folder}/**`
  return kind === "write"
    ? { exact: { write: path }, wide: { write: wide } }
    : { exact: { read: path }, wide: { read: wide } }
}

/** What the files of a call do, and the rules for them that are missing. */
interface FileEffects {
  readonly effects: Array<CallEffect>
  readonly lacks: Array<string>
  /** The rules that allow to write the others. */
  readonly rules: Array<Rule>
}

export class Judge {
  readonly setting: Setting
  readonly rules: RuleSet

  constructor(setting: Setting) {
    this.setting = setting
    this.rules = ruleSet(setting.rules)
  }

  /** True if what stays in the agent's sandbox needs nobody. */
  get isInside(): boolean {
    return this.setting.confined === true && this.setting.inside === "run"
  }

  private stays({ kind }: CallEffect): boolean {
    return this.isInside && (kind === "reads" || kind === "writes" || kind === "runs" || kind === "unknown")
  }

  /** The rule that allows to write a file. A star never stands for a secret, or for a file that others trust. */
  private writable(path: string, isPlain: boolean): Rule | undefined {
    const rule = this.rules.forPath("allow", "write", path)
    return isPlain || rule === undefined || !subjectWords(rule.subject).includes("*") ? rule : undefined
  }

  /** Adds what it means that a call writes or reads a file. */
  private file(word: Word, folders: Folders, access: "writes" | "reads", { effects, lacks, rules }: FileEffects): void {
    const effect = pathEffect(word, folders, access)
    if (access === "reads" || effect?.kind === "unknown") {
      if (effect !== undefined) effects.push(effect)
      return
    }
    if (word.value === undefined || word.globs || folders === undefined) {
      effects.push(effect ?? { kind: "unknown", what: `writes a file that is not known (${word.text})` })
      return
    }
    if (word.value === "/dev/null") return
    const below = belowRoot(word, word.value)
    for (const folder of below === undefined ? folders : [""]) {
      const path = joined(folder, below ?? word.value)
      const rule = path === undefined ? undefined : this.writable(path, effect === undefined)
      if (rule !== undefined) {
        rules.push(rule)
        continue
      }
      effects.push(effect ?? { kind: "writes", what: `writes ${path}` })
      // in a rule, a star of the name would stand for other files
      if (path !== undefined && effect === undefined && !path.includes("*")) lacks.push(path)
    }
  }

  /** The verdict of rules that deny or ask; undefined if there is none. */
  private ruled(part: Part, reading: ProgramReading): Judged | undefined {
    const found = forbidden(this.rules, part, reading)
    if (found === undefined) return undefined
    const { certain, rule, verdict } = found
    const reason = certain ? ruleWords(rule) : `it may be what a rule names: ${ruleWords(rule)}`
    return { text: part.text, verdict, reason, rule }
  }

  private judged(
    text: string,
    effects: ReadonlyArray<CallEffect>,
    rule: Rule | undefined,
    free: string,
    lack: Lack
  ): Judged {
    const left = effects.filter((effect) => !this.stays(effect))
    if (left.length > 0)
      return { text, verdict: "ask", reason: [...new Set(left.map(({ what }) => what))].join("; "), lack }
    if (rule !== undefined) return { text, verdict: "run", reason: ruleWords(rule), rule }
    return { text, verdict: "run", reason: effects.length > 0 ? "it stays in the sandbox" : free }
  }

  /** The verdict about a command; undefined if it is there for rules that deny or ask alone. */
  command(part: Part): Judged | undefined {
    const { assignments, counts, doubts, fed, folders, redirections, text, words } = part
    const program = words[0]?.value ?? ""
    const known = words.length === 0 ? NOTHING : readProgram(words, folders)
    const isGiven = part.found === true && known.base !== undefined
    const bare = known.shape[0] === "git" ? folders?.find((folder) => this.setting.isBare?.(folder)) : undefined
    const more = [
      ...doubts.map(runs),
      ...(isGiven ? [runs(`${program} gets every file that find finds`)] : []),
      ...(bare === undefined ? [] : [runs(`git obeys the settings of the repository in ${bare}`)])
    ]
    const reading = { ...known, extra: [...known.extra, ...more] }
    const ruled = this.ruled(part, reading)
    if (ruled !== undefined || !counts) return ruled
    // with what find finds, and in another repository, the same words are another command each time
    const isOther = isGiven || bare !== undefined
    const rule = words.length === 0 || isOther ? undefined : this.rules.covering(part, reading)
    const files: FileEffects = { effects: [], lacks: [], rules: [] }
    for (const { access, operator, target } of redirections) {
      if (access === "none") continue
      if (target === undefined || target.globs)
        files.effects.push({ kind: "unknown", what: `${operator} names a file that is not known` })
      else this.file(target, folders, access, files)
    }
    const isOwn = ({ name }: { readonly name: string }) =>
      words.length === 0 ? isOwnName(name) : name === "IFS" && program === "read"
    const set = assignments.filter((one) => !isHarmless(one) && !isOwn(one))
    const of = [
      ...(reading.base === undefined ? [] : [reading.base]),
      ...reading.extra,
      ...set.map(({ name }) => runs(`${name} may change what runs`))
    ]
    const isFed =
      fed && of.length > 0 && INTERPRETERS.has(programName(program)) && (rule === undefined || words.length === 1)
    const effects = [
      ...(rule === undefined ? of : []),
      ...files.effects,
      ...(isFed ? [runs(`${program} is fed a text to run`)] : [])
    ]
    const isClosed = [...of, ...files.effects].some(({ kind }) => kind === "secrets" || kind === "trusted")
    return this.judged(
      text,
      effects,
      rule ?? files.rules[0],
      words.length === 0 ? "it runs no program" : "it only reads the work tree",
      {
        command: rule === undefined && of.length > 0 ? part : undefined,
        reading,
        others: files.lacks.map((one) => fileRules("write", one)),
        isOnce: isFed || isClosed || isOther || files.effects.length > files.lacks.length
      }
    )
  }

  /**
   * The verdict about a file that a tool writes or reads. `meant`: its path without detours, for rules that deny.
   * `isClaimed`: only the agent says that the tool does no more than that.
   */
  path(path: string, meant: string, access: "writes" | "reads", isClaimed: boolean): Judged {
    const word = literal(path)
    const inside = joined("", path)
    const kind = access === "writes" ? "write" : "read"
    for (const effect of ["deny", "ask"] as const) {
      const rule = this.rules.forPath(effect, kind, joined("", meant) ?? meant)
      if (rule !== undefined) return { text: path, verdict: effect, reason: ruleWords(rule), rule }
    }
    const below = this.rules.below(kind, OF_PROCESS.test(path) ? "" : (joined("", meant) ?? meant))
    if (below !== undefined)
      return { text: path, verdict: "ask", reason: `it may be what a rule names: ${ruleWords(below)}`, rule: below }
    const files: FileEffects = { effects: [], lacks: [], rules: [] }
    this.file(word, [""], access, files)
    const rule = inside === undefined ? undefined : this.rules.forPath("allow", kind, inside)
    const others = files.lacks.map((one) => fileRules("write", one))
    // a claim of the agent is never enough, but a person may take it for granted
    if (access === "reads" && isClaimed && rule === undefined && files.effects.length === 0) {
      files.effects.push({ kind: "unknown", what: `the agent says that it only reads ${path}` })
      if (inside !== undefined && inside !== "" && !inside.includes("*")) {
        files.lacks.push(inside)
        others.push(fileRules("read", inside))
      }
    }
    const lack = { command: undefined, reading: NOTHING, others, isOnce: files.effects.length > files.lacks.length }
    return this.judged(path, files.effects, rule, "it only reads the work tree", lack)
  }

  /** The leave that a part without a command lacks. Undefined: no rule can give the leave. */
  lackOf(rules: Lack["others"][number] | undefined): Lack {
    return {
      command: undefined,
      reading: NOTHING,
      others: rules === undefined ? [] : [rules],
      isOnce: rules === undefined
    }
  }

  url(url: string): Judged {
    for (const effect of ["deny", "ask", "allow"] as const) {
      const rule = this.rules.forUrl(effect, url)
      if (rule !== undefined)
        return { text: url, verdict: effect === "allow" ? "run" : effect, reason: ruleWords(rule), rule }
    }
    const canName = URL.canParse(url) && !url.includes("*") && /^https?:\/\/[^@/]+(\/|$)/.test(url)
    const wide = canName ? `${new URL(url).origin}/*` : url
    const lack = this.lackOf(canName ? { exact: { url }, wide: { url: wide } } : undefined)
    return this.judged(url, [{ kind: "connects", what: `fetches ${url}` }], undefined, "", lack)
  }
}
