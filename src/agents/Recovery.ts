/**
 * Recovery: what the log says of every project and agent, in one pass over it.
 *
 * The pass is a pure fold. A machine whose runes do not fold (a log of a newer
 * agentd, a damaged one) is set aside with the reason and touches no other agent.
 */
import { Effect, Stream } from "effect"
import { DAEMON_STREAM, type Rune } from "../domain/Rune.ts"
import { evolve, type Snapshot } from "../machines/Machine.ts"
import * as Worker from "../machines/Worker.ts"
import { RuneLog } from "../runes/RuneLog.ts"
import * as Inbox from "./Inbox.ts"

export type WorkerSnapshot = Snapshot<Worker.State, Worker.Data>
export type InboxSnapshot = Snapshot<"Open", Inbox.Data>

/** What the log says of one agent. */
export interface AgentRecord {
  readonly name: string
  inbox: InboxSnapshot
  /** Undefined: it was never started. */
  worker: WorkerSnapshot | undefined
  /** Rises with each `worker.started`. */
  incarnation: number
  /** Why its runes do not fold. */
  broken: string | undefined
}

export interface ProjectRecord {
  readonly conversation: string
  config: string
  name: string
  readonly agents: Map<string, AgentRecord>
}

export type Records = Map<string, ProjectRecord>

export const kinds = [
  "project.registered",
  "project.config_changed",
  "worker.started",
  ...Worker.kinds,
  ...Inbox.kinds
] as const

export const inboxAddress = (agent: string): string => `inbox/${agent}`
export const workerAddress = (agent: string): string => `worker/${agent}`

export const freshAgent = (name: string): AgentRecord => ({
  name,
  inbox: { state: "Open", data: Inbox.initial, entered: 0, at: 0 },
  worker: undefined,
  incarnation: 0,
  broken: undefined
})

/** Where an incarnation begins: the limits in force are part of the rune, so the fold needs no config. */
export const begun = (rune: Pick<Rune, "eventId" | "at" | "payload">): WorkerSnapshot => ({
  state: Worker.Worker.initial,
  data: rune.payload["initial"] as Worker.Data,
  entered: rune.eventId,
  at: rune.at
})

const agentOf = (project: ProjectRecord, name: string): AgentRecord => {
  const known = project.agents.get(name)
  if (known !== undefined) return known
  const fresh = freshAgent(name)
  project.agents.set(name, fresh)
  return fresh
}

/** One rune, folded in. */
export const apply = (records: Records, rune: Rune): void => {
  if (rune.stream === DAEMON_STREAM) return
  if (rune.kind === "project.registered") {
    const config = String(rune.payload["config"])
    const name = String(rune.payload["name"])
    const known = records.get(rune.stream)
    if (known === undefined) records.set(rune.stream, { conversation: rune.stream, config, name, agents: new Map() })
    else Object.assign(known, { config, name })
    return
  }
  const project = records.get(rune.stream)
  if (project === undefined) return
  if (rune.kind === "project.config_changed") {
    project.name = String(rune.payload["name"] ?? project.name)
    return
  }
  const [machine, name] = [rune.actor.slice(0, rune.actor.indexOf("/")), rune.actor.slice(rune.actor.indexOf("/") + 1)]
  const agent = agentOf(project, name)
  try {
    if (rune.kind === "worker.started") {
      agent.worker = begun(rune)
      agent.incarnation = Number(rune.payload["incarnation"])
      agent.broken = undefined
    } else if (machine === "inbox") agent.inbox = evolve(Inbox.Inbox, agent.inbox, rune)
    else if (agent.worker !== undefined && agent.broken === undefined)
      agent.worker = evolve(Worker.Worker, agent.worker, rune)
  } catch (cause) {
    agent.broken = cause instanceof Error ? cause.message : String(cause)
  }
}

/** The whole log, folded. */
export const recover = Effect.gen(function* () {
  const log = yield* RuneLog
  const records: Records = new Map()
  yield* Stream.runForEachArray(log.read({ kinds }), (runes) =>
    Effect.sync(() => {
      for (const rune of runes) apply(records, rune)
    })
  )
  return records
})
