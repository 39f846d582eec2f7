/**
 * Decision: whether a call runs, waits for a person, or is denied, with the reason and the rule. Pure: a function of
 * the call, the rules, the mode, and facts of the run.
 *
 * Deny goes before ask, and ask before allow. A rule that denies or asks matches widely. A rule that allows matches
 * narrowly, and every part of a line needs leave: it is free, as it only reads the work tree, or a rule allows it.
 * Nothing allows a line that is not understood.
 */
import { join, normalize } from "node:path"
import { Judge, type Judged, type PartVerdict, type Setting, type Verdict } from "./Judge.ts"
import { type Offer, offersOf } from "./Offers.ts"
import { partsOf } from "./Parts.ts"
import type { Folders } from "./Reading.ts"
import { MAX_LENGTH, TOO_LONG } from "./Shell.ts"
import { type Rule, type RuleEffect, type RuleSubject, ruleWords } from "./Rule.ts"

export type { PartVerdict, Setting, Verdict } from "./Judge.ts"

/** A call in the terms of rules, whatever program makes it. `tool`: the name by which the program calls it. */
export type CallSubject =
  /**
   * A line for a shell. `folders`: where it may run, relative to the work tree. `doubt`: why the text may not be all
   * that runs; then nothing allows it. `free`: as for files.
   */
  | {
      readonly _tag: "Shell"
      readonly tool: string
      readonly text: string
      readonly folders: Folders
      readonly doubt?: string | undefined
      readonly free?: boolean
    }
  /**
   * Files that are written or read. Paths: absolute, or relative to the work tree. `free`: the call needs leave only if
   * a rule denies or asks, because its program knows that it has no side effects.
   */
  | {
      readonly _tag: "Files"
      readonly tool: string
      readonly access: "writes" | "reads"
      readonly paths: ReadonlyArray<string>
      readonly free: boolean
    }
  | { readonly _tag: "Fetch"; readonly tool: string; readonly url: string }
  /** Any other tool. `readOnly`: its program knows that it has no side effects. `named`: a rule can name it. */
  | {
      readonly _tag: "Tool"
      readonly tool: string
      readonly input: unknown
      readonly readOnly: boolean
      readonly named: boolean
    }

export interface Decision {
  readonly verdict: Verdict
  readonly reason: string
  /** The rule that decided; undefined if none did, or if several parts were each allowed. */
  readonly rule?: Rule
  readonly parts: ReadonlyArray<PartVerdict>
  /** Rules that would have allowed the call, the narrowest first. Empty: it can only be allowed once. */
  readonly offers: ReadonlyArray<Offer>
}

/** Maximum length of a shell line, characters. A longer one is denied. */
export const MAX_DECIDED = 32_768

/** Maximum length of a call's input in a rule, characters of JSON. */
const MAX_INPUT = 1_000

const relative = (path: string, root: string | undefined): string => {
  if (root === undefined) return path
  const whole = path.startsWith("/") ? normalize(path) : join(root, path)
  return whole === root || whole.startsWith(`${root}/`) ? whole.slice(root.length + 1) || "." : path
}

