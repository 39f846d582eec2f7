/**
 * RuleProblems: the rules of a config file that cannot be kept, or that have no use.
 *
 * Guarantees: each rule of a file in force can decide a call (RuleFault), and no other rule of the same file says the
 * opposite about the same calls.
 */
import { type RuleEffect, subjectWords } from "../approvals/Rule.ts"
import { faultOf } from "../approvals/RuleFault.ts"
import { fieldOf } from "./ConfigProblem.ts"
import { EFFECTS, type RuleEntry, ruleOf } from "./RuleConfig.ts"

/** The rules of one part of a config file, and the path of their list. */
export interface RuleList {
  readonly path: ReadonlyArray<string>
  readonly rules: ReadonlyArray<RuleEntry>
}

const strength = ({ effect }: { readonly effect: RuleEffect }): number => -EFFECTS.indexOf(effect)

/**
 * A problem for each rule of `own` that cannot be kept, or that has no use, because a stronger one is about the same
 * calls. `wider`: the lists that are in force wherever `own` is.
 */
export const ruleProblems = (own: RuleList, ...wider: ReadonlyArray<RuleList>) => {
  const placed = ({ path, rules }: RuleList) =>
    rules.map((entry, index) => {
      const { effect, subject } = ruleOf(entry)
      // a command may have the words of another subject: "write x"
      const [calls, words] = [JSON.stringify(subject), subjectWords(subject)]
      return { path: [...path, index], effect, fault: faultOf(effect, subject), calls, words }
    })
  const rules = placed(own)
  const strongest = new Map<string, (typeof rules)[number]>()
  for (const rule of [...rules, ...wider.flatMap(placed)]) {
    const known = strongest.get(rule.calls)
    if (known === undefined || strength(rule) > strength(known)) strongest.set(rule.calls, rule)
  }
  return rules.flatMap(({ calls, effect, fault, path, words }) => {
    if (fault !== undefined) return [{ path: [...path, effect], issue: `is no rule that can be kept: ${fault}` }]
    const winner = strongest.get(calls)!
    if (winner.effect === effect) return []
    const says = `${fieldOf(winner.path)} says ${winner.effect} "${words}", and ${winner.effect} goes before ${effect}`
    return [{ path, issue: `has no use: ${says}. Remove one of the two` }]
  })
}
