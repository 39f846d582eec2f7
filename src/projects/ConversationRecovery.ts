/**
 * ConversationRecovery: rebuilds one conversation from the log: the state of its machine, its usage, its failed agents
 * and its sub-agents. Pure: applies one rune at a time. The conversation's agents are rebuilt in the same pass.
 *
 * Guarantees: An archived conversation is rebuilt from a single rune in the daemon's stream. If a rune does not fit the
 * machine's state, the conversation is set apart with the reason.
 */
import { reader, type RuneOf } from "../core/event-log/EventKinds.ts"
import { DAEMON_STREAM, type Rune } from "../core/event-log/Rune.ts"
import * as Calendar from "../domain/Calendar.ts"
import * as Inbox from "../agents/machines/Inbox.ts"
import type { TurnOutcome } from "../domain/AgentPort.ts"
import type { Spending } from "../domain/Messages.ts"
import { conversationKinds, readAgent, type Summary } from "../agents/machines/AgentKinds.ts"
import type { turnKinds } from "../agents/machines/TurnKinds.ts"
import { countedAs } from "../agents/machines/TurnFault.ts"
import * as ConversationMachine from "../agents/machines/ConversationMachine.ts"
import { evolve, type Snapshot } from "../core/event-actor/StateMachine.ts"
import * as Budget from "../agents/machines/Budget.ts"
import * as SubAgentReports from "./SubAgentReports.ts"

const readMove = reader(conversationKinds)

export type ConversationSnapshot = Snapshot<ConversationMachine.State, ConversationMachine.Data>

/** A turn whose start the conversation has recorded, but not its end. */
export interface OpenTurn {
  readonly agent: string
  /** True if the agent itself has also started the turn. */
  begun: boolean
  /** Outcome of the turn according to its own runes; undefined if the turn has not ended. */
  outcome: TurnOutcome | undefined
}

/** The newest turn of an agent, according to the runes of that turn. */
export interface NewestTurn {
  readonly turnId: string
  readonly began: { readonly seq: number; readonly eventId: number }
  outcome: TurnOutcome | undefined
}

export interface Spawned {
  readonly parent: string
  /** The agent's config, encoded. */
  readonly config: unknown
  /** Id of the message that contains the task; null in logs of older versions of agentd. */
  readonly task: string | null
  readonly eventId: number
}

/** How many sub-agents were started on one day. `day`: for example "2026-11-24"; empty before the first start. */
export interface Begun {
  readonly day: string
  readonly count: number
}

export interface Life {
  snapshot: ConversationSnapshot
  /** Why the conversation's state could not be rebuilt from its runes; undefined if it could. */
  broken: string | undefined
  /** Usage since the conversation was created, or since it was last resumed after a suspension. */
  spent: Budget.Spent
  /** Limits that the runes contain, for a conversation without a config. */
  limits: Spending
  readonly turns: Map<string, OpenTurn>
  /** The newest turn of each agent that has not ended. */
  readonly newest: Map<string, NewestTurn>
  /** True if turns must be interrupted because of the current state. */
  interrupts: boolean
  /** Sequence number of the rune that caused each agent's newest failure, so that no failure is counted twice. */
  readonly failures: Map<string, number>
  readonly spawned: Map<string, Spawned>
  /** How many sub-agents agents have started on the newest day. */
  begun: Begun
  /** Event id of the rune that ended each agent. */
  readonly ended: Map<string, number>
  /** Messages about sub-agents that their parents have not received yet. */
  readonly news: SubAgentReports.News
}

/** Maximum number of ended sub-agents that are kept. */
const MAX_ENDED = 20

const turnEnds: { readonly [kind: string]: TurnOutcome } = {
  "turn.completed": "completed",
  "turn.interrupted": "interrupted",
  "turn.error": "error"
}

export const kinds = [
  ...ConversationMachine.kinds,
  "agent.spawned",
  "agent.usage",
  "agent.terminated",
  "agent.failed",
  "turn.started",
  ...Object.keys(turnEnds)
] as const

export const conversationAddress = (conversation: string): string => `conversation/${conversation}`

const unlimited: Spending = { tokens: null, toolCalls: null, wallTime: null, usd: null }

export const fresh = (): Life => ({
  snapshot: { state: "[*]", data: ConversationMachine.initial(), entered: 0, seq: 0, at: 0 },
  broken: undefined,
  spent: Budget.nothing,
  limits: unlimited,
  turns: new Map(),
  newest: new Map(),
  interrupts: false,
  failures: new Map(),
  spawned: new Map(),
  begun: { day: "", count: 0 },
  ended: new Map(),
  news: SubAgentReports.none()
})

const nameOf = (actor: string): string => actor.slice(actor.indexOf("/") + 1)

const limitsIn = (config: unknown): Spending | undefined =>
  typeof config === "object" && config !== null && "budget" in config
    ? { ...unlimited, ...(config.budget as Partial<Spending>) }
    : undefined

