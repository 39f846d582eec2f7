/**
 * Rule: what a person has said about calls, once and for all: allow, ask, or deny. Pure.
 *
 * A rule names one subject: a shell command, a file that is written or read, an address that is fetched, or a tool and
 * its arguments. In a command, `*` is one word that is no option, and `**` at the end is any plain words. In a path,
 * `*` is any text without a slash, and `**` any text. In an address and an argument, `*` is any text.
 */

/** The effect of a rule. Deny goes before ask, and ask before allow, in all scopes together. */
export type RuleEffect = "allow" | "ask" | "deny"

/** The calls that a rule is about. Paths are relative to the work tree. */
export type RuleSubject =
  | { readonly command: string }
  | { readonly write: string }
  | { readonly read: string }
  | { readonly url: string }
  | { readonly tool: string; readonly argument?: { readonly [name: string]: string } }

/**
 * Where a rule is kept, from the narrowest to the widest: in the run's state, in the user's config for one agent, for
 * one project, or for all projects, in the project's `agentd.jsonc` for one agent or for all.
 */
export type RuleScope = "run" | "user agent" | "user project" | "user" | "agent" | "project"

export interface RulePlace {
  readonly scope: RuleScope
  /** The file and the line of the rule, such as `agentd.jsonc:41`; null for a rule of a run. */
  readonly at: string | null
}

export interface Rule {
  readonly effect: RuleEffect
  readonly subject: RuleSubject
  readonly place: RulePlace
}

/** True if one of the rules denies or asks: then the agent's program must ask about every call. */
export const restricts = (rules: ReadonlyArray<Rule>): boolean => rules.some(({ effect }) => effect !== "allow")

/** The rule without its effect, in the words of the config file: `npm test **`, `write build/**`. */
export const subjectWords = (subject: RuleSubject): string => {
  if ("command" in subject) return subject.command
  if ("write" in subject) return `write ${subject.write}`
  if ("read" in subject) return `read ${subject.read}`
  if ("url" in subject) return `url ${subject.url}`
  const { argument = {}, tool } = subject
  const named = Object.entries(argument).map(([name, value]) => `${name}=${value}`)
  return ["tool", tool, ...named].join(" ")
}

/** A rule in the words of a message: `deny "git push --force" (agentd.jsonc:41)`. */
export const ruleWords = ({ effect, place, subject }: Rule): string =>
  `${effect} "${subjectWords(subject)}"${place.at === null ? "" : ` (${place.at})`}`
