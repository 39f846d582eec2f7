/**
 * Bench of the daemon's start over its history: the real daemon, from its spawn to its
 * first answer on the control socket, and until all is ready.
 *
 * Ten agents that have run; their newest run is appended again and again through the log
 * itself, until there are as many runes as the subject says. All but the last runes are in
 * snapshots, as after a crash: what follows is the tail. One subject has no snapshot of them,
 * as after an upgrade that changes every fold.
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process"
import { once } from "node:events"
import { mkdirSync, writeFileSync } from "node:fs"
import { createConnection } from "node:net"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { setTimeout as wait } from "node:timers/promises"
import { Effect, Fiber, Layer, Stream } from "effect"
import * as DaemonLog from "../../src/app/DaemonLog.ts"
import { folds } from "../../src/app/Folds.ts"
import { EventLog } from "../../src/event-log/EventLog.ts"
import { Redact } from "../../src/event-log/Redact.ts"
import type { Rune, RuneDraft } from "../../src/event-log/Rune.ts"
import { indexFileOf } from "../../src/event-log/StreamIndex.ts"
import { type Bench, folder, interleave, type Subject } from "./Bench.ts"

const MAIN = join(import.meta.dirname, "../../src/main.ts")
const AGENTS = Array.from({ length: 10 }, (_, n) => `agent${n}`)
const ROUNDS = 3
/** Runes that no snapshot has. */
const TAIL = 1_000
/** ms; a daemon that takes longer is none. */
const PATIENCE = 300_000

interface Place {
  readonly state: string
  readonly project: string
  readonly environment: NodeJS.ProcessEnv
}

const placeOf = (): Place => {
  const root = folder()
  const project = join(root, "shop")
  mkdirSync(project)
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

const daemonOf = ({ environment, project, state }: Place): ChildProcess =>
  spawn(process.execPath, [MAIN, "--state", state, "up"], { cwd: project, env: environment, stdio: "ignore" })

const stopped = async (daemon: ChildProcess): Promise<void> => {
  daemon.kill("SIGTERM")
  if (daemon.exitCode === null && daemon.signalCode === null) await once(daemon, "exit")
}

/** `agentd …`, and what it printed. */
const command = ({ environment, project, state }: Place, ...words: ReadonlyArray<string>): string =>
  execFileSync(process.execPath, [MAIN, "--state", state, ...words], {
    cwd: project,
    env: environment,
    encoding: "utf8"
  })

const request = JSON.stringify({ _tag: "Request", id: "0", tag: "Status", payload: null, headers: [] })

/** The phase that the daemon says it is in; undefined while nobody answers. */
const phaseOf = ({ state }: Place): Promise<string | undefined> =>
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

/** From the spawn on, ms. */
const started = async (place: Place) => {
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

const historyOf = async (runes: number): Promise<Place> => {
  const place = placeOf()
  await firstLife(place)
  await grow(place, runes - TAIL, true)
  await grow(place, runes, false)
  return place
}

const subjectOf = (subject: string, place: Place, before: () => void = () => {}): Subject => ({
  subject,
  round: async () => {
    before()
    const { answered, daemon, ready } = await started(place)
    await stopped(daemon)
    return { "first answer": answered, "all ready": ready }
  }
})

/** As after an upgrade to another version of every fold. */
const withoutSnapshots = (place: Place) => () => {
  const index = new DatabaseSync(indexFileOf(join(place.state, "runes.db")))
  index.exec("DELETE FROM snapshots WHERE name NOT IN ('guard', 'archives')")
  index.close()
}

const [SHORT, LONG, ANEW] = ["10,000 runes", "1,000,000 runes", "1,000,000 runes, new folds"] as const

export const bench: Bench = {
  name: "start",
  run: async () => {
    const [short, long] = [await historyOf(10_000), await historyOf(1_000_000)]
    return interleave(
      [
        { what: "first answer", unit: "ms", better: "less" },
        { what: "all ready", unit: "ms", better: "less" }
      ],
      [subjectOf(SHORT, short), subjectOf(LONG, long), subjectOf(ANEW, long, withoutSnapshots(long))],
      ROUNDS
    )
  },
  aims: [
    { what: "first answer", of: LONG, to: { subject: SHORT }, atMost: 1.3 },
    { what: "all ready", of: LONG, to: { subject: SHORT }, atMost: 1.3 }
  ]
}
