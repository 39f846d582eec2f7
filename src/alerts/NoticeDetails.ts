/**
 * NoticeDetails: collects the facts for a notice that the notice's rune does not contain: the waiting call, the goal,
 * the session, the agent, and which of the agent's sub-agents work. The facts are read when the notice is made.
 *
 * Guarantees: if a fact cannot be read, the notice is sent without it; only the facts that the kind of rune needs are
 * read.
 */
import { Clock, Effect } from "effect"
import { Agents } from "../projects/service/Agents.ts"
import { agentKinds } from "../agents/machines/AgentKinds.ts"
import { Mailer } from "./Mailer.ts"
import type { Facts } from "./Notice.ts"
import type { AgentInfo } from "../domain/Messages.ts"
import { readWork } from "../domain/WorkKinds.ts"
import { reader } from "../core/event-log/EventKinds.ts"
import { EventLog } from "../core/event-log/EventLog.ts"
import { DAEMON_STREAM, type Rune } from "../core/event-log/Rune.ts"
import { Goals } from "../goals/Goals.ts"
import { Plates } from "../plates/Plates.ts"

/** Maximum time that a notice waits for its project's name when the daemon starts. */
const NAMES_WITHIN = "30 seconds"

const MAX_SPAWNED = 1_000
const DAEMON_RUNES = 20
const CALLER = { by: "agentd", config: null }

const readSpawned = reader({ "agent.spawned": agentKinds["agent.spawned"] })
const readOutput = reader({ "run.output": agentKinds["run.output"] })

/** The name of the agent or goal in an actor, or in `project/agent`. */
const lastOf = (address: string): string => address.slice(address.lastIndexOf("/") + 1)
const nameIn = (actor: string): string => actor.split("/")[1] ?? actor

const isAtWork = ({ busy, inbox, word }: AgentInfo): boolean =>
  busy === true || inbox > 0 || ["needs you", "retrying", "waiting", "working"].includes(word)

/** Names of all sub-agents of an agent, at any depth. `parents`: the parent of each agent, by agent. */
const below = (name: string, parents: ReadonlyMap<string, string>): ReadonlySet<string> => {
  const found = new Set<string>()
  for (let grows = true; grows;) {
    grows = false
    for (const [child, parent] of parents) {
      if (found.has(child) || child === name || (parent !== name && !found.has(parent))) continue
      found.add(child)
      grows = true
    }
  }
  return found
}

/** Reads facts; if that fails, logs a warning and returns undefined. */
const known = <A, E, R>(what: string, ask: Effect.Effect<A, E, R>): Effect.Effect<A | undefined, never, R> =>
  Effect.catchCause(ask, (cause) =>
    Effect.as(Effect.logWarning(`a notice is sent without its ${what}`, cause), undefined)
  )

const callOf = Effect.fnUntraced(function* ({ actor }: Rune) {
  const calls = (yield* (yield* Agents).calls).filter(({ state }) => state === "awaiting_approval")
  const id = actor.split("/").slice(2).join("/")
  const call = calls.find(({ callId }) => callId === id)
  return { call, waiting: calls.length - (call === undefined ? 0 : 1) }
})

const goalOf = Effect.fnUntraced(function* ({ actor, stream }: Rune) {
  const goals = yield* (yield* Goals).list({ all: true }, CALLER)
  return { goal: goals.find(({ conversation, goalId }) => conversation === stream && goalId === nameIn(actor)) }
})

const plateOf = Effect.fnUntraced(function* ({ actor }: Rune) {
  const plates = yield* (yield* Plates).list({ closed: false })
  return { plate: plates.find(({ plateId }) => plateId === nameIn(actor)) }
})

const lastLine = Effect.fnUntraced(function* ({ actor, stream }: Rune) {
  const log = yield* EventLog
  const runes = yield* log.tail({ stream, actor: `worker/${nameIn(actor)}`, kinds: ["run.output"] }, 1)
  const lines = runes.flatMap((rune) => readOutput(rune)?.payload.text.split("\n") ?? [])
  return lines.findLast((line) => line.trim() !== "")
})

