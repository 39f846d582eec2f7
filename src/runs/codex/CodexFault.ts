/**
 * CodexFault: determines how a turn of Codex ended, and classifies failures of a turn or of the program. Pure.
 *
 * Guarantees: every fault has a class, by which the worker decides whether to continue. Codex's own error class and the
 * HTTP status take precedence over the message.
 */
import * as Fault from "../Fault.ts"
import type { Outcome } from "../Outcome.ts"
import type { ExitStatus } from "../process/ChildProcess.ts"
import * as RunEnd from "../RunEnd.ts"
import type { Refusal, TurnError } from "./CodexMessages.ts"

/** How long to wait for a usage limit whose end is unknown, in ms. */
const LIMIT_UNKNOWN = 60_000

const REMEDIES: Fault.Remedies = {
  billing: "pay for the account that Codex uses, then start the agent",
  auth: "log in with `codex login` as the daemon's user, after which its agents continue by themselves. Or set a new key in your environment, then: agentd restart",
  model: "correct model in the agent's backend, then start the agent"
}

/** Fault of a failed turn. `resetsAt`: when the usage limit resets, ms since the epoch. */
export const ofTurn = (
  error: TurnError | null | undefined,
  { now, resetsAt }: { readonly now: number; readonly resetsAt: number | undefined }
): Fault.Fault => {
  if (error === null || error === undefined) return Fault.error("codex", "the turn failed; codex gave no reason", true)
  const { additionalDetails, codexErrorInfo, message } = error
  const said = Fault.saidIn({ codexErrorInfo, message, additionalDetails })
  const until = resetsAt !== undefined && resetsAt > now ? resetsAt : now + LIMIT_UNKNOWN
  const fault = Fault.faultOf(Fault.kindOf(said), message, REMEDIES, until)
  return fault.errorType === "connection" ? { ...fault, errorType: "stream" } : fault
}

/** Fault of a rejected request. `doing` names the request. */
export const ofRefusal = ({ data, message }: Refusal, doing: string): Fault.Fault => {
  const words = `codex refused ${doing}: ${message}`
  const kind = Fault.kindOf(Fault.saidIn({ data, message }))
  return Fault.isOutside(kind) ? Fault.faultOf(kind, words, REMEDIES) : Fault.error("codex", words, true)
}

/** True if the thread to resume no longer exists. */
export const isGone = ({ message }: Refusal): boolean =>
  /no rollout found|thread not found|no such thread|invalid (session|thread) id/i.test(message)

/** Messages about the command line. */
const ARGUMENTS = /^error: (unexpected|unrecognized|invalid|the following|a value)/im

export const birthOf = (status: ExitStatus, said: string): Outcome => {
  const last = said.trim().split("\n").at(-1) ?? ""
  const detail = Fault.oneLine(RunEnd.wordsOf("codex", status, last))
  const kind = Fault.kindOf(Fault.saidIn(last))
  if (Fault.isOutside(kind)) return Fault.faultOf(kind, detail, REMEDIES).outcome
  return ARGUMENTS.test(said)
    ? { _tag: "Fatal", detail, remedy: "correct argv or config of the agent's backend, or install a newer Codex" }
    : { _tag: "Error", detail }
}
