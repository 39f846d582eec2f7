/**
 * WhyCalls: explains how an agent's newest calls were decided: by whom, how far the approval reaches, or by which rule.
 * Pure. A part of Why.
 *
 * Guarantees: the reason is the one in the rune of the decision. It is never computed again from the rules of today.
 */
import { givenWords } from "../../approvals/AnswerScope.ts"
import type { WhyLine } from "../../domain/Messages.ts"
import { named } from "../../domain/CallSummary.ts"
import { checkedReader } from "../../core/event-log/EventKinds.ts"
import type { Rune } from "../../core/event-log/Rune.ts"
import { toolKinds } from "../../agents/machines/AgentKinds.ts"
import type * as ToolMachine from "../../agents/machines/ToolMachine.ts"
import { cut, LONG } from "./WhyLimits.ts"

export const kinds = ["tool.call", "tool.started", "tool.approved", "tool.denied"] as const

/** Maximum number of decisions in an explanation. */
const MOST = 5

const readTool = checkedReader(toolKinds)

/** Reasons that name a rule, in the words of `ruleWords`. */
const RULE = /(^|[:;] )(allow|ask|deny) "/

const decided = (event: ToolMachine.Event): string | undefined => {
  switch (event._tag) {
    case "approved":
      if (event.policyReason !== undefined) return `allowed by a rule that was added: ${event.policyReason}`
      return `approved by ${event.approver}${event.scope === undefined ? "" : `, ${givenWords(event.scope, event.rules ?? [])}`}`
    case "auto_approved":
      return RULE.test(event.policyReason) ? `ran unasked: ${event.policyReason}` : undefined
    case "denied":
      return `denied by ${event.approver}: ${event.reason}`
    default:
      return undefined
  }
}

/** `runes`: the agent's runes of these kinds, oldest first. `from`: event id of the oldest decision to explain. */
export const past = (runes: ReadonlyArray<Rune>, from: number): ReadonlyArray<WhyLine> => {
  const calls = new Map<string, string>()
  const lines: Array<WhyLine> = []
  for (const rune of runes) {
    const payload = readTool(rune)?.payload
    if (payload === undefined) continue
    const { call_id: callId, event } = payload
    if (event._tag === "call_requested")
      calls.set(callId, named(event.toolName, JSON.stringify(event.arguments) ?? "", LONG))
    const text = rune.eventId < from ? undefined : decided(event)
    if (text !== undefined)
      lines.push({ eventId: rune.eventId, at: rune.at, text: `${calls.get(callId) ?? callId}: ${cut(text)}` })
  }
  return lines.slice(-MOST)
}