const agentOf = Effect.fnUntraced(function* (rune: Rune) {
  const log = yield* EventLog
  const rows = (yield* (yield* Agents).all).filter(({ conversation }) => conversation === rune.stream)
  const agent = rows.find((row) => row.agent === nameIn(rune.actor))
  const spawned = yield* log.tail({ stream: rune.stream, kinds: ["agent.spawned"] }, MAX_SPAWNED)
  const parents = new Map(
    spawned.flatMap((one) => {
      const { agent_id, parent_id } = readSpawned(one)?.payload ?? {}
      return agent_id === undefined || parent_id === undefined ? [] : [[lastOf(agent_id), lastOf(parent_id)] as const]
    })
  )
  const children = below(nameIn(rune.actor), parents)
  const working = rows.filter((row) => children.has(row.agent) && isAtWork(row)).map((row) => row.agent)
  const turns = yield* log.tail(
    { stream: rune.stream, actor: `turn/${nameIn(rune.actor)}`, kinds: ["turn.completed"] },
    1
  )
  const turn = turns
    .flatMap((one) => readWork(one) ?? [])
    .flatMap((one) => (one.kind === "turn.completed" ? [one.payload.turn_id] : []))[0]
  return { agent, working, turn, last: yield* lastLine(rune) }
})

const heldOf = Effect.map(
  Effect.flatMap(Agents, ({ all }) => all),
  (rows) => ({ held: rows.filter(({ word }) => word === "waiting").length })
)

const effectsOf = Effect.fnUntraced(function* ({ stream }: Rune) {
  const { consequences } = yield* (yield* Agents).configChange(stream, CALLER)
  return { effects: consequences.map(({ text }) => text) }
})

const killedOf = Effect.fnUntraced(function* ({ eventId }: Rune) {
  const log = yield* EventLog
  const kinds = ["daemon.started", "daemon.stopping", "daemon.stopped"]
  const runes = yield* log.tail({ stream: DAEMON_STREAM, kinds }, DAEMON_RUNES)
  const before = runes.findLast((rune) => rune.eventId < eventId)
  if (before?.kind !== "daemon.started") return {}
  const [newest] = yield* log.at([eventId - 1])
  return { killed: { at: (newest ?? before).at } }
})

const wanted = (rune: Rune) => {
  switch (rune.kind) {
    case "tool.approval_requested":
      return callOf(rune)
    case "plan.goal_met":
    case "plan.created":
    case "plan.updated":
    case "plan.blocked":
    case "plan.stopped":
      return goalOf(rune)
    case "plate.moved":
      return plateOf(rune)
    case "worker.moved":
    case "turn.completed":
    case "run.background":
      return agentOf(rune)
    case "provider.moved":
    case "provider.lasting":
      return heldOf
    case "config.waits":
      return effectsOf(rune)
    case "daemon.started":
      return killedOf(rune)
    default:
      return Effect.succeed({})
  }
}

/** The project's name for use in commands. If the name is unknown or not unique, the name of its stream. */
const addressOf = Effect.fnUntraced(function* (stream: string) {
  const agents = yield* Agents
  const projects = yield* agents.projects
  const name = projects.find(({ conversation }) => conversation === stream)?.name
  const isOne = projects.filter((project) => project.name === name).length === 1
  return name !== undefined && isOne ? name : stream
})

export const make = Effect.gen(function* () {
  const context = yield* Effect.context<Agents | EventLog | Goals | Plates>()
  const mailer = yield* Mailer
  return (rune: Rune): Effect.Effect<Facts> =>
    Effect.gen(function* () {
      const agents = yield* Agents
      // project names are known only after the streams have been read
      if (!(yield* agents.ready)) yield* Effect.timeoutOption(Effect.exit(agents.recovered), NAMES_WITHIN)
      const project = yield* addressOf(rune.stream)
      const now = yield* Clock.currentTimeMillis
      const more = yield* known(
        "facts",
        wanted(rune) as Effect.Effect<Partial<Facts>, unknown, Agents | EventLog | Goals | Plates>
      )
      return { ...more, project, now, host: mailer.host() }
    }).pipe(Effect.provideContext(context))
})
