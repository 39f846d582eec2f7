/**
 * Folded: what the daemon makes of a log, as plain data by name: the state of each actor,
 * what is kept beside it, and the rows that people are shown.
 *
 * This file alone knows which modules recover what. A change of theirs is followed here,
 * and what comes out stays: the recorded states are compared with it.
 */
import { Effect, HashMap, HashSet, Schema } from "effect"
import type { AgentRecord } from "../../../../src/agents/actors/AgentRecovery.ts"
import * as AgentRecovery from "../../../../src/projects/Recovery.ts"
import * as AgentView from "../../../../src/agents/run/AgentView.ts"
import { callRow } from "../../../../src/agents/machines/CallRow.ts"
import type { Life } from "../../../../src/projects/ConversationRecovery.ts"
import * as ConversationRow from "../../../../src/projects/ConversationRow.ts"
import type { Call } from "../../../../src/agents/machines/ToolsState.ts"
import type { ProjectRecord } from "../../../../src/projects/Recovery.ts"
import * as Outbox from "../../../../src/alerts/Outbox.ts"
import type { Channel } from "../../../../src/channels/ChannelState.ts"
import * as ChannelRecovery from "../../../../src/channels/Recovery.ts"
import * as ChannelView from "../../../../src/channels/ChannelView.ts"
import { AgentConfig } from "../../../../src/config/AgentConfig.ts"
import * as ConfigFile from "../../../../src/config/ConfigFile.ts"
import type { CallInfo } from "../../../../src/domain/Messages.ts"
import * as GoalRegistry from "../../../../src/goals/GoalRegistry.ts"
import { knownTo, usedBy } from "../../../../src/goals/GoalState.ts"
import * as GoalView from "../../../../src/goals/GoalView.ts"
import * as PlateRecovery from "../../../../src/plates/Recovery.ts"
import * as PlateView from "../../../../src/plates/PlateView.ts"
import { EventLog } from "../../../../src/core/event-log/EventLog.ts"

/** The kinds of runes that there are. */
export { kinds } from "../../../../src/app/EventKinds.ts"

/** By `STREAM ACTOR`, `STREAM ACTOR: facts` or `row: …`. JSON. */
export type Folded = { readonly [name: string]: unknown }

export interface Around {
  /** The projects' files, by path. */
  readonly configs: { readonly [path: string]: string }
  /** ms since the epoch */
  readonly now: number
}

type Put = (name: string, value: unknown) => void

/** Where a machine stands. Its rune's seq came after the recording: the eventId, which was recorded, names the same rune. */
const isSnapshot = (value: object): boolean =>
  "state" in value && "data" in value && "entered" in value && "seq" in value

/** Fields that states have had only since the recording. */
const ADDED = new Set(["pausedAt", "rejoin", "restAfterPosts", "using", "waits"])

/** Maps and sets in an order of their own. */
const plain = (value: unknown): unknown => {
  if (HashMap.isHashMap(value)) return plain(new Map(HashMap.toEntries(value)))
  if (HashSet.isHashSet(value)) return [...value].map(String).toSorted()
  if (value instanceof Set) return [...value].map(String).toSorted()
  if (value instanceof Map) return plain(Object.fromEntries([...value].map(([key, one]) => [String(key), one])))
  if (Array.isArray(value)) return value.map(plain)
  if (typeof value === "number" && !Number.isFinite(value)) return String(value)
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(
        ([key, one]) =>
          one !== undefined && typeof one !== "function" && !ADDED.has(key) && !(key === "seq" && isSnapshot(value))
      )
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, one]) => [key, plain(one)])
  )
}

const decodeAgent = Schema.decodeUnknownSync(AgentConfig)

/** The config in force for an agent: the file's, or what it was spawned with. */
const configOf = (project: ConfigFile.Project | undefined, life: Life, agent: string): AgentConfig | undefined => {
  const spawned = life.spawned.get(agent)
  if (spawned !== undefined) return decodeAgent(spawned.config)
  return project?.agents[agent]
}

const rowOfCall = (
  conversation: string,
  project: string,
  agent: string,
  { arguments: input, callId, questions, reason, snapshot }: Call
): CallInfo | undefined =>
  callRow(
    { conversation, project, agent },
    {
      callId,
      turnId: snapshot.data.turnId ?? "",
      tool: snapshot.data.toolName ?? "",
      arguments: input,
      reason,
      questions
    },
    snapshot
  )

