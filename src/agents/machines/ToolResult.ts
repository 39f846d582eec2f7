/**
 * ToolResult: converts a result that a run reports into the events that end the call. Pure.
 *
 * A call that did not ask for approval was allowed by the agent's own rules. A call that these rules refused never ran.
 * A call that still waits for approval is cancelled, whatever its run reports, because it was never approved.
 */
import type * as ToolMachine from "./ToolMachine.ts"
import { excerpt } from "../run/LogExcerpt.ts"

/** Maximum size of the stored output, bytes. */
const MAX_OUTPUT = 128 * 1024

export interface Call {
  readonly callId: string
  /** True if the call has asked for approval, or is known to run. */
  readonly asks: boolean
  /** True if the call has asked for approval and its run has received no answer. */
  readonly waits: boolean
}

/** Recorded as the approver of a call that the agent allowed without asking the user. */
export const OWN = "the agent's own rules"

const CALLED_OFF: ReadonlySet<ToolMachine.Status> = new Set(["cancelled", "denied", "unknown"])
const wentOn = (status: ToolMachine.Status): string => `its agent continued without an answer: ${status}`

export const toResult = (
  { asks, callId, waits }: Call,
  status: ToolMachine.Status,
  output: unknown
): ReadonlyArray<ToolMachine.Event> => {
  const kept = excerpt(output, MAX_OUTPUT)
  const text = typeof kept === "string" ? kept : (JSON.stringify(kept) ?? "")
  if (waits) return [{ _tag: "cancelled", callId, reason: CALLED_OFF.has(status) ? text || status : wentOn(status) }]
  const runs: ReadonlyArray<ToolMachine.Event> = asks ? [] : [{ _tag: "no_approval_needed", callId }]
  switch (status) {
    case "success":
      return [...runs, { _tag: "success", callId, output: kept }]
    case "cancelled":
      return [{ _tag: "cancelled", callId, reason: text || "cancelled" }]
    case "denied":
      return asks
        ? [{ _tag: "cancelled", callId, reason: text || "denied" }]
        : [
            { _tag: "requires_approval", callId, policyReason: OWN },
            { _tag: "denied", callId, approver: OWN, reason: text }
          ]
    case "timeout":
      return [...runs, { _tag: "execution_timeout", callId }]
    default:
      return [...runs, { _tag: "execution_error", callId, status, error: text }]
  }
}