/** A rule for exactly this use of a tool; undefined if its input is no plain record, or too long. */
const exactUse = (tool: string, input: unknown): RuleSubject | undefined => {
  const text = JSON.stringify(input ?? {})
  if (text.length > MAX_INPUT || text.includes("*") || tool.includes("*")) return undefined
  if (typeof input !== "object" || input === null || Array.isArray(input)) return undefined
  // in a rule, a text that reads as JSON of another kind would be that, too
  const texts = Object.values(input).filter((value) => typeof value === "string")
  if (texts.some((value) => value === "" || /^[\s{[\d-]|^(true|false|null)$/.test(value))) return undefined
  const argument = Object.entries(input).map(([name, value]: [string, unknown]) => [
    name,
    typeof value === "string" ? value : JSON.stringify(value)
  ])
  return { tool, argument: Object.fromEntries(argument) }
}

const useOf = ({ input, named, readOnly, tool }: Extract<CallSubject, { _tag: "Tool" }>, judge: Judge): Judged => {
  if (readOnly) return { text: tool, verdict: "run", reason: `${tool} has no side effects` }
  const exact = named ? exactUse(tool, input) : undefined
  return {
    text: tool,
    // what a tool does is not known: it may connect, so no sandbox answers for it
    verdict: "ask",
    reason: `${tool} may have side effects`,
    lack: judge.lackOf(exact === undefined ? undefined : { exact, wide: { tool } })
  }
}

/** A part of a call without side effects needs leave only if a rule says so. */
const freed = (one: Judged, { tool }: CallSubject): Judged =>
  one.rule === undefined ? { text: one.text, verdict: "run", reason: `${tool} has no side effects` } : one

interface Reading {
  readonly judged: ReadonlyArray<Judged>
  readonly unclear: ReadonlyArray<string>
}

const readingOf = (subject: CallSubject, judge: Judge): Reading => {
  const { root } = judge.setting
  switch (subject._tag) {
    case "Shell": {
      // nothing allows it, so that its parts matter only to rules that deny or ask
      const areRead = judge.rules.isStrict || judge.isInside || subject.free === true
      if (subject.text.length > MAX_LENGTH && !areRead) return { judged: [], unclear: [TOO_LONG] }
      const { parts, unclear } = partsOf(subject.text, subject.folders, root)
      const doubts = subject.doubt === undefined ? unclear : [subject.doubt, ...unclear]
      const judged = parts.flatMap((part) => judge.command(part) ?? [])
      if (subject.free !== true) return { judged, unclear: doubts }
      return { judged: judged.map((one) => freed(one, subject)), unclear: judge.rules.isStrict ? doubts : [] }
    }
    case "Files": {
      const { access, free, paths } = subject
      const judged = paths.map((path) =>
        judge.path(path.startsWith("//") ? path : relative(path, root), relative(path, root), access, !free)
      )
      return { judged: free ? judged.map((one) => freed(one, subject)) : judged, unclear: [] }
    }
    case "Fetch":
      return { judged: [judge.url(subject.url)], unclear: [] }
    case "Tool":
      return { judged: [useOf(subject, judge)], unclear: [] }
  }
}

const decided = (subject: CallSubject, judge: Judge): Decision => {
  const { mode } = judge.setting
  const { judged, unclear } = readingOf(subject, judge)
  const is = (verdict: Verdict, reason: string, rule?: Rule, offers: ReadonlyArray<Offer> = []): Decision => ({
    verdict,
    reason,
    ...(rule === undefined ? {} : { rule }),
    parts: judged.map(({ lack: _lack, ...part }) => part),
    offers
  })
  const said = ({ reason, text }: PartVerdict) => (judged.length === 1 || text === "" ? reason : `${text}: ${reason}`)
  const forTool = (effect: RuleEffect) =>
    judge.rules.forTool(effect, subject.tool, subject._tag === "Tool" ? subject.input : {})
  for (const verdict of ["deny", "ask"] as const) {
    const rule = forTool(verdict)
    if (rule !== undefined) return is(verdict, ruleWords(rule), rule)
    const part = judged.find((one) => one.verdict === verdict && one.rule !== undefined)
    if (part !== undefined) return is(verdict, said(part), part.rule)
  }
  // an unclear line may hold what a rule denies or asks about
  const isDoubtful = unclear.length > 0 && judge.rules.isStrict
  const allowed = forTool("allow")
  if (!isDoubtful && allowed !== undefined) return is("run", ruleWords(allowed), allowed)
  if (!isDoubtful && mode === "full_access") return is("run", "the agent has full access")
  const lacking = judged.find(({ verdict }) => verdict === "ask")
  const isUnclear = unclear.length > 0 && (isDoubtful || !judge.isInside)
  if (!isUnclear && lacking === undefined) {
    const rules = judged.flatMap(({ rule }) => rule ?? [])
    return is("run", judged.map(said).join("; ") || "it runs nothing", rules.length === 1 ? rules[0] : undefined)
  }
  const reason = isUnclear ? unclear[0]! : said(lacking!)
  if (mode === "read_only") return is("deny", `${reason}, and the agent may only read (approvals.mode read_only)`)
  const lacks = judged.flatMap(({ lack, verdict }) => (verdict === "ask" && lack !== undefined ? [lack] : []))
  return is("ask", reason, undefined, unclear.length > 0 ? [] : offersOf(lacks))
}

const denied = (reason: string): Decision => ({ verdict: "deny", reason, parts: [], offers: [] })

export const decide = (subject: CallSubject, setting: Setting): Decision => {
  if (subject._tag === "Shell" && subject.text.length > MAX_DECIDED)
    return denied(`it is longer than ${MAX_DECIDED} characters, more than a person can look through`)
  try {
    return decided(subject, new Judge(setting))
  } catch (error) {
    // the parser calls itself for each level of brackets and quotes
    if (error instanceof RangeError) return denied("it is nested deeper than it can be read")
    throw error
  }
}
