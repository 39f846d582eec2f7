/**
 * Recovery: rebuilds every project and agent from the log: each conversation from its own stream, and archived
 * conversations from the daemon's stream.
 *
 * Each step is pure. If the state of a machine cannot be rebuilt (the log was written by a newer agentd, or is
 * damaged), that machine is skipped and the reason is kept. Other agents are not affected. An unreadable stream affects
 * no other conversation.
 */
import { Effect } from "effect"
import * as ConversationId from "../domain/ConversationId.ts"
import { DAEMON_STREAM, type Rune } from "../core/event-log/Rune.ts"
import { EventLog } from "../core/event-log/EventLog.ts"
import type { StreamFold } from "../core/event-log/StreamFold.ts"
import { configKinds } from "../domain/ConfigKinds.ts"
import { projectKinds } from "../domain/ProjectKinds.ts"
import { reader } from "../core/event-log/EventKinds.ts"
import * as AgentRecovery from "../agents/actors/AgentRecovery.ts"
import { type AgentRecord, freshAgent } from "../agents/actors/AgentRecovery.ts"
import * as ConfigTrust from "./ConfigTrust.ts"
import * as SubAgentReports from "./SubAgentReports.ts"
import * as ConversationRecovery from "./ConversationRecovery.ts"
import * as ProjectStop from "../agents/machines/ProjectStop.ts"

export interface ProjectRecord {
  readonly conversation: string
  config: string
  name: string
  readonly agents: Map<string, AgentRecord>
  readonly life: ConversationRecovery.Life
  readonly trust: ConfigTrust.Trust
  /** Set if the whole project is stopped; null if it is not. */
  stopped: ProjectStop.Stopped | null
}

export type Records = Map<string, ProjectRecord>

export const kinds = [
  "project.registered",
  "project.config_changed",
  "project.stopped",
  "project.started",
  "config.trusted",
  "config.changed",
  "config.kept",
  "config.waits",
  "agent.reported",
  "agent.answered",
  ...AgentRecovery.kinds,
  ...ConversationRecovery.kinds
] as const

const readProject = reader(projectKinds)

const agentOf = (project: ProjectRecord, name: string): AgentRecord => {
  const known = project.agents.get(name)
  if (known !== undefined) return known
  const fresh = freshAgent(name)
  project.agents.set(name, fresh)
  return fresh
}

export const freshProject = (conversation: string, config: string, name: string): ProjectRecord => ({
  conversation,
  config,
  name,
  agents: new Map(),
  life: ConversationRecovery.fresh(),
  trust: ConfigTrust.fresh(),
  stopped: null
})

/**
 * The record of a conversation that a user has given up, from a rune of the daemon's stream. Undefined for other runes.
 */
export const givenUpIn = (rune: Rune): ProjectRecord | undefined => {
  const about = readProject(rune)
  if (about?.kind !== "conversation.given_up") return undefined
  const { config, conversation, name } = about.payload
  const record = freshProject(conversation, config, name)
  const { at, eventId: entered } = rune
  record.life.snapshot = { ...record.life.snapshot, state: "closed", entered, at }
  return record
}

/** Records an archived conversation, or one that a user gave up, from the single rune that describes it. */
const archive = (records: Records, rune: Rune): void => {
  const givenUp = givenUpIn(rune)
  if (givenUp !== undefined) return void records.set(givenUp.conversation, givenUp)
  const found = ConversationRecovery.archived(rune)
  if (found === undefined) return
  const { agents, config, conversation, life, project, trusted = null } = found
  const all = new Map(agents.map((agent) => [agent, freshAgent(agent)] as const))
  const trust = { ...ConfigTrust.fresh(), hash: trusted }
  records.set(conversation, { conversation, config, name: project, agents: all, life, trust, stopped: null })
}

/** Applies the rune to the agent's machines that it concerns. */
const hand = (project: ProjectRecord, actor: string, rune: Rune, isJoined: boolean): void => {
  const [machine = "", name = ""] = actor.split("/")
  if (!AgentRecovery.machines.includes(machine)) return
  const agent = agentOf(project, name)
  try {
    AgentRecovery.apply(agent, machine, rune, isJoined)
  } catch (cause) {
    agent.broken = cause instanceof Error ? cause.message : String(cause)
  }
}

const readConfig = reader(configKinds)

