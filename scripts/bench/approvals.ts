/**
 * Bench of one decision about a shell line: with 45 rules, as a person has after some weeks, and with 1,000. Rules are
 * looked up by program, so their number should hardly matter.
 */
import { decide, type Setting } from "../../src/approvals/Decision.ts"
import type { Rule, RuleEffect } from "../../src/approvals/Rule.ts"
import { PLAIN } from "../../test/attack/approvals/Plain.ts"
import { SETTING } from "../../test/attack/approvals/Rules.ts"
import { type Aim, type Bench, interleave, type Measure, quantile, type Subject } from "./Bench.ts"

const ROUNDS = 9
const LINES = PLAIN.flatMap(({ lines }) => lines)

const made = (index: number): Rule => {
  const effect: RuleEffect = index % 9 === 0 ? "deny" : "allow"
  return { effect, subject: { command: `tool${index} sub x` }, place: { scope: "project", at: null } }
}

/** The rules of the attacks, and further ones up to this number. */
const rulesOf = (count: number): ReadonlyArray<Rule> => [
  ...SETTING.rules,
  ...Array.from({ length: count - SETTING.rules.length }, (_, index) => made(index))
]

const subject = (count: number): Subject => {
  const setting: Setting = { ...SETTING, rules: rulesOf(count) }
  return {
    subject: `${count} rules`,
    round: () => {
      const times = LINES.map((text) => {
        const from = performance.now()
        decide({ _tag: "Shell", tool: "Bash", text, folders: [""] }, setting)
        return (performance.now() - from) * 1000
      })
      return Promise.resolve({ "a decision p50": quantile(times, 0.5), "a decision p99": quantile(times, 0.99) })
    }
  }
}

const measures: ReadonlyArray<Measure> = [
  { what: "a decision p50", unit: "µs", better: "less" },
  { what: "a decision p99", unit: "µs", better: "less" }
]

const aims: ReadonlyArray<Aim> = [
  { what: "a decision p50", atMost: 100 },
  { what: "a decision p50", to: { subject: "45 rules" }, atMost: 2 }
]

export const bench: Bench = {
  name: "approvals",
  run: () => interleave(measures, [subject(1000), subject(45)], ROUNDS),
  aims
}
