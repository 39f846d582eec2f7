/**
 * Bench of time: the real daemon over a log of 10,000 runes and one of many more: its start, its memory, what the
 * disk holds, what `why`, `log` and `runs` take of it, and before that how it settles: it files each rune and moves the
 * oldest ones to segments, while somebody asks for its status. Runs where it is named: 1 million runes, or so many as
 * `RUNES` says (`RUNES=10000000` is a year of a busy agent; to make it takes minutes and 7 GB). With
 * `HISTORIES=FOLDER` the logs are made once.
 */
import { existsSync, readdirSync, statSync } from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { setTimeout as wait } from "node:timers/promises"
import { bounds } from "../../src/app/LogSealer.ts"
import { type Bench, interleave, type Measure, quantile, type Row } from "./Bench.ts"
import { Client } from "./Client.ts"
import { cpuOf, historyOf, ownMemory, type Place, started, stopped } from "./History.ts"

const MANY = Number(process.env["RUNES"] ?? 1_000_000)
const [SHORT, LONG] = ["10,000 runes", `${MANY.toLocaleString("en")} runes`] as const

/** Of one agent among ten. */
const AGENT = "agent3"
const READS: ReadonlyArray<readonly [what: string, tag: string, payload: object]> = [
  ["why", "Why", { name: AGENT }],
  ["log --agent", "Log", { agent: AGENT, tail: 50, follow: false }],
  [
    "runs",
    "Log",
    { agent: AGENT, kinds: ["worker.moved", "turn.started", "turn.completed"], tail: 1_000, follow: false }
  ]
]

const measures: ReadonlyArray<Measure> = [
  { what: "first answer", unit: "ms", better: "less" },
  { what: "all ready", unit: "ms", better: "less" },
  { what: "all ready: the daemon's time", unit: "ms", better: "less" },
  { what: "own memory", unit: "MB", better: "less" },
  { what: "own memory after reads", unit: "MB", better: "less" },
  ...READS.map(([what]): Measure => ({ what: `${what}: the daemon's time`, unit: "ms", better: "less" })),
  { what: "bytes on the disk a rune", unit: "B", better: "less" }
]

const bytesOf = ({ state }: Place): number => {
  const folder = join(state, "segments")
  const segments = existsSync(folder) ? readdirSync(folder).map((name) => join("segments", name)) : []
  return ["runes.db", "runes.db-wal", "runes.db.index", ...segments]
    .map((name) => statSync(join(state, name), { throwIfNoEntry: false })?.size ?? 0)
    .reduce((sum, bytes) => sum + bytes, 0)
}

/** Runes of the daemon's own that may come while it is looked at. */
const NEW = 100

/** Once for what is compiled, once for the figure. */
const TIMES = 20

const subjectOf = (subject: string, place: Place, runes: number) => ({
  subject,
  round: async () => {
    const { answered, daemon, ready } = await started(place)
    const [memory, time] = [ownMemory(daemon.pid!), cpuOf(daemon.pid!)]
    const reads: { [what: string]: number } = {}
    const client = new Client(place)
    const caller = { by: "ada", config: join(place.project, "agentd.jsonc") }
    for (const [what, tag, payload] of READS) {
      for (let n = 0; n < TIMES; n++) await client.ask(tag, { ...payload, caller })
      const before = cpuOf(daemon.pid!)
      for (let n = 0; n < TIMES; n++) await client.ask(tag, { ...payload, caller })
      reads[`${what}: the daemon's time`] = (cpuOf(daemon.pid!) - before) / TIMES
    }
    client.close()
    const after = ownMemory(daemon.pid!)
    await stopped(daemon)
    return {
      "first answer": answered,
      "all ready": ready,
      "all ready: the daemon's time": time,
      "own memory": memory,
      "own memory after reads": after,
      ...reads,
      "bytes on the disk a rune": bytesOf(place) / runes
    }
  }
})

interface Left {
  /** The newest rune that the file of actors knows of, that is in a segment, and that there is; the oldest row. */
  readonly filed: number
  readonly sealed: number
  readonly newest: number
  readonly oldest: number
}

const leftIn = ({ state }: Place): Left | undefined => {
  const number = (file: string, sql: string): number => {
    const database = new DatabaseSync(join(state, file), { readOnly: true })
    try {
      return Number(Object.values(database.prepare(sql).get() ?? {})[0])
    } finally {
      database.close()
    }
  }
  try {
    return {
      filed: number("runes.db.index", "SELECT event_id FROM filed"),
      sealed: number("runes.db", "SELECT max(last) FROM segments"),
      newest: number("runes.db", "SELECT max(event_id) FROM runes"),
      oldest: number("runes.db", "SELECT min(event_id) FROM runes")
    }
  } catch {
    // a file in the making
    return undefined
  }
}

/** Runs a daemon until all that it does by and by is done: each rune is filed, and the oldest ones are in segments. */
const settled = async (subject: string, place: Place): Promise<ReadonlyArray<Row>> => {
  const { daemon } = await started(place)
  const client = new Client(place)
  const waits: Array<number> = []
  const [begin, before] = [performance.now(), cpuOf(daemon.pid!)]
  let filed: number | undefined
  let most = 0
  for (let isDone = false; !isDone;) {
    for (let n = 0; n < 20; n++) {
      const asked = performance.now()
      await client.ask("Status", null)
      waits.push(performance.now() - asked)
      await wait(50)
    }
    most = Math.max(most, ownMemory(daemon.pid!))
    const left = leftIn(place)
    if (left === undefined) continue
    if (left.filed >= left.newest - NEW) filed ??= performance.now() - begin
    isDone = filed !== undefined && left.newest - left.sealed < bounds.keep + bounds.least && left.oldest > left.sealed
  }
  const took = performance.now() - begin
  const busy = ((cpuOf(daemon.pid!) - before) / took) * 100
  client.close()
  await stopped(daemon)
  const row = (what: string, unit: string, figure: number): Row => {
    return { what: `while it settles: ${what}`, subject, unit, median: figure, samples: [figure], ratios: [1] }
  }
  return [
    row("until each rune is filed", "s", filed! / 1_000),
    row("until the oldest are in segments", "s", took / 1_000),
    row("the daemon's time", "%", busy),
    row("status, p50", "ms", quantile(waits, 0.5)),
    row("status, p99", "ms", quantile(waits, 0.99)),
    row("own memory, most", "MB", most)
  ]
}

export const bench: Bench = {
  name: "year",
  isLong: true,
  run: async () => {
    const [short, long] = [await historyOf(10_000), await historyOf(MANY)]
    const first = [...(await settled(SHORT, short)), ...(await settled(LONG, long))]
    return [
      ...first,
      ...(await interleave(measures, [subjectOf(SHORT, short, 10_000), subjectOf(LONG, long, MANY)], 3))
    ]
  },
  aims: [
    { what: "all ready", of: LONG, to: { subject: SHORT }, atMost: 1.3 },
    { what: "all ready: the daemon's time", of: LONG, to: { subject: SHORT }, atMost: 1.3 },
    { what: "own memory", of: LONG, to: { subject: SHORT }, atMost: 1.2 },
    ...READS.map(([what]) => ({ what: `${what}: the daemon's time`, of: LONG, atMost: 50 }))
  ]
}
