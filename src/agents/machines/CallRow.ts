/**
 * CallRow: a tool call as a person sees it, from the committed state of its machine. Pure.
 */
import * as CallHash from "../../domain/CallHash.ts"
import { type AskedCall, type CallInfo, CommandRefused } from "../../domain/Messages.ts"
import type { Snapshot } from "../../core/event-actor/StateMachine.ts"
import type * as ToolMachine from "./ToolMachine.ts"
import { chosen, type Question } from "../../runs/Question.ts"
import { text } from "../run/Excerpt.ts"
import type { Call } from "./ToolsState.ts"
import type { WaitingInput } from "../run/WaitingInputs.ts"

const MAX_SHOWN = 2_000

/** A person's answer to a call. */
export interface Answer {
  readonly behavior: "allow" | "deny"
  readonly reason: string
  /** Answers to the call's questions, as they were typed. */
  readonly answers?: ReadonlyArray<string> | undefined
  /** The hash of what the person was shown; required for an approval. */
  readonly hash?: string | undefined
}

/** The facts of a call that the machine does not store. */
export interface Shown {
  readonly callId: string
  readonly turnId: string
  readonly tool: string
  /** JSON. */
  readonly arguments: string
  readonly reason: string | null
  readonly questions: ReadonlyArray<Question>
  readonly hash?: string | undefined
}

export type Of = Pick<CallInfo, "conversation" | "project" | "agent">

/** Sorts calls for a list: calls that wait for a person first, then by age, oldest first. */
export const asksFirst = (a: CallInfo, b: CallInfo): number =>
  Number(b.state === "awaiting_approval") - Number(a.state === "awaiting_approval") || a.since - b.since

/** Undefined if the call has its result. */
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
    // the whole input is shown where the call is decided
    arguments: text(input, MAX_SHOWN),
    state,
    since: at,
    reason: asks ? reason : null,
    ...(asks && questions.length > 0 ? { questions } : {}),
    until: limit === null ? null : at + limit,
    restsOn: entered
  }
}

/** A call that waits for a person, with its whole input. `input`: the redacted text. */
export const askedCall = (
  { project, agent }: Of,
  { hash, questions, reason }: Pick<Shown, "hash" | "questions" | "reason">,
  { at, data }: Snapshot<ToolMachine.State, ToolMachine.Data>,
  whole: WaitingInput,
  input: string
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
    until: data.limits.approvalTimeout === null ? null : at + data.limits.approvalTimeout
  }
}

/** Why a call takes no answer. `ended`: the outcome of the call, if it is still known. */
export const tooLate = (
  callId: string,
  ended: string | undefined,
  call: Pick<Call, "asked" | "reason" | "snapshot"> | undefined
): CommandRefused =>
  new CommandRefused({
    code: "conflict",
    message:
      ended !== undefined
        ? `Call ${callId} asks no more: ${ended}.`
        : call?.asked === false && call.reason !== null
          ? `Call ${callId} asks no more: its agent has taken the question back.`
          : call?.snapshot.state === "executing"
            ? `Call ${callId} runs already.`
            : `Call ${callId} asks nothing.`,
    remedy: "See what waits for an answer: agentd approve"
  })

/** The chosen answers if the call asks a choice; a refusal if they do not fit the questions. */
export const answersOf = (
  { callId, questions, tool }: Shown,
  { answers, behavior }: Answer
): ReadonlyArray<string> | undefined | CommandRefused => {
  if (behavior === "deny") return undefined
  const found = chosen({ id: callId, questions, tool }, answers)
  return found !== undefined && "message" in found ? new CommandRefused({ code: "invalid", ...found }) : found
}
