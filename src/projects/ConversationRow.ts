/**
 * ConversationRow: the row of a conversation in a list for the user, and the errors of its commands. Pure.
 *
 * Guarantees: Each error says what prevents the command, and names the command that helps.
 */
import { Duration } from "effect"
import { CommandRefused, type ConversationInfo, refuse, type Spending } from "../domain/Messages.ts"
import * as StatusWords from "../domain/StatusWords.ts"
import * as Budget from "../agents/machines/Budget.ts"
import type { ConversationSnapshot } from "./ConversationRecovery.ts"

export interface Row {
  readonly conversation: string
  readonly project: string
  readonly config: string
  readonly snapshot: ConversationSnapshot
  /** Why the conversation's state could not be rebuilt from its runes; undefined if it could. */
  readonly broken?: string | undefined
  readonly agents: ReadonlyArray<string>
  /** Names of sub-agents that wait for a free slot. */
  readonly queued: ReadonlyArray<string>
  readonly spent: Budget.Spent
  readonly limits: Spending
}

/**
 * The names of a conversation: its id, and the name of its project. The project's name means the newest conversation of
 * the project.
 */
export interface Called {
  readonly conversation: string
  readonly project: string
}

const counted = (count: number, what: string): string => `${count} ${what}${count === 1 ? "" : "s"}`

const because = ({ data }: ConversationSnapshot): string => {
  if (data.because === null) return ""
  const { by, reason } = data.because
  return reason === "" ? ` by ${by}` : ` by ${by}: ${reason}`
}

/** The state of a conversation in words, for example `is paused by ada: lunch`. */
export const standing = (snapshot: ConversationSnapshot): string => {
  switch (snapshot.state) {
    case "[*]":
    case "created":
      return "has not started"
    case "active":
      return "is active"
    case "paused":
      return `is paused${because(snapshot)}`
    case "suspended":
      return `is suspended: ${snapshot.data.suspension?.reason ?? "a limit is reached"}`
    case "closing":
      return `is being closed${because(snapshot)}`
    case "closed":
      return "is closed"
    case "archived":
      return "is closed and archived"
  }
}

const detail = ({ broken, queued, snapshot }: Row): string => {
  if (broken !== undefined) return `its log is inconsistent: ${broken}`
  const { data, state } = snapshot
  const turns = data.turnIds.length === 0 ? [] : [`${counted(data.turnIds.length, "turn")} in progress`]
  const waiting = queued.length === 0 ? [] : [`${counted(queued.length, "sub-agent")} waiting for a free slot`]
  switch (state) {
    case "[*]":
    case "created":
      return ["waits for its first agent", ...waiting].join("; ")
    case "active":
      return [...(turns.length === 0 ? ["no turn in progress"] : turns), ...waiting].join("; ")
    case "archived":
      return "archived"
    default:
      return [standing(snapshot).replace(/^is /, ""), ...turns, ...waiting].join("; ")
  }
}

export const row = (of: Row): ConversationInfo => {
  const { conversation, project, config, agents, limits, snapshot, spent } = of
  const { data } = snapshot
  const state = snapshot.state === "[*]" ? "created" : snapshot.state
  return {
    conversation,
    project,
    config,
    word:
      of.broken === undefined
        ? StatusWords.wordOf(StatusWords.conversation, state, { turns: data.turnIds.length })
        : "failed",
    state,
    since: snapshot.at,
    restsOn: snapshot.entered,
    detail: detail(of),
    agents,
    turns: data.turns,
    turnsActive: data.turnIds.length,
    turnErrors: data.turnErrors,
    fatalStops: data.fatalStops,
    spent: Budget.shown(spent),
    limits,
    archive: null
  }
}

/** Usage in words, for example `12,000 tokens, 3 tool calls, 5m 2s, $0.42`. */
export const spentInWords = ({ tokens, toolCalls, usd, wallTime }: Budget.Spent): string =>
  [
    `${tokens.toLocaleString("en-US")} tokens`,
    counted(toolCalls, "tool call"),
    Duration.format(Duration.millis(Math.round(wallTime / 1000) * 1000)),
    ...(usd > 0 ? [`$${usd.toFixed(2)}`] : [])
  ].join(", ")

export const over = ({ conversation, project }: Called): CommandRefused =>
  new CommandRefused({
    code: "closed",
    message: `The conversation ${conversation} of ${project} is closed.`,
    remedy: "Start a new one in the project's folder: agentd project new"
  })

export const damaged = (conversation: string, message: string): CommandRefused =>
  new CommandRefused({
    code: "unavailable",
    message: `The conversation ${conversation} is set apart, because its log is damaged: ${message}`,
    remedy: `Stop the daemon, then repair it: agentd repair ${conversation}; or give it up, and start a new one: agentd project close ${conversation}`
  })

/** Why the conversation accepts no input now; undefined if it accepts input. */
export const closedToInput = (
  { conversation, project }: Called,
  snapshot: ConversationSnapshot
): CommandRefused | undefined => {
  const is = `The conversation ${conversation} ${standing(snapshot)}.`
  switch (snapshot.state) {
    case "[*]":
    case "created":
    case "active":
      return undefined
    case "paused":
    case "suspended":
      return refuse("paused", `${is} It accepts no new input.`, `Let it go on: agentd project resume ${project}`)
    case "closing":
      return refuse("closed", is, "When it is closed, start a new one: agentd project new")
    case "closed":
    case "archived":
      return over({ conversation, project })
  }
}
