/**
 * Bench of the core on the disk: the daemon's own log on its thread. A message is
 * answered when its rune is durable.
 *
 * Beside it Erlang's gen_statem that makes and hashes the same rune and is answered by a
 * disk_log that syncs in groups. `BENCH_FOLDER` names the disk that is to be measured.
 */
import type { CommitScope } from "../../src/core/event-actor/CommitScope.ts"
import { spawn as spawnProcess } from "node:child_process"
import { rmSync } from "node:fs"
import { join } from "node:path"
import { Effect, Layer, type Scope } from "effect"
import * as DaemonLog from "../../src/app/DaemonLog.ts"
import type { ActorSystem } from "../../src/core/event-actor/ActorSystem.ts"
import { Log, TOGETHER } from "../../src/core/event-log/Log.ts"
import { Redact } from "../../src/core/event-log/Redact.ts"
import {
  type Aim,
  type Bench,
  type Figures,
  folder,
  interleave,
  isOnPath,
  median,
  type Measure,
  perSecond,
  type Subject
} from "./Bench.ts"
import { counter, hello, table } from "./Counter.ts"
import { erlang } from "./Erlang.ts"
import { layer, looks, run, spawner } from "./Scopes.ts"

const ROUNDS = 3
const WARM_UP = 300
const TELLS = 20_000
const ASKS = 1_500
const ASKERS = 64
const ASKS_EACH = 300
const HOPS = 5_000
const HOT = 16
/** Messages that wait at each hot actor. */
const BUSY = 50
/** Asks under strace: some, and more, so that what opening and closing sync does not count. */
const FEW = 50
const MANY = 550

const OURS = "agentd scope"
const PEER = "gen_statem, disk_log"

const measures: ReadonlyArray<Measure> = [
  { what: "tell", unit: "/s", better: "more" },
  { what: "ask", unit: "/s", better: "more" },
  // a rate is of the mean, which the rest of a busy machine makes; half of the asks take no longer than this
  { what: "ask p50", unit: "µs", better: "less" },
  { what: "ask, 64 askers", unit: "/s", better: "more" },
  { what: "hop, ping-pong", unit: "/s", better: "more" },
  { what: "alone p50", unit: "µs", better: "less" },
  { what: "alone p99", unit: "µs", better: "less" },
  { what: "bystander p50", unit: "µs", better: "less" },
  { what: "bystander p99", unit: "µs", better: "less" },
  { what: "runes before a bystander, most", unit: "", better: "less" },
  { what: "fsync per ask", unit: "", better: "less" }
]

const aims: ReadonlyArray<Aim> = [
  { what: "tell", to: { subject: PEER }, atLeast: 0.7 },
  { what: "ask", to: { subject: PEER }, atLeast: 0.7 },
  // of a latency less is better
  { what: "ask p50", to: { subject: PEER }, atMost: 1 / 0.7 },
  { what: "ask, 64 askers", to: { subject: PEER }, atLeast: 0.7 },
  { what: "bystander p50", to: { subject: OURS, what: "alone p50" }, atMost: 2 },
  // a group takes more than may stand before it, so its rune is in the group after the one in flight
  { what: "runes before a bystander, most", atMost: TOGETHER },
  { what: "fsync per ask", atMost: 1.05 }
]

const messages = Effect.gen(function* () {
  const spawn = yield* spawner
  const actor = yield* spawn(table)
  for (let n = 0; n < WARM_UP; n++) yield* actor.ask(hello)
  const told = performance.now()
  for (let n = 0; n < TELLS; n++) actor.tellNow(hello)
  yield* actor.ask(hello)
  const tell = perSecond(TELLS, told)
  const times: Array<number> = []
  const asked = performance.now()
  for (let n = 0; n < ASKS; n++) {
    const since = performance.now()
    yield* actor.ask(hello)
    times.push((performance.now() - since) * 1_000)
  }
  const ask = perSecond(ASKS, asked)
  const all = yield* Effect.replicateEffect(spawn(table), ASKERS)
  const together = performance.now()
  yield* Effect.forEach(
    all,
    (one) =>
      Effect.gen(function* () {
        for (let n = 0; n < ASKS_EACH; n++) yield* one.ask(hello)
      }),
    { concurrency: "unbounded", discard: true }
  )
  return { tell, ask, "ask p50": median(times), "ask, 64 askers": perSecond(ASKERS * ASKS_EACH, together) }
})

