/**
 * History: a daemon's state folder with a long log, for benches of the real daemon: ten agents that have
 * run once, and their newest run appended again and again through the log itself. All but the last runes
 * are in snapshots, as after a crash: what follows is the tail.
 *
 * Where `HISTORIES` names a folder, histories are made there once and kept for the next time.
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { createConnection } from "node:net"
import { join } from "node:path"
import { setTimeout as wait } from "node:timers/promises"
import { Effect, Fiber, Layer, Stream } from "effect"
import * as DaemonLog from "../../src/app/DaemonLog.ts"
import { folds } from "../../src/app/FeatureFolds.ts"
import { EventLog } from "../../src/core/event-log/EventLog.ts"
import { Redact } from "../../src/core/event-log/Redact.ts"
import type { Rune, RuneDraft } from "../../src/core/event-log/Rune.ts"
import { commandOf, variablesFor } from "../../src/systemd/DaemonNode.ts"
import { folder } from "./Bench.ts"

export const MAIN = join(import.meta.dirname, "../../src/main.ts")
export const AGENTS = Array.from({ length: 10 }, (_, n) => `agent${n}`)
/** Runes that no snapshot has. */
const TAIL = 1_000
/** ms; a daemon that takes longer is none. */
const PATIENCE = 300_000

export interface Place {
  readonly state: string
  readonly project: string
  readonly environment: NodeJS.ProcessEnv
}

/** A project of stopped agents, agent0 and further, in a folder of its own. */
export const stoppedAgents = (root: string, count: number): Place => {
  const project = join(root, "shop")
  mkdirSync(project, { recursive: true })
  const agent = { autostart: false, worktree: false, backend: { type: "command", shell: "cat" } }
  const agents = Object.fromEntries(Array.from({ length: count }, (_, n) => [`agent${n}`, agent]))
  writeFileSync(join(project, "agentd.jsonc"), JSON.stringify({ agents }))
  return {
    state: join(root, "s"),
    project,
    environment: { ...process.env, XDG_CONFIG_HOME: join(root, "config"), CLAUDE_CONFIG_DIR: join(root, "claude") }
  }
}

/** Where a history of this name is, or is to be. */
export const placeOf = (name: string): Place => {
  const kept = process.env["HISTORIES"]
  const root = kept === undefined ? folder() : join(kept, name)
  const project = join(root, "shop")
  mkdirSync(project, { recursive: true })
  const backend = { type: "command", shell: "cat" }
  writeFileSync(
    join(project, "agentd.jsonc"),
    JSON.stringify({ agents: Object.fromEntries(AGENTS.map((name) => [name, { backend }])) })
  )
  return {
    state: join(root, "s"),
    project,
    environment: { ...process.env, XDG_CONFIG_HOME: join(root, "config"), CLAUDE_CONFIG_DIR: join(root, "claude") }
  }
}

/** As `agentd start` has it. `flags`: of Node, besides; with them its standard error is to be read. */
export const daemonOf = ({ environment, project, state }: Place, flags: ReadonlyArray<string> = []): ChildProcess => {
  const [node, ...args] = commandOf([process.execPath, ...flags, MAIN, "--state", state, "up"])
  return spawn(node!, args, {
    cwd: project,
    env: { ...environment, ...variablesFor(environment) },
    stdio: ["ignore", "ignore", flags.length === 0 ? "ignore" : "pipe"]
  })
}

export const stopped = async (daemon: ChildProcess): Promise<void> => {
  daemon.kill("SIGTERM")
  if (daemon.exitCode === null && daemon.signalCode === null) await once(daemon, "exit")
}

/** `agentd …`, and what it printed. */
export const command = ({ environment, project, state }: Place, ...words: ReadonlyArray<string>): string =>
  execFileSync(process.execPath, [MAIN, "--state", state, ...words], {
    cwd: project,
    env: environment,
    encoding: "utf8"
  })

const request = JSON.stringify({ _tag: "Request", id: "0", tag: "Status", payload: null, headers: [] })

/** The phase that the daemon says it is in; undefined while nobody answers. */
export const phaseOf = ({ state }: Place): Promise<string | undefined> =>
  new Promise((resolve) => {
    let text = ""
    const socket = createConnection(join(state, "control.sock"))
    socket.on("error", () => resolve(undefined))
    socket.on("close", () => resolve(undefined))
    socket.on("connect", () => socket.write(`${request}\n`))
    socket.on("data", (data) => {
      text += String(data)
      if (!text.includes("\n")) return
      resolve(/"phase":"(\w+)"/.exec(text)?.[1])
      socket.destroy()
    })
  })

/** ms of the processor that the process has taken, threads and all. */
export const cpuOf = (pid: number): number => {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]!.split(" ")
  return (Number(fields[11]) + Number(fields[12])) * 10
}

