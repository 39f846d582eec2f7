/**
 * LogRules: the facts about a program that its log needs: kinds, invariants, folds, and the home stream, where the
 * program reports about itself. The log itself knows only its own kinds.
 */
import { Context } from "effect"
import type { KnownKinds } from "./EventKinds.ts"
import type { RuneRefused } from "./EventLog.ts"
import type { InvariantGuard } from "./InvariantGuard.ts"
import type { Rune, RuneDraft } from "./Rune.ts"
import type { StreamFold } from "./StreamFold.ts"

/** FATAL halts a stream, ERROR refuses a rune, WARN is written down. */
export type Severity = "FATAL" | "ERROR" | "WARN"

export interface Rules {
  readonly kinds: KnownKinds
  readonly guard: InvariantGuard
  /** Folds of the program's features: a stream is read by all of its folds together. */
  readonly folds: ReadonlyArray<StreamFold<unknown>>
  /** The stream of facts about the program itself. Runes for a stream that accepts no more go here. */
  readonly home: string
  /** Undefined for a rule that is no invariant (a rune's size, its schema). */
  readonly severityOf: (rule: string) => Severity | undefined
  /**
   * The kind of the rune in the home stream that says that a stream is archived, and the stream that such a rune names.
   */
  readonly archives: { readonly kind: string; readonly streamOf: (rune: Pick<Rune, "actor">) => string }
}

export class LogRules extends Context.Service<LogRules, Rules>()("agentd/event-log/LogRules") {}

/**
 * The rune that reports a refused rune: in the same stream, or in the home stream if that one accepts none. Undefined
 * if the rule is no invariant, or if neither stream accepts runes.
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