const hops = Effect.gen(function* () {
  const spawn = yield* spawner
  const ring = yield* Effect.replicateEffect(spawn(counter), 2)
  const since = performance.now()
  yield* Effect.callback<void>((resume) => {
    ring[0]!.tellNow({ _tag: "Hop", left: HOPS, ring, end: () => resume(Effect.void) })
  })
  return { "hop, ping-pong": perSecond(HOPS, since) }
})

const bystander = Effect.gen(function* () {
  const log = yield* Log
  const spawn = yield* spawner
  const actor = yield* spawn(counter)
  const alone = yield* looks(actor.ask(hello))
  const hot = yield* Effect.replicateEffect(spawn(counter), HOT)
  for (const one of hot) for (let n = 0; n < BUSY; n++) one.tellNow({ _tag: "Busy" })
  let before = 0
  const counted = Effect.suspend(() => {
    before = Math.max(before, log.head - log.durable)
    return actor.ask(hello)
  })
  const beside = yield* looks(counted)
  for (const { scope } of hot) (scope as CommitScope).close()
  return {
    "alone p50": alone.p50,
    "alone p99": alone.p99,
    "bystander p50": beside.p50,
    "bystander p99": beside.p99,
    "runes before a bystander, most": before
  }
})

const makeFile = (disk: string) => {
  let count = 0
  return () => join(disk, `bench-${count++}.db`)
}

/** Syncs of a process that asks so many times. */
const syncs = (file: string, count: number): Promise<number> =>
  new Promise((resolve, reject) => {
    const args = ["-f", "-qq", "-e", "trace=fsync,fdatasync", process.execPath]
    const child = spawnProcess("strace", [...args, join(import.meta.dirname, "Asks.ts"), file, `${count}`], {
      stdio: ["ignore", "ignore", "pipe"]
    })
    let said = ""
    child.stderr.setEncoding("utf8").on("data", (text: string) => (said += text))
    child.on("error", reject)
    child.on("close", () => resolve(said.split("\n").filter((line) => /\bf(data)?sync\(/.test(line)).length))
  })

const ours = (disk: string): Subject => {
  const next = makeFile(disk)
  const hasStrace = isOnPath("strace")
  if (!hasStrace) console.log("strace is not on the path: syncs are not counted (Debian: apt install strace)")
  type Part = Effect.Effect<Figures, unknown, ActorSystem | Log | Scope.Scope>
  const parts: ReadonlyArray<Part> = [messages, hops, bystander]
  return {
    subject: OURS,
    round: async () => {
      let figures: Figures = {}
      for (const part of parts) {
        const log = DaemonLog.layer({ file: next() }).pipe(Layer.provide(Redact.layer))
        const more = await run(Effect.provide(part, Layer.provideMerge(layer, log), { local: true }))
        figures = { ...figures, ...more }
      }
      if (!hasStrace) return figures
      const file = next()
      const few = await syncs(file, FEW)
      return { ...figures, "fsync per ask": ((await syncs(file, MANY)) - few) / (MANY - FEW) }
    }
  }
}

export const bench: Bench = {
  name: "durable",
  aims,
  run: async () => {
    const disk = folder()
    const peers = erlang([{ subject: PEER, measures: "durable", file: join(disk, "peer.log") }])
    const rows = await interleave(measures, [ours(disk), ...peers], ROUNDS)
    rmSync(disk, { recursive: true })
    return rows
  }
}