const interrupts = ({ interrupts: before, snapshot }: Life, event: ConversationMachine.Event | undefined): boolean => {
  if (snapshot.state === "active") return false
  if (event?._tag === "budget_exhausted") return true
  return event?._tag === "pause_requested" ? event.inFlight === "interrupt" : before
}

/** Applies a rune that the conversation itself wrote. */
const move = (life: Life, rune: Rune): void => {
  if (life.broken !== undefined) return
  try {
    life.snapshot = evolve(ConversationMachine.Conversation, life.snapshot, rune)
  } catch (cause) {
    life.broken = cause instanceof Error ? cause.message : String(cause)
    return
  }
  const event = readMove(rune)?.payload.event
  if (rune.kind === "session.unsuspended") life.spent = Budget.nothing
  life.interrupts = interrupts(life, event)
  switch (event?._tag) {
    case "create_requested":
    case "budget_replenished":
      life.limits = limitsIn(event.config) ?? life.limits
      break
    case "new_turn": {
      const { agentId: agent, turnId } = event
      const newest = life.newest.get(agent)
      // an agent starts its turn before the conversation records it; in older logs, the conversation recorded it first
      const begun = newest?.turnId === turnId
      life.turns.set(turnId, { agent, begun, outcome: begun ? newest.outcome : undefined })
      break
    }
    case "turn_completed":
      life.turns.delete(event.turnId)
      break
    case "agent_failed":
      if (rune.cause !== null) life.failures.set(event.agentId, rune.cause.seq)
      break
  }
}

/** Counts a start. If the clock was set back, the start counts for the newest day. */
const begunAt = ({ count, day }: Begun, at: number): Begun => {
  const now = Calendar.dayOf(at)
  return Calendar.isOver(day, now) ? { day: now, count: 1 } : { day, count: count + 1 }
}

export const begunOn = ({ begun }: Life, day: string): number => (Calendar.isOver(begun.day, day) ? 0 : begun.count)

/** Keeps only the sub-agents that ended most recently. */
const end = (life: Life, agent: string, eventId: number): void => {
  life.ended.set(agent, eventId)
  life.newest.delete(agent)
  const over = [...life.ended.keys()].filter((name) => life.spawned.has(name))
  for (const name of over.slice(0, -MAX_ENDED)) for (const map of [life.spawned, life.ended]) map.delete(name)
}

const ofTurn = (life: Life, rune: RuneOf<typeof turnKinds>): void => {
  const turnId = rune.payload.turn_id
  const end = turnEnds[rune.kind]
  const outcome = end === undefined ? undefined : countedAs(end, rune)
  const agent = nameOf(rune.actor)
  const newest = life.newest.get(agent)
  if (rune.kind === "turn.started") {
    life.newest.set(agent, { turnId, began: { seq: rune.seq, eventId: rune.eventId }, outcome })
  } else if (newest?.turnId === turnId) newest.outcome = outcome
  const turn = life.turns.get(turnId)
  if (turn === undefined) return
  turn.begun = true
  turn.outcome = outcome
}

/** Applies a rune. Returns true if only the conversation needs the rune, and its agents do not. */
export const apply = (life: Life, any: Rune): boolean => {
  if (any.actor.startsWith("conversation/")) {
    move(life, any)
    return true
  }
  const rune = readAgent(any)
  switch (rune?.kind) {
    case "agent.spawned": {
      const { agent_id: agent, by, config, parent_id: parent = nameOf(rune.actor), task = null } = rune.payload
      if (by !== undefined && !Inbox.isPerson(by)) life.begun = begunAt(life.begun, rune.at)
      life.spawned.set(agent, { parent, config, task, eventId: rune.eventId })
      life.ended.delete(agent)
      return true
    }
    case "agent.usage":
      life.spent = Budget.add(life.spent, Budget.ofUsage(rune.payload))
      break
    case "worker.started":
      life.ended.delete(nameOf(rune.actor))
      break
    case "agent.terminated":
    case "agent.failed":
      end(life, nameOf(rune.actor), rune.eventId)
      break
    case "turn.started":
    case "turn.completed":
    case "turn.interrupted":
    case "turn.error":
      ofTurn(life, rune)
      break
  }
  return false
}

/** The conversation that an archive's rune describes; undefined for any other rune. */
export const archived = (rune: Rune): (Summary & { readonly life: Life }) | undefined => {
  const archive = rune.stream === DAEMON_STREAM ? readMove(rune) : undefined
  if (archive?.kind !== "session.archived") return undefined
  const { summary } = archive.payload
  const closed: ConversationSnapshot = { state: "closed", data: summary.data, entered: 0, seq: 0, at: rune.at }
  const { limits, spent } = summary
  const life: Life = { ...fresh(), spent, limits }
  life.snapshot = evolve(ConversationMachine.Conversation, closed, rune)
  return { ...summary, life }
}
