/**
 * WhyTurn: explains how an agent's last turn, its budget and its open questions led to its current state, in plain
 * sentences. Pure. A part of Why.
 *
 * Guarantees: Each sentence names the rune on which it is based. Texts of turns and calls are limited in length.
 */
import type { AgentInfo, CallInfo, ConversationInfo, WhyLine } from "../../domain/Messages.ts"
import { named, telling } from "../../domain/CallSummary.ts"
import * as Schedule from "../../domain/ScheduleKey.ts"
import type { Rune } from "../../core/event-log/Rune.ts"
import { checkedReader, type RuneOf } from "../../core/event-log/EventKinds.ts"
import { forgottenKinds, lifeKinds, memoryKinds, noticeKinds } from "../../agents/machines/AgentKinds.ts"
import { turnKinds } from "../../agents/machines/TurnKinds.ts"
import { cut, LONG } from "./WhyLimits.ts"

export const kinds = [
  "run.memory_lost",
  "turn.started",
  "turn.completed",
  "turn.interrupted",
  "turn.error",
  "agent.compacted",
  "agent.budget_exhausted",
  "agent.terminated"
] as const

/** Skips runes that only a newer version of agentd can read. */
const readTurn = checkedReader(turnKinds)
const readLife = checkedReader(lifeKinds)
const readNotice = checkedReader(noticeKinds)
const readMemory = checkedReader(memoryKinds)
const readForgotten = checkedReader(forgottenKinds)

const counted = (count: number, what: string): string => `${count} ${what}${count === 1 ? "" : "s"}`

const isWordless = (event: object = {}): boolean => "finalOutput" in event && event.finalOutput === ""

const ofTurn = (rune: Rune): string | undefined => {
  const event = readTurn(rune)?.payload.event
  switch (event?._tag) {
    case "start_turn":
    case "steer":
      if (rune.kind === "turn.interrupted") return "the turn was steered: another turn replaces it"
      if (event._tag === "start_turn" && event.source === "own")
        return `the agent started a turn by itself: ${cut(event.input)}`
      return event.messageIds.length === 0
        ? "a turn began"
        : `a turn began with ${counted(event.messageIds.length, "message")}`
    case "interrupt":
      return `the turn was interrupted: ${cut(event.reason)}; its work is ${event.keep === true ? "queued again" : "dropped"}`
    case "stream_error":
    case "tool_crash": {
      const type = event._tag === "tool_crash" ? "a tool" : event.errorType
      const half = event._tag === "stream_error" && event.partialOutput !== undefined
      const then =
        event.retry === true
          ? "its work is queued again"
          : half
            ? "the incomplete answer is stored"
            : "it gave no answer"
      return `the turn failed (${type}): ${cut(event.message)}; ${then}`
    }
    case undefined:
      return undefined
    default:
      return isWordless(event) ? "the turn ended well, without a word of an answer" : "the turn ended well"
  }
}

const ofMemory = ({ cut_results: cut, from, summarised, to }: RuneOf<typeof memoryKinds>["payload"]): string => {
  const how =
    summarised > 0 ? "its older part was replaced by a summary" : `${counted(cut, "older tool result")} were cut`
  return `its conversation was compacted from about ${from} tokens to ${to}: ${how}`
}

const ofLife = (rune: Rune): string | undefined => {
  const memory = readMemory(rune)
  if (memory !== undefined) return ofMemory(memory.payload)
  const forgotten = readForgotten(rune)
  if (forgotten !== undefined) return cut(forgotten.payload.text)
  const event = readLife(rune)?.payload.event
  if (rune.from === "spawning" && event?._tag === "kill_forced") return `ended before it started: ${event.reason}`
  return event?._tag === "budget_exhausted"
    ? `its budget of ${event.resource} is spent: ${event.spent} of ${event.limit}`
    : undefined
}

/** Lines that name the schedules that sent the turn's messages. */
const ofSchedules = (rune: Rune): ReadonlyArray<WhyLine> => {
  const event = readTurn(rune)?.payload.event
  if (event?._tag !== "start_turn" && event?._tag !== "steer") return []
  return event.messageIds.flatMap((id) => {
    const schedule = Schedule.keyIn(id)
    if (schedule === undefined) return []
    return [{ eventId: rune.eventId, at: rune.at, text: `its work was sent by ${Schedule.said(schedule)}` }]
  })
}

