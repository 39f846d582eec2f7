/** AnswerScope: how far the approval of a call reaches, if it is not for this call alone, and its words. Pure. */
import { type RuleSubject, subjectWords } from "./Rule.ts"

/**
 * From the narrowest to the widest. `run`: kept in the state of the call's run. `agent`, `project`: a rule in the
 * user's own config. `everyone`: a rule in the project's `agentd.jsonc`.
 */
export const ANSWER_SCOPES = ["run", "agent", "project", "everyone"] as const
export type AnswerScope = (typeof ANSWER_SCOPES)[number]

/** Maximum number of offers for one call. */
export const MAX_OFFERS = 9

/** The scope and the offer that a person has chosen. `offer`: its number, counted from 1. */
export interface Lasting {
  readonly scope: AnswerScope
  readonly offer: number
}

export const scopeWords: { readonly [scope in AnswerScope]: string } = {
  run: "for this run",
  agent: "for this agent",
  project: "always in this project",
  everyone: "for everyone here"
}

/** The rules that an approval added, in words: `for this run: npm test`. */
export const givenWords = (scope: AnswerScope, rules: ReadonlyArray<RuleSubject>): string =>
  `${scopeWords[scope]}: ${rules.map(subjectWords).join(", ")}`