const putAgent = (
  put: Put,
  project: ProjectRecord,
  record: AgentRecord,
  config: AgentConfig | undefined,
  now: number
) => {
  const { conversation } = project
  const { broken, inbox, name, tools } = record
  const { began, incarnation, now: stands } = record.worker
  const worker = stands
  // the prompt came into the data after the recording
  const { ended, ...turn } = record.turn
  const { countedTo: _, spent, ...lived } = record.life
  const life = lived.entered === 0 ? undefined : lived
  const grants = new Map(HashMap.entries(tools.grants))
  const calls = new Map(HashMap.entries(tools.open))
  put(`${conversation} inbox/${name}`, inbox)
  put(`${conversation} turn/${name}`, turn)
  put(`${conversation} worker/${name}`, stands && { ...stands, data: { ...stands.data, prompt: undefined } })
  put(`${conversation} agent/${name}`, life)
  put(`${conversation} agent/${name}: facts`, {
    began,
    broken,
    ended: new Map(ended.map(({ messageId, ...end }) => [messageId, end])),
    grants,
    incarnation,
    spent
  })
  const rows: Array<CallInfo> = []
  for (const call of calls.values()) {
    const { snapshot, ...facts } = call
    put(`${conversation} tool/${name}/${call.callId}`, snapshot)
    put(`${conversation} tool/${name}/${call.callId}: facts`, { ...facts, arguments: JSON.parse(call.arguments) })
    const row = rowOfCall(conversation, project.name, name, call)
    if (row !== undefined) rows.push(row)
    put(`row: call ${conversation}/${call.callId}`, row)
  }
  if (config === undefined) return
  const shown = { conversation, project: project.name, agent: name, config, worker, turn, calls: rows, broken, now }
  put(`row: agent ${conversation}/${name}`, AgentView.row({ ...shown, inbox: inbox.data }))
}

const putProjects = Effect.fnUntraced(function* (put: Put, { configs, now }: Around) {
  const projects = yield* AgentRecovery.recover
  for (const project of projects.values()) {
    const { agents, config, conversation, life, name } = project
    put(`${conversation} conversation/${conversation}`, life.snapshot)
    const { snapshot: _, failures, ...facts } = life
    const log = yield* EventLog
    // as it was recorded: each failure by its cause's eventId
    const causes = yield* Effect.forEach(failures, ([agent, seq]) =>
      Effect.map(log.find({ stream: conversation, seq }), (rune) => [agent, rune!.eventId] as const)
    )
    const told = { name, config, ...facts, failures: new Map(causes) }
    put(`${conversation} conversation/${conversation}: facts`, told)
    const { broken, limits, snapshot, spent } = life
    const who = [...agents.keys()]
    const row = {
      conversation,
      project: name,
      config,
      snapshot,
      broken,
      agents: who,
      queued: [],
      spent,
      limits
    }
    put(`row: conversation ${conversation}`, ConversationRow.row(row))
    const text = configs[config]
    const file = text === undefined ? undefined : yield* Effect.orDie(ConfigFile.parse(text, config))
    for (const record of agents.values()) putAgent(put, project, record, configOf(file, life, record.name), now)
  }
  return projects
})

const putChannel = (put: Put, channel: Channel, project: string, agents: ProjectRecord["agents"], now: number) => {
  // As the daemon kept it that wrote the recording: `queue` holds who is paused, and what came since is left out.
  const { amongAgents: _, conversation, name, queue, registered: __, seats, ...rest } = channel
  const { current, line, paused } = queue
  const { rejoin: ___, ...settings } = channel.settings
  const { restAfterPosts: ____, ...turnConfig } = settings.turnConfig
  const then = {
    ...rest,
    assigned: rest.assigned.toSorted(),
    settings: { ...settings, turnConfig },
    queue: { current, line },
    waiting: paused
  }
  put(`${conversation} channel/${name}`, then)
  for (const [agent, { stand, ...facts }] of Object.entries(seats)) {
    put(`${conversation} seat/${name}/${agent}`, stand)
    put(`${conversation} seat/${name}/${agent}: facts`, facts)
  }
  const busy = (agent: string) => (agents.get(agent)?.turn.state ?? "idle") !== "idle"
  const online = (agent: string) => ["idle", "running_turn"].includes(agents.get(agent)?.life?.state ?? "")
  const idle = (agent: string) => online(agent) && !busy(agent)
  const here = { now, open: true, online, busy, carries: () => false, idle, aliveAt: () => 0, isOver: () => false }
  const info = ChannelView.info(channel, project, here, () => null)
  const { channel: shown, ...view } = ChannelView.view(channel, info)
  const { waits: _____, ...row } = shown
  put(`row: channel ${conversation}/${name}`, { ...view, turnConfig, channel: row })
}