export const apply = (records: Records, rune: Rune): void => {
  if (rune.stream === DAEMON_STREAM) return archive(records, rune)
  const about = readProject(rune)
  if (rune.kind === "project.registered") {
    // if the conversation is archived, this rune has no payload, but the archive's rune names the project
    if (about?.kind !== "project.registered") return
    const { config, name } = about.payload
    const known = records.get(rune.stream)
    if (known === undefined) records.set(rune.stream, freshProject(rune.stream, config, name))
    else Object.assign(known, { config, name })
    return
  }
  const project = records.get(rune.stream)
  if (project === undefined) return
  if (rune.kind === "project.config_changed") {
    project.name = (about?.kind === "project.config_changed" ? about.payload.name : undefined) ?? project.name
    return
  }
  if (about !== undefined) return ProjectStop.apply(project, about)
  const ofConfig = readConfig(rune)
  if (ofConfig !== undefined) return void ConfigTrust.apply(project.trust, ofConfig)
  const [, name = ""] = rune.actor.split("/")
  if (ConversationRecovery.apply(project.life, rune)) return
  hand(project, rune.actor, rune, false)
  for (const moved of rune.moves) hand(project, moved, rune, true)
  // sub-agents in older logs have no task, and their parents receive no messages about them
  const isOld = project.life.spawned.get(name)?.task === null
  const parent = isOld ? null : parentOf(project, name)
  SubAgentReports.apply(project.life.news, rune, { name, parent, began: begins(project, name) })
}

const parentOf = ({ agents }: ProjectRecord, name: string): string | null =>
  agents.get(name)?.life.data.parentId ?? null

/**
 * Id of the event with which an agent's newest start begins. For an agent that waits for a free slot, this is its
 * spawn.
 */
export const begins = ({ agents, life }: ProjectRecord, name: string): number =>
  Math.max(life.spawned.get(name)?.eventId ?? 0, agents.get(name)?.worker.began ?? 0)

const known: ReadonlySet<string> = new Set(kinds)

/**
 * Rebuilds a conversation from its stream. The record is null until a rune names the project. It is changed in place,
 * because only the reader uses it.
 */
export const project: StreamFold<ProjectRecord | null> = {
  name: "agents",
  version: 7,
  initial: null,
  of: ConversationId.mayBe,
  apply: (record, rune) => {
    if (!known.has(rune.kind)) return record
    const records: Records = record === null ? new Map() : new Map([[rune.stream, record]])
    apply(records, rune)
    return records.get(rune.stream) ?? null
  }
}

export const archives: StreamFold<ReadonlyArray<ProjectRecord>> = {
  name: "archived conversations",
  version: 4,
  initial: [],
  of: (stream) => stream === DAEMON_STREAM,
  apply: (all, rune) => {
    const records: Records = new Map()
    archive(records, rune)
    return records.size === 0 ? all : [...all, ...records.values()]
  }
}

/**
 * Calls `each` for every conversation as soon as its stream was read, open conversations first. If a stream cannot be
 * read or applied or is halted, calls `setApart` with the reason.
 */
export const recoverEach = Effect.fnUntraced(function* <E, R, E2, R2>(
  each: (record: ProjectRecord) => Effect.Effect<void, E, R>,
  setApart: (conversation: string, message: string) => Effect.Effect<void, E2, R2>
) {
  const log = yield* EventLog
  const archived = yield* log.recover(DAEMON_STREAM, { archives })
  const over = new Map(archived.archives.state.map((record) => [record.conversation, record] as const))
  const halted = new Map((yield* log.damaged).map(({ message, stream }) => [stream, message]))
  const streams = (yield* log.streams).filter(({ stream }) => ConversationId.mayBe(stream))
  for (const { stream } of streams.toSorted((a, b) => Number(a.isSealed) - Number(b.isSealed))) {
    const read = yield* Effect.result(log.recover(stream, { project }))
    if (over.has(stream)) continue
    const record = read._tag === "Success" ? read.success.project.state : null
    const { state = "" } = record?.life.snapshot ?? {}
    const isOver = state === "closed" || state === "archived"
    const wrong = read._tag === "Failure" ? read.failure.message : (halted.get(stream) ?? record?.life.broken)
    if (wrong !== undefined && !isOver) yield* setApart(stream, wrong)
    else if (record !== null) yield* each(record)
  }
  for (const record of over.values()) yield* each(record)
})

export const recover = Effect.gen(function* () {
  const records: Records = new Map()
  yield* recoverEach(
    (record) => Effect.sync(() => records.set(record.conversation, record)),
    () => Effect.void
  )
  return records
})

export const recoverAgent = Effect.fnUntraced(function* (log: EventLog["Service"], conversation: string, name: string) {
  const { state } = (yield* log.recover(conversation, { project })).project
  return state?.agents.get(name) ?? freshAgent(name)
})
