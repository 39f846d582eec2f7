/**
 * GroupCommit: the appends that are committed together. A refused one takes no other
 * with it; where an invariant stood against it, the group says so. Pure.
 */
import { Result } from "effect"
import { severityOf } from "../domain/Invariants.ts"
import { DAEMON_STREAM, type Rune } from "./Rune.ts"
import { type ReadyDraft, readyOwn } from "./EventDraft.ts"
import * as AdmissionState from "./AdmissionState.ts"
import type { RuneRefused } from "./EventLog.ts"

export interface Group {
  /** As it will be when the group is committed. */
  readonly ledger: AdmissionState.AdmissionState
  readonly admitted: ReadonlyArray<AdmissionState.Admitted>
  /** One for each append, in their order. */
  readonly results: ReadonlyArray<Result.Result<ReadonlyArray<Rune>, RuneRefused>>
}

/** What is written down: in the rune's stream, or in the daemon's where that takes none. */
const violated = (
  ledger: AdmissionState.AdmissionState,
  refused: RuneRefused,
  drafts: ReadonlyArray<ReadyDraft>
): ReadyDraft | undefined => {
  const severity = severityOf(refused.rule)
  const draft = drafts.find(({ kind }) => kind === refused.kind)
  if (severity === undefined || draft === undefined) return undefined
  const stream = [draft.stream, DAEMON_STREAM].find((name) => AdmissionState.open(ledger, name))
  if (stream === undefined) return undefined
  return readyOwn({
    stream,
    kind: "invariant.violated",
    actor: "log/guard",
    cause: draft.cause,
    payload: {
      rule: refused.rule,
      severity,
      kind: draft.kind,
      actor: draft.actor,
      stream: draft.stream,
      message: refused.message
    }
  })
}

export const form = (
  start: AdmissionState.AdmissionState,
  appends: ReadonlyArray<ReadonlyArray<ReadyDraft>>,
  at: number
): Group => {
  const admitted: Array<AdmissionState.Admitted> = []
  let ledger = start
  const admit = (drafts: ReadonlyArray<ReadyDraft>) =>
    Result.map(AdmissionState.admit(ledger, drafts, at), ([next, runes]) => {
      ledger = next
      admitted.push(...runes)
      return runes.map(({ rune }) => rune)
    })
  const results = appends.map((drafts) => {
    const result = admit(drafts)
    if (Result.isFailure(result)) {
      const violation = violated(ledger, result.failure, drafts)
      if (violation !== undefined) admit([violation])
    }
    return result
  })
  return { ledger, admitted, results }
}
