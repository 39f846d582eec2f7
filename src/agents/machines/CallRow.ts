/** CallRow: a tool call as users see it, from the stored state of its machine. Pure. */
import type { AnswerScope } from "../../approvals/AnswerScope.ts"
import type { Decision } from "../../approvals/Decision.ts"
import { type RuleSubject, ruleWords, subjectWords } from "../../approvals/Rule.ts"
import * as CallHash from "../../domain/CallHash.ts"
import { type AskedCall, type CallInfo, CommandRefused } from "../../domain/Messages.ts"
import type { Snapshot } from "../../core/event-actor/StateMachine.ts"
import type * as ToolMachine from "./ToolMachine.ts"
import { chosen, type Question } from "../../runs/Question.ts"
import { text } from "../run/LogExcerpt.ts"
import type { Call } from "./ToolsState.ts"
import type { WaitingInput } from "../run/WaitingInputs.ts"

const MAX_SHOWN = 2_000

export interface Answer {
  readonly behavior: "allow" | "deny"
  readonly reason: string
  /** Answers to the call's questions, as the user typed them. */
  readonly answers?: ReadonlyArray<string> | undefined
  /** Hash of the call as it was shown to the user; required for an approval. */
  readonly hash?: string | undefined
  /** How far the approval reaches, with the rules that are added for it; undefined: for this call alone. */
  readonly lasting?: { readonly scope: AnswerScope; readonly rules: ReadonlyArray<RuleSubject> } | undefined
}

/** Properties of a call that the call's machine does not store. */
export interface Shown {
  readonly callId: string
  readonly turnId: string
  readonly tool: string
  /** The arguments of the call, as JSON text. */
  readonly arguments: string
  readonly reason: string | null
  readonly questions: ReadonlyArray<Question>
  readonly hash?: string | undefined
}

export type Of = Pick<CallInfo, "conversation" | "project" | "agent">

/** Sort order: calls that wait for the user first, then the oldest first. */
export const asksFirst = (a: CallInfo, b: CallInfo): number =>
  Number(b.state === "awaiting_approval") - Number(a.state === "awaiting_approval") || a.since - b.since

/** The row of a call; undefined if the call already has its result. */
export const callRow = (
  of: Of,
  { arguments: input, callId, questions, reason, tool, turnId }: Shown,
  { at, data, entered, state }: Snapshot<ToolMachine.State, ToolMachine.Data>
): CallInfo | undefined => {
  if (state !== "pending_call" && state !== "awaiting_approval" && state !== "executing") return undefined
  const asks = state === "awaiting_approval"
  const limit = asks ? data.limits.approvalTimeout : state === "executing" ? data.timeout : null
  return {
    ...of,
    callId,
    turnId,
    tool,
    // the input is shortened: it is shown in full when the user decides
    arguments: text(input, MAX_SHOWN),
    state,
    since: at,
    reason: asks ? reason : null,
    ...(asks && questions.length > 0 ? { questions } : {}),
    until: limit === null ? null : at + limit,
    restsOn: entered
  }
}

/**
 * A call that waits for the user. `whole`: the complete input. `input`: the same input as text, with registered secrets
 * masked. Refused if `hash` is not the hash of the complete input.
 */
export const askedCall = (
  { project, agent }: Of,
  { hash, questions, reason }: Pick<Shown, "hash" | "questions" | "reason">,
  { at, data }: Snapshot<ToolMachine.State, ToolMachine.Data>,
  whole: WaitingInput,
  input: string,
  decided: Pick<AskedCall, "parts" | "offers" | "scopes">
): AskedCall | CommandRefused => {
  const { callId, folder, run, tool } = whole
  if (hash !== whole.hash)
    return new CommandRefused({ code: "conflict", ...CallHash.refusalOf(callId, whole.hash, hash)! })
  return {
    id: callId,
    agent: `${project}/${agent}`,
    run,
    tool,
    folder,
    input,
    hash,
    reason,
    ...(questions.length > 0 ? { questions } : {}),
    since: at,
    until: data.limits.approvalTimeout === null ? null : at + data.limits.approvalTimeout,
    ...decided
  }
}

/**
 * The parts of a waiting call and the rules that could be kept, as users see them. `mask` masks registered secrets. A
 * call that contains one can only be approved once: no rule may contain a secret, or match the masked text.
 */
export const shownDecision = (
  decision: Decision | undefined,
  mask: (text: string) => string
): Pick<AskedCall, "parts" | "offers" | "scopes"> => {
  const { offers = [], parts = [] } = decision ?? {}
  const shown = offers.map(({ rules, words }) => ({ words, rules: rules.map(({ subject }) => subjectWords(subject)) }))
  const isSecret = shown.some(({ rules }) => rules.some((rule) => mask(rule) !== rule))
  return {
    ...(parts.length === 0
      ? {}
      : {
          parts: parts.map(({ reason, rule, text, verdict }) => ({
            text: mask(text),
            verdict,
            reason: mask(reason),
            ...(rule === undefined ? {} : { rule: ruleWords(rule) })
          }))
        }),
    ...(shown.length === 0 || isSecret ? {} : { offers: shown, scopes: ["run"] as const })
  }
}

/** `ended`: the outcome of the call; undefined if it is no longer stored. */
export const tooLate = (
  callId: string,
  ended: string | undefined,
  call: Pick<Call, "asked" | "reason" | "snapshot"> | undefined
): CommandRefused =>
  new CommandRefused({
    code: "conflict",
    message:
      ended !== undefined
        ? `Call ${callId} no longer waits for an answer: ${ended}.`
        : call?.asked === false && call.reason !== null
          ? `Call ${callId} no longer waits for an answer: its agent has withdrawn the question.`
          : call?.snapshot.state === "executing"
            ? `Call ${callId} is already running.`
            : `Call ${callId} does not wait for an answer.`,
    remedy: "See what waits for an answer: agentd approve"
  })

/** The answers to a call's questions; undefined if it has none. Fails if the answers do not match the questions. */
export const answersOf = (
  { callId, questions, tool }: Shown,
  { answers, behavior }: Answer
): ReadonlyArray<string> | undefined | CommandRefused => {
  if (behavior === "deny") return undefined
  const found = chosen({ id: callId, questions, tool }, answers)
  return found !== undefined && "message" in found ? new CommandRefused({ code: "invalid", ...found }) : found
}

/** An approval for a run that has ended. */
export const runOver = (callId: string): CommandRefused =>
  new CommandRefused({
    code: "conflict",
    message: `The run that made call ${callId} has ended: there is nothing for which a rule "for this run" could hold.`,
    remedy: `Approve only this call, or for longer: agentd approve ${callId}`
  })
