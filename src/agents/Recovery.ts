/**
 * Recovery: what the log says of every project and agent: each conversation by its own
 * stream, and those that are archived by the daemon's.
 *
 * Each is a pure fold. A machine whose runes do not fold (a log of a newer agentd, a
 * damaged one) is set aside with the reason and touches no other agent; a stream that
 * cannot be read touches no other conversation.
 */
import { Effect } from "effect"
import * as ConversationId from "../domain/ConversationId.ts"
import { DAEMON_STREAM, type Rune } from "../event-log/Rune.ts"
import { EventLog, type StorageError } from "../event-log/EventLog.ts"
import type { StreamFold } from "../event-log/StreamFold.ts"
import { configKinds } from "../domain/ConfigKinds.ts"
import { projectKinds } from "../domain/ProjectKinds.ts"
import { reader } from "../event-log/EventKinds.ts"
import * as AgentRecovery from "./AgentRecovery.ts"
import { type AgentRecord, freshAgent } from "./AgentRecovery.ts"
import * as ConfigTrust from "./ConfigTrust.ts"
import * as ChildNews from "./ChildNews.ts"
import * as ConversationRecovery from "./ConversationRecovery.ts"

export interface ProjectRecord {
  readonly conversation: string
  config: string
  name: string
  readonly agents: Map<string, AgentRecord>
  readonly life: ConversationRecovery.Life
  /** The part of its file that a person has agreed to. */
  readonly trust: ConfigTrust.Trust
}

export type Records = Map<string, ProjectRecord>

export const kinds = [
  "project.registered",
  "project.config_changed",
  "config.trusted",
  "config.changed",
  "config.waits",
  "agent.reported",
  "agent.answered",
  ...AgentRecovery.kinds,
  ...ConversationRecovery.kinds
] as const

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
  trust: ConfigTrust.fresh()
})

/** A conversation of which only the archive's rune is left to read. */
const archive = (records: Records, rune: Rune): void => {
  const found = ConversationRecovery.archived(rune)
  if (found === undefined) return
  const { agents, config, conversation, life, project, trusted = null } = found
  const all = new Map(agents.map((agent) => [agent, freshAgent(agent)] as const))
  const trust = { ...ConfigTrust.fresh(), hash: trusted }
  records.set(conversation, { conversation, config, name: project, agents: all, life, trust })
}

/** To the agent's machine that wrote the rune, or joined it. */
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

const readProject = reader(projectKinds)
const readConfig = reader(configKinds)

/** Folds a rune in. */
export const apply = (records: Records, rune: Rune): void => {
  if (rune.stream === DAEMON_STREAM) return archive(records, rune)
  const about = readProject(rune)
  if (rune.kind === "project.registered") {
    // one that is archived says no more: its archive's rune does
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
    project.name = about?.payload.name ?? project.name
    return
  }
  const ofConfig = readConfig(rune)
  if (ofConfig !== undefined) return void ConfigTrust.apply(project.trust, ofConfig)
  const [, name = ""] = rune.actor.split("/")
  if (ConversationRecovery.apply(project.life, rune)) return
  hand(project, rune.actor, rune, false)
  for (const moved of rune.moves) hand(project, moved, rune, true)
  // what became of one that was spawned before parents were told is no news
  const isOld = project.life.spawned.get(name)?.task === null
  const parent = isOld ? null : parentOf(project, name)
  ChildNews.apply(project.life.news, rune, { name, parent, began: begins(project, name) })
}

const parentOf = ({ agents }: ProjectRecord, name: string): string | null =>
  agents.get(name)?.life.data.parentId ?? null

/** The rune with which an agent's newest incarnation begins: its spawn, while it waits for a place. */
export const begins = ({ agents, life }: ProjectRecord, name: string): number =>
  Math.max(life.spawned.get(name)?.eventId ?? 0, agents.get(name)?.worker.began ?? 0)

const known: ReadonlySet<string> = new Set(kinds)

/** A conversation, by its stream; null while its stream names no project. The record is the reader's alone. */
export const project: StreamFold<ProjectRecord | null> = {
  name: "agents",
  version: 5,
  initial: null,
  of: ConversationId.mayBe,
  apply: (record, rune) => {
    if (!known.has(rune.kind)) return record
    const records: Records = record === null ? new Map() : new Map([[rune.stream, record]])
    apply(records, rune)
    return records.get(rune.stream) ?? null
  }
}

/** Conversations of which only the archive's rune is left to read. */
export const archives: StreamFold<ReadonlyArray<ProjectRecord>> = {
  name: "archived conversations",
  version: 2,
  initial: [],
  of: (stream) => stream === DAEMON_STREAM,
  apply: (all, rune) => {
    const records: Records = new Map()
    archive(records, rune)
    return records.size === 0 ? all : [...all, ...records.values()]
  }
}

/**
 * Each conversation as soon as its stream is read, the open ones first. What cannot be read is said and left out;
 * where nothing at all can be read, that is a failure.
 */
export const recoverEach = Effect.fnUntraced(function* <E, R>(
  each: (record: ProjectRecord) => Effect.Effect<void, E, R>
) {
  const log = yield* EventLog
  const unread: Array<StorageError> = []
  const told = <A>(read: Effect.Effect<A, StorageError>) =>
    Effect.catch(read, (error) => {
      unread.push(error)
      return Effect.as(Effect.logError(`a conversation cannot be read: ${error.message} ${error.remedy}`), undefined)
    })
  const archived = yield* told(log.recover(DAEMON_STREAM, { archives }))
  const over = new Map(archived?.archives.state.map((record) => [record.conversation, record] as const))
  const streams = (yield* log.streams).filter(({ stream }) => ConversationId.mayBe(stream))
  let count = 0
  for (const { stream } of streams.toSorted((a, b) => Number(a.isSealed) - Number(b.isSealed))) {
    const record = (yield* told(log.recover(stream, { project })))?.project.state ?? null
    if (record === null || over.has(stream)) continue
    count += 1
    yield* each(record)
  }
  for (const record of over.values()) yield* each(record)
  const [first] = unread
  if (first !== undefined && count === 0) return yield* first
})

/** All conversations. */
export const recover = Effect.gen(function* () {
  const records: Records = new Map()
  yield* recoverEach((record) => Effect.sync(() => records.set(record.conversation, record)))
  return records
})

/** Folds an agent again: its record as the log left it. */
export const recoverAgent = Effect.fnUntraced(function* (log: EventLog["Service"], conversation: string, name: string) {
  const { state } = (yield* log.recover(conversation, { project })).project
  return state?.agents.get(name) ?? freshAgent(name)
})