const isEnd = ({ kind }: Rune): boolean => kind.startsWith("turn.") && kind !== "turn.started"

/**
 * Lines since the event id `from` about the last turn and the budget. `expired`: calls that were not answered in time;
 * the line about the turn's end mentions them. For a backend `command`, the run is the turn, so the turn is not
 * mentioned.
 */
export const past = (
  runes: ReadonlyArray<Rune>,
  agent: AgentInfo,
  from: number,
  expired: ReadonlyArray<Rune> = []
): ReadonlyArray<WhyLine> => {
  const recent = runes.filter(({ eventId }) => eventId >= from)
  const last = recent.findLast(({ kind }) => kind === "turn.started")
  const end = last === undefined ? undefined : recent.find((rune) => isEnd(rune) && rune.eventId > last.eventId)
  const turn = agent.backend === "command" ? [] : [last, end]
  const without = expired.filter(({ eventId }) => last !== undefined && eventId > last.eventId).length
  const schedules = last === undefined ? [] : ofSchedules(last)
  const lines = [
    ...turn,
    ...recent.filter(({ kind }) => kind.startsWith("agent.") || kind === "run.memory_lost")
  ].flatMap((rune) => {
    const text =
      rune === undefined
        ? undefined
        : rune.kind === "turn.completed" && without > 0
          ? `the turn ended, and nobody had answered ${counted(without, "call")}`
          : rune.kind.startsWith("turn.")
            ? ofTurn(rune)
            : ofLife(rune)
    return rune === undefined || text === undefined ? [] : [{ eventId: rune.eventId, at: rune.at, text }]
  })
  return [...schedules, ...lines]
}

/**
 * Lines for the newest notices of a live run, and for later notices of ended runs. `ends`: event id of the last rune of
 * each ended run.
 */
export const said = (
  runes: ReadonlyArray<Rune>,
  agent: AgentInfo,
  from: number,
  ends: ReadonlyMap<string, number>
): ReadonlyArray<WhyLine> =>
  runes.flatMap((rune) => {
    const notice = readNotice(rune)?.payload
    if (notice === undefined || rune.eventId < from) return []
    const isAfter = rune.eventId > (ends.get(notice.runId) ?? Number.POSITIVE_INFINITY)
    if (!isAfter && notice.runId !== (agent.runId ?? "")) return []
    const text = `${isAfter ? "after its run" : "its run reported"}: ${cut(notice.text)}`
    return [{ eventId: rune.eventId, at: rune.at, text }]
  })

/** Current facts about an agent that are not in its own row. */
export interface Now {
  readonly calls?: ReadonlyArray<CallInfo>
  readonly conversation?: ConversationInfo
}

const asking = ({ calls = [] }: Now) => calls.filter(({ state }) => state === "awaiting_approval")

const isHeld = ({ state }: ConversationInfo): boolean => state === "paused" || state === "suspended"

export const present = (now: Now): ReadonlyArray<WhyLine> => {
  const { conversation } = now
  const held =
    conversation !== undefined && isHeld(conversation)
      ? [{ eventId: conversation.restsOn, at: conversation.since, text: `its conversation is ${conversation.detail}` }]
      : []
  const waits = asking(now).map(({ arguments: input, callId, questions, reason, restsOn, since, tool }) => ({
    eventId: restsOn,
    at: since,
    text:
      questions === undefined
        ? `waits for you: ${named(tool, input, LONG)}${reason === null || reason === telling(input, LONG) ? "" : ` (${cut(reason)})`}: approve ${callId}`
        : `waits for you to choose: ${questions.map(({ question }) => cut(question)).join(" ")}: answer ${callId}`
  }))
  return [...held, ...waits]
}

export const advice = (now: Now): string | undefined => {
  const [call] = asking(now)
  if (call?.questions !== undefined) return `Choose: agentd answer ${call.callId}`
  if (call !== undefined) {
    return `Answer it: agentd approve ${call.callId}, or agentd deny ${call.callId} --reason "why"`
  }
  const { conversation } = now
  return conversation !== undefined && isHeld(conversation)
    ? `Let it go on: agentd project resume ${conversation.project}`
    : undefined
}
