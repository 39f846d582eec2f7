/**
 * RuleUse: finds in the log when a call last met each rule. The reason of a decision names the rule, so nothing is
 * stored for it.
 */
import { Clock, Duration, Effect, Stream } from "effect"
import { ruleWords } from "../../approvals/Rule.ts"
import type { Rune } from "../../core/event-log/Rune.ts"
import { onSource } from "../log/LogSource.ts"
import type { FiledRule, RuleFiles } from "./RuleFiles.ts"

/** How far back the log is read. */
const WINDOW = Duration.days(60)

const KINDS = ["tool.started", "tool.approval_requested", "tool.approved", "tool.denied"]

export interface RuleUse {
  /** When a call last met a rule, ms since the epoch. Without the rules that no call has met. */
  readonly last: ReadonlyMap<FiledRule, number>
  /** How much of the log was read, in ms: the window, or less if the log is younger. */
  readonly read: number
  readonly isWhole: boolean
}

const reasonOf = ({ payload }: Rune): string => {
  const { event } = payload
  if (typeof event !== "object" || event === null) return ""
  const { policyReason, reason } = event as { readonly policyReason?: unknown; readonly reason?: unknown }
  return [policyReason, reason].filter((text) => typeof text === "string").join("\n")
}

/** Undefined if the log cannot be read. */
export const of = Effect.fnUntraced(
  function* ({ kept, project }: RuleFiles) {
    // the line of a rule may have been another one
    const named = Map.groupBy(kept, ({ line, rule }) => ruleWords(rule).slice(0, -`${line})`.length))
    const now = yield* Clock.currentTimeMillis
    const since = now - Duration.toMillis(WINDOW)
    const last = new Map<FiledRule, number>()
    const meet = (rune: Rune) => {
      const reason = reasonOf(rune)
      for (const [words, rules] of reason === "" ? [] : named) {
        // another project's file has the same name
        const met = rules.filter(({ file }) => file !== project?.path || rune.stream === project.id)
        if (reason.includes(words)) for (const one of met) last.set(one, rune.at)
      }
    }
    const begin = yield* onSource(({ log }) =>
      Effect.gen(function* () {
        yield* Stream.runForEach(log({ kinds: KINDS, since }), (rune) => Effect.sync(() => meet(rune)))
        return yield* Stream.runHead(log({}))
      })
    )
    const read = Math.min(now - since, begin._tag === "Some" ? now - begin.value.at : 0)
    return { last, read, isWhole: read === now - since } satisfies RuleUse
  },
  (effect) => Effect.orElseSucceed(effect, () => undefined)
)
