/**
 * WholeCheck: stores the result of the last check of the whole log, and records the results of background checks in the
 * log.
 *
 * Guarantees: the result of a background check is stored as a rune of the home stream, and survives restarts. If a
 * background check finds a problem, it also raises an alert. The result of a check that a user requested is kept until
 * the daemon ends. A repair discards the result.
 */
import { Clock, Duration, Effect } from "effect"
import type { Appender } from "./Appender.ts"
import type { Checked, StorageError, Verdict } from "./EventLog.ts"
import type { Rules } from "./LogRules.ts"
import { readOwn } from "./OwnKinds.ts"
import type { Rune } from "./Rune.ts"

/** Applies a rune of the home stream. Returns the result of the last check. */
export const apply = (before: Checked | null, rune: Rune): Checked | null => {
  const own = readOwn(rune)
  if (own?.kind === "log.repaired") return null
  if (own?.kind !== "log.verified") return before
  const { first, problems, runes } = own.payload
  return { at: rune.at, runes, problems, first }
}

const inWords = ({ problems: [first] }: Verdict): string | null => {
  if (first === undefined) return null
  const { eventId, message, stream } = first
  return `${stream === "" ? "" : `rune ${eventId} of ${stream}: `}${message}`
}

const outcomeOf = (verdict: Verdict, at: number): Checked => ({
  at,
  runes: verdict.runes,
  problems: verdict.problems.length,
  first: inWords(verdict)
})

export class WholeCheck {
  private readonly rules: Rules
  private readonly append: Appender["append"]
  last: Checked | null

  constructor(rules: Rules, append: Appender["append"], last: Checked | null) {
    this.rules = rules
    this.append = append
    this.last = last
  }

  /** Runs the check and stores its result in `last`. */
  noting(verify: Effect.Effect<Verdict, StorageError>): Effect.Effect<Verdict, StorageError> {
    return Effect.tap(verify, (verdict) =>
      Effect.map(Clock.currentTimeMillis, (now) => {
        this.last = outcomeOf(verdict, now)
      })
    )
  }

  /** Runs the check like `noting`, and appends its result to the log. */
  telling(verify: Effect.Effect<Verdict, StorageError>) {
    return Effect.gen({ self: this }, function* () {
      const { home, severityOf } = this.rules
      const [took, verdict] = yield* Effect.timed(verify)
      const now = yield* Clock.currentTimeMillis
      const outcome = outcomeOf(verdict, now)
      const { problems, runes, streams } = verdict
      this.last = outcome
      const told = { runes, streams, problems: problems.length, first: outcome.first, took: Duration.toMillis(took) }
      const of = { stream: home, actor: "log/check", trigger: "check" }
      yield* this.append([
        { ...of, kind: "log.verified", payload: told },
        ...problems.slice(0, 1).map(({ rule }) => ({
          ...of,
          kind: "invariant.violated",
          payload: {
            rule,
            severity: severityOf(rule) ?? "FATAL",
            kind: "",
            actor: "",
            stream: home,
            message: `The log was read as a whole, and ${problems.length === 1 ? "one rune or file is" : `${problems.length} runes or files are`} not as written. ${outcome.first}`
          }
        }))
      ])
      return outcome
    })
  }
}
