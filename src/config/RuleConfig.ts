/**
 * RuleConfig: the rules of a config file that allow calls, ask about them, or deny them.
 *
 * Guarantees: each rule has one effect and one subject. The whole file is checked further (RuleProblems).
 */
import { Schema } from "effect"
import type { RuleEffect, RuleSubject } from "../approvals/Rule.ts"
import { described, optional, Word } from "./Fields.ts"

const MAX_RULES = 1000

/** From the strongest to the weakest. */
export const EFFECTS: ReadonlyArray<RuleEffect> = ["deny", "ask", "allow"]

const KINDS = ["write", "read", "url", "tool"] as const

const Subject = Schema.Union([
  Word,
  Schema.Struct({
    write: optional(Word, "Files that are written, relative to the work tree: * is any text without a slash, ** any."),
    read: optional(Word, "Files that are read, relative to the work tree: * is any text without a slash, ** any."),
    url: optional(Word, "Addresses that are fetched: * is any text."),
    tool: optional(Word, "A tool that is no shell, by its name."),
    argument: optional(Schema.Record(Word, Word), "Arguments of the tool, by name: * is any text.")
  })
])

const Fields = Schema.Struct({
  allow: optional(Subject, "Calls that run without a question."),
  ask: optional(Subject, "Calls that wait for your approval, in any mode."),
  deny: optional(Subject, "Calls that are denied, in any mode."),
  note: optional(Word, "What the rule is for, for those who read the file.")
})

/** A rule as it is written: `{ "allow": "npm test **" }`, `{ "deny": { "read": "private/**" }, "note": "keys" }`. */
export type RuleEntry = typeof Fields.Type

const effectsOf = (entry: RuleEntry): ReadonlyArray<RuleEffect> =>
  EFFECTS.filter((effect) => entry[effect] !== undefined)

const subjectOf = (written: typeof Subject.Type): RuleSubject => {
  if (typeof written === "string") return { command: written }
  const { argument, read, tool = "", url, write } = written
  if (write !== undefined) return { write }
  if (read !== undefined) return { read }
  if (url !== undefined) return { url }
  return argument === undefined ? { tool } : { tool, argument }
}

/** The effect and the subject of a valid rule. */
export const ruleOf = (entry: RuleEntry): { readonly effect: RuleEffect; readonly subject: RuleSubject } => {
  const effect = effectsOf(entry)[0]!
  return { effect, subject: subjectOf(entry[effect]!) }
}

/** The rule as it is written into a file. */
export const entryOf = (effect: RuleEffect, subject: RuleSubject): RuleEntry => ({
  [effect]: "command" in subject ? subject.command : subject
})

const faults = (entry: RuleEntry) => {
  const effects = effectsOf(entry)
  const [effect] = effects
  if (effect === undefined) return "has no effect: add one of allow, ask and deny"
  if (effects.length > 1) return `has ${effects.length} effects, ${effects.join(" and ")}: keep one of them`
  const written = entry[effect]!
  if (typeof written !== "string") {
    const kinds = KINDS.filter((kind) => written[kind] !== undefined)
    const names = KINDS.join(", ")
    if (kinds.length === 0)
      return { path: [effect], issue: `names no call: write a command as text, or one of ${names}` }
    if (kinds.length > 1) return { path: [effect], issue: `names ${kinds.join(" and ")}: make a rule of each` }
    if (written.argument !== undefined && written.tool === undefined)
      return { path: [effect, "argument"], issue: `is for a tool, but the rule names a ${kinds[0]}: remove it` }
  }
  return true
}

export const Rules = Schema.Array(
  described(
    Fields.check(Schema.makeFilter(faults)),
    'A rule, such as { "allow": "npm test **" }, { "ask": "git push" } or { "deny": { "read": "private/**" } }.'
  )
).check(Schema.isMaxLength(MAX_RULES, { message: `must contain at most ${MAX_RULES} rules` }))
