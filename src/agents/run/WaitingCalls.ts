/** WaitingCalls: a call that waits for the user: its complete input, and the decision with the rules that are in force. */
import type { Decision } from "../../approvals/Decision.ts"
import type { RuleSubject } from "../../approvals/Rule.ts"
import * as CallHash from "../../domain/CallHash.ts"
import { type AskedCall, CommandRefused } from "../../domain/Messages.ts"
import type { AgentEnvironment } from "../actors/AgentEnvironment.ts"
import { askedCall, shownDecision, tooLate } from "../machines/CallRow.ts"
import { type Call, get, rulesOf, type ToolsState, waits } from "../machines/ToolsState.ts"
import type { LiveRun } from "./LiveRun.ts"
import { inputOf, verdictOf } from "./RunEvents.ts"
import { hashOfInput } from "./WaitingInputs.ts"

type Setting = AgentEnvironment["Service"]

/** Undefined if the call's run has ended: then a person can approve only this call. */
export const decisionOf = (
  setting: Pick<Setting, "config" | "rules">,
  live: LiveRun,
  state: ToolsState,
  { callId, snapshot }: Pick<Call, "callId" | "snapshot">
): Decision | undefined => {
  const { asked, run } = live.origin(callId) ?? {}
  if (asked === undefined) return undefined
  const call = { callId, tool: snapshot.data.toolName ?? "", asked }
  return verdictOf(setting, live, call, rulesOf(state, run?.runId))
}

/** The call with its complete input. If it no longer waits, the error contains its outcome. */
export const asked = (
  setting: Setting,
  live: LiveRun,
  state: ToolsState,
  callId: string
): AskedCall | CommandRefused => {
  const { agent, conversation, project, waiting } = setting
  const call = get(state.open, callId)
  if (call === undefined || !waits(call)) return tooLate(callId, state.ended.find(([id]) => id === callId)?.[1], call)
  // for a live run: a call can ask for approval before its input is stored
  const told = inputOf(setting, live, callId)
  const hash = told === undefined ? undefined : hashOfInput(told)
  const whole = waiting.get(callId) ?? (told === undefined || hash === undefined ? undefined : { ...told, hash })
  if (whole === undefined)
    return new CommandRefused({ code: "conflict", ...CallHash.refusalOf(callId, undefined, undefined)! })
  const of = { agent, conversation, project: project() }
  const decided = shownDecision(decisionOf(setting, live, state, call), waiting.mask)
  return askedCall(of, call, call.snapshot, whole, waiting.shown(whole), decided)
}

/** The rules of each offer for a waiting call, in the order of `asked`. */
export const offered = (
  setting: Setting,
  live: LiveRun,
  state: ToolsState,
  callId: string
): ReadonlyArray<ReadonlyArray<RuleSubject>> => {
  const call = get(state.open, callId)
  const decision = call === undefined ? undefined : decisionOf(setting, live, state, call)
  return (decision?.offers ?? []).map(({ rules }) => rules.map(({ subject }) => subject))
}