const putGoals = Effect.fnUntraced(function* (put: Put, now: number) {
  const log = yield* EventLog
  const streams = yield* log.streams
  const found = yield* GoalRegistry.recover(
    log,
    streams.map(({ stream }) => stream)
  )
  const records = [...found].map(([stream, goals]) => [stream, GoalRegistry.recordsOf(goals)] as const)
  const options = {} as Parameters<typeof GoalView.infoOf>[0]["options"]
  for (const [conversation, goals] of records) {
    for (const { figures, goalId, left, stand, state } of goals.values()) {
      put(`${conversation} plan/${goalId}`, stand)
      const shown = state === undefined ? figures : GoalView.figuresOf(state)
      put(`${conversation} plan/${goalId}: facts`, {
        left,
        rejected: state?.rejected,
        findings: state?.findings,
        followed: state?.followed,
        revise: state?.revise,
        reviewed: state?.reviewed,
        loads: state?.loads,
        used: state && usedBy(state),
        known: state && knownTo(state)
      })
      const of = {
        goalId,
        conversation,
        project: "",
        stand,
        figures: shown,
        detail: undefined,
        asks: false,
        stuck: false,
        held: false
      }
      put(`row: goal ${conversation}/${goalId}`, GoalView.infoOf({ ...of, options: figures.options ?? options }, now))
      for (const node of state?.plan.nodes ?? []) {
        put(`row: task ${conversation}/${goalId}/${node.task.id}`, GoalView.taskOf(node))
        const { agent, attempts, base, began, broken, given, messageId, notBefore, task } = node
        const missing = task.dependsOn.filter((id) => state?.plan.find(id)?.state !== "completed").length
        const facts = { agent, attempts, base, began, broken, given, messageId, missing, notBefore, task }
        put(`${conversation} plan/${goalId}: task ${task.id}`, facts)
      }
    }
  }
})

const putPlates = Effect.fnUntraced(function* (put: Put, now: number) {
  const { plates, used } = yield* PlateRecovery.recover
  put("plates: used names", used)
  for (const { facts, plateId, stand } of plates.values()) {
    put(`${plateId} plate/${plateId}`, stand)
    put(`${plateId} plate/${plateId}: facts`, facts)
    const unread = { transcript: undefined, branch: undefined, heard: stand.at, watchable: false }
    // what a posted tool is called with was not kept when these were recorded
    const known = { ...facts, using: null }
    put(`row: plate ${plateId}`, PlateView.row({ plateId, stand, facts: known, ...unread }, null, now))
  }
})

/** The whole log, folded by all that fold it. */
export const folded = Effect.fnUntraced(function* (around: Around) {
  const all: { [name: string]: unknown } = {}
  const put: Put = (name, value) => {
    if (value !== undefined) all[name] = plain(value)
  }
  const projects = yield* putProjects(put, around)
  const records = yield* ChannelRecovery.recover
  const homes = records.flatMap(({ home }) => (home === null ? [] : [home]))
  put("channels: broken", new Map(records.flatMap(({ broken }) => Object.entries(broken))))
  put("channels: homes", new Map(homes.map((home) => [home.conversation, home])))
  for (const { channels } of records) {
    for (const channel of Object.values(channels)) {
      const project = projects.get(channel.conversation)
      putChannel(put, channel, project?.name ?? "", project?.agents ?? new Map(), around.now)
    }
  }
  yield* putGoals(put, around.now)
  yield* putPlates(put, around.now)
  const outbox = yield* Outbox.load
  put("daemon alerter", outbox)
  put("row: outbox", Outbox.summary(outbox))
  return all as Folded
})