/** MB that the process has in memory for itself alone. */
export const ownMemory = (pid: number): number =>
  Number(/Pss_Anon:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/smaps_rollup`, "utf8"))?.[1]) / 1024

/** From the spawn on, ms. */
export const started = async (place: Place) => {
  const begin = performance.now()
  const daemon = daemonOf(place)
  let answered: number | undefined
  for (;;) {
    const phase = await phaseOf(place)
    const now = performance.now() - begin
    if (phase !== undefined) answered ??= now
    if (phase === "ready") return { daemon, answered: answered!, ready: now }
    if (now > PATIENCE || daemon.exitCode !== null) throw new Error(`the daemon does not start (${daemon.exitCode})`)
    await wait(2)
  }
}

/** Each agent has run once. */
const firstLife = async (place: Place): Promise<void> => {
  const { daemon } = await started(place)
  for (const agent of AGENTS) command(place, "send", agent, "Say it again.")
  const rested = () =>
    command(place, "--json", "log", "-n", "10000", "--kind", "turn.completed").trim().split("\n").length
  while (rested() < AGENTS.length) await wait(100)
  await wait(1_000)
  await stopped(daemon)
}

/** The newest run of an agent as it stands in the log, to be appended again for all agents in turn. */
class Run {
  private readonly runes: ReadonlyArray<Rune>
  private readonly name: string
  private readonly texts: ReadonlyArray<string>
  private readonly ids: ReadonlyArray<string>
  private readonly seqs = new Map<string, number>()
  private count = 0

  constructor(all: ReadonlyArray<Rune>) {
    const end = all.findLast(({ kind }) => kind === "turn.completed")!
    this.name = end.actor.slice(end.actor.indexOf("/") + 1)
    const own = all.filter(({ actor }) => actor.endsWith(`/${this.name}`) || actor.startsWith("conversation/"))
    const first = own.findLast(({ kind }) => kind === "inbox.received")!
    const after = own.filter(({ eventId }) => eventId >= first.eventId)
    const isIts = ({ actor, payload }: Rune) =>
      !actor.startsWith("conversation/") || JSON.stringify(payload).includes(String(end.payload["turn_id"]))
    this.runes = after.filter(isIts)
    this.texts = this.runes.map(({ payload }) => JSON.stringify(payload))
    this.ids = [...new Set(this.texts.join().match(/"[0-9a-hjkmnp-tv-z]{26}"/g))].map((id) => id.slice(1, -1))
    for (const { actor, payload } of all) {
      if (typeof payload["sessionSeq"] === "number") this.seqs.set(actor.slice(7), payload["sessionSeq"])
    }
  }

  get length(): number {
    return this.runes.length
  }

  get next(): ReadonlyArray<RuneDraft> {
    const agent = AGENTS[this.count % AGENTS.length]!
    this.count += 1
    const seq = (this.seqs.get(agent) ?? 0) + 1
    this.seqs.set(agent, seq)
    const renamed = (text: string): string => {
      let next = text.replaceAll(this.name, agent)
      for (const [index, id] of this.ids.entries()) {
        next = next.replaceAll(id, `01m${index}${String(this.count).padStart(22, "0")}`)
      }
      return next.replace(/"sessionSeq":\d+/, `"sessionSeq":${seq}`).replace(/"seq":\d+/, `"seq":${seq}`)
    }
    return this.runes.map(({ actor, from, kind, moves, stream, to, trigger }, index) => ({
      stream,
      kind,
      actor: renamed(actor),
      from,
      to,
      trigger,
      payload: JSON.parse(renamed(this.texts[index]!)),
      ...(moves === undefined || moves === null ? {} : { moves: JSON.parse(renamed(JSON.stringify(moves))) })
    }))
  }
}

/** Appends until there are so many runes. `keeps`: with snapshots. */
const grow = (place: Place, upTo: number, keeps: boolean): Promise<void> =>
  Effect.gen(function* () {
    const log = yield* EventLog
    const run = new Run(
      Array.from(yield* Stream.runCollect(log.read({ after: Math.max(0, (yield* log.head) - 2_000) })))
    )
    // the daemon's alerter, for which nothing in this history is news
    const alerter = keeps
      ? yield* Effect.forkChild(log.follow("alerter", { kinds: ["alert.queued"] }, () => Effect.void))
      : undefined
    while ((yield* log.head) < upTo) {
      yield* log.append(Array.from({ length: Math.floor(200 / run.length) }, () => run.next).flat())
    }
    if (alerter !== undefined) yield* Fiber.interrupt(alerter)
  }).pipe(
    Effect.provide(
      DaemonLog.layer({ file: join(place.state, "runes.db"), folds: keeps ? folds : [] }).pipe(
        Layer.provide(Redact.layer)
      )
    ),
    Effect.runPromise
  )

/** A history of so many runes. */
export const historyOf = async (runes: number): Promise<Place> => {
  const place = placeOf(String(runes))
  const made = join(place.project, "made")
  if (existsSync(made)) return place
  await firstLife(place)
  await grow(place, runes - TAIL, true)
  await grow(place, runes, false)
  writeFileSync(made, "")
  return place
}
