/**
 * LogRules: the definitions that a program provides for its log: kinds, invariants, folds, and the home stream, which
 * contains the program's reports about itself. The log itself defines only its own kinds.
 */
import { Context } from "effect"
import type { KnownKinds } from "./EventKinds.ts"
import type { RuneRefused } from "./EventLog.ts"
import type { InvariantGuard } from "./InvariantGuard.ts"
import type { Rune, RuneDraft } from "./Rune.ts"
import type { StreamFold } from "./StreamFold.ts"

/** Effect of a violated invariant: FATAL halts the stream, ERROR refuses the rune, WARN only records the violation. */
export type Severity = "FATAL" | "ERROR" | "WARN"

export interface Rules {
  readonly kinds: KnownKinds
  readonly guard: InvariantGuard
  /** Folds of the program's features. A stream is read once for all of its folds. */
  readonly folds: ReadonlyArray<StreamFold<unknown>>
  /** The stream of facts about the program itself. Runes for streams that accept no more runes are in it, too. */
  readonly home: string
  /** The severity of an invariant; undefined for other rules (a rune's size or schema). */
  readonly severityOf: (rule: string) => Severity | undefined
  /**
   * `kind`: the kind of home-stream rune that records that a stream is archived. `streamOf`: returns the archived
   * stream.
   */
  readonly archives: { readonly kind: string; readonly streamOf: (rune: Pick<Rune, "actor">) => string }
}

export class LogRules extends Context.Service<LogRules, Rules>()("agentd/event-log/LogRules") {}

/**
 * The draft of a rune that reports a refused rune. The draft belongs to the stream of the refused rune, or to the home
 * stream if that stream accepts no runes. Undefined if the rule is not an invariant, or if neither stream accepts
 * runes.
 */
export const violation = (
  rules: Rules,
  refused: RuneRefused,
  rune: Pick<Rune, "actor" | "cause" | "kind" | "stream">,
  isOpen: (stream: string) => boolean
): RuneDraft | undefined => {
  const severity = rules.severityOf(refused.rule)
  const stream = [rune.stream, rules.home].find(isOpen)
  if (severity === undefined || stream === undefined) return undefined
  return {
    stream,
    kind: "invariant.violated",
    actor: "log/guard",
    cause: rune.cause,
    payload: {
      rule: refused.rule,
      severity,
      kind: rune.kind,
      actor: rune.actor,
      stream: rune.stream,
      message: refused.message
    }
  }
}

export const dropped = (stream: string, count: number): RuneDraft => ({
  stream,
  kind: "runes.dropped",
  actor: "log/writer",
  payload: { count }
})
