/**
 * Bench of time: the real daemon over a log of 10,000 runes and one of many more: its start, its memory, what the
 * disk holds, and what `why`, `log` and `runs` take of it. Runs where it is named: 1 million runes, or so many as
 * `RUNES` says (`RUNES=10000000` is a year of a busy agent; to make it takes minutes and 7 GB). With
 * `HISTORIES=FOLDER` the logs are made once.
 */
import { existsSync, readdirSync, statSync } from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { setTimeout as wait } from "node:timers/promises"
import { type Bench, interleave, type Measure } from "./Bench.ts"
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
  { what: "own memory", unit: "MB", better: "less" },
  ...READS.map(([what]): Measure => ({ what: `${what}: the daemon's time`, unit: "ms", better: "less" })),
  { what: "bytes on the disk a rune", unit: "B", better: "less" }
]

const bytesOf = ({ state }: Place): number => {
  const folder = join(state, "segments")
  const segments = existsSync(folder) ? readdirSync(folder).map((name) => join("segments", name)) : []
  return ["runes.db", "runes.db-wal", "runes.db.index", "runes.db.actors", ...segments]
    .map((name) => statSync(join(state, name), { throwIfNoEntry: false })?.size ?? 0)
    .reduce((sum, bytes) => sum + bytes, 0)
}

/** Once for what is compiled, once for the figure. */
const TIMES = 20

const subjectOf = (subject: string, place: Place, runes: number) => ({
  subject,
  round: async () => {
    const { answered, daemon, ready } = await started(place)
    const memory = ownMemory(daemon.pid!)
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
    await stopped(daemon)
    return {
      "first answer": answered,
      "all ready": ready,
      "own memory": memory,
      ...reads,
      "bytes on the disk a rune": bytesOf(place) / runes
    }
  }
})

/** Runs a daemon until all that it does by and by is done: the oldest runes are in segments, and each is filed. */
const settled = async (place: Place, runes: number): Promise<void> => {
  const { daemon } = await started(place)
  const placeIn = () => {
    try {
      const actors = new DatabaseSync(join(place.state, "runes.db.actors"), { readOnly: true })
      const row = actors.prepare("SELECT event_id AS place FROM place").get()
      actors.close()
      return Number(row?.["place"] ?? 0)
    } catch {
      // in the making
      return 0
    }
  }
  while (placeIn() < runes) await wait(500)
  await stopped(daemon)
}

export const bench: Bench = {
  name: "year",
  isLong: true,
  run: async () => {
    const [short, long] = [await historyOf(10_000), await historyOf(MANY)]
    await settled(short, 10_000)
    await settled(long, MANY)
    return interleave(measures, [subjectOf(SHORT, short, 10_000), subjectOf(LONG, long, MANY)], 3)
  },
  aims: [
    { what: "all ready", of: LONG, to: { subject: SHORT }, atMost: 1.3 },
    { what: "own memory", of: LONG, to: { subject: SHORT }, atMost: 1.2 },
    ...READS.map(([what]) => ({ what: `${what}: the daemon's time`, of: LONG, atMost: 50 }))
  ]
}
