/**
 * Bench of what the daemon's figures cost: processor time of a message, from its receipt to the end of
 * the turn that carried it, with the figures' subscriber and without it, in alternating slices of one process,
 * over the daemon's log on a disk. Beside that, what one rune costs the subscriber alone.
 */
import { Context, Effect, Layer, Metric, Queue } from "effect"
import { rmSync } from "node:fs"
import { join } from "node:path"
import { EventLog } from "../../src/core/event-log/EventLog.ts"
import type { Rune } from "../../src/core/event-log/Rune.ts"
import { Meters } from "../../src/telemetry/Meters.ts"
import * as Telemetry from "../../src/telemetry/Telemetry.ts"
import { make } from "../../test/world/agents/AgentWorld.ts"
import { openLog } from "../../test/world/agents/TestLog.ts"
import { type Aim, type Bench, folder, median, type Row } from "./Bench.ts"
import { run } from "./Scopes.ts"

const SLICES = 80
/** Messages of a slice. */
const MESSAGES = 30
const TURNS = (SLICES + 1) * 2 * MESSAGES

const WITH = "with figures"
const WITHOUT = "without"

const turn = { steps: [{ usage: { inputTokens: 9, outputTokens: 1 } }, { say: "ok" }] }

/** µs of processor, of all threads. */
const busy = (): number => {
  const { system, user } = process.cpuUsage()
  return system + user
}

const measured = Effect.fnUntraced(function* (folder: string) {
  const log = yield* openLog({ file: join(folder, "runes.db") })
  const world = yield* make(
    Array.from({ length: TURNS }, () => turn),
    {},
    { log }
  )
  const figures = Layer.build(
    Telemetry.layer({ collector: undefined, tree: Effect.succeed([]) }).pipe(
      Layer.provide(Layer.succeed(EventLog, log))
    )
  )
  // the world keeps a list of its turns' beginnings and ends: heard of here as they come
  const ends = yield* Queue.unbounded<string>()
  world.turns.push = (...told) => {
    for (const one of told) if (one.startsWith("completed")) Queue.offerUnsafe(ends, one)
    return 0
  }
  const slice = Effect.gen(function* () {
    const before = busy()
    for (let n = 0; n < MESSAGES; n++) {
      yield* world.tree.send("work", "queue", { by: "ada", config: null })
      yield* Queue.take(ends)
    }
    return (busy() - before) / MESSAGES
  })
  const samples = { [WITH]: new Array<number>(), [WITHOUT]: new Array<number>() }
  for (let n = -1; n < SLICES; n++) {
    const pair = [
      [WITH, Effect.scoped(Effect.andThen(figures, slice))],
      [WITHOUT, slice]
    ] as const
    for (const [subject, one] of n % 2 === 0 ? pair : pair.toReversed()) {
      const figure = yield* one
      if (n >= 0) samples[subject].push(figure)
    }
  }
  return { samples, runes: yield* log.tail({}, 10_000) }
})

/** µs of processor that the figures of one rune take. */
const alone = (runes: ReadonlyArray<Rune>): number => {
  const meters = new Meters(Context.make(Metric.MetricRegistry, new Map()))
  const before = busy()
  for (let n = 0; n < 20; n++) meters.takeAll(runes, { now: 0, looked: 0 })
  return (busy() - before) / (20 * runes.length)
}

/** `ours`: the figures of the same slices with what is measured. */
const row = (what: string, subject: string, samples: ReadonlyArray<number>, ours = samples): Row => ({
  what,
  subject,
  unit: "µs",
  median: median(samples),
  samples,
  ratios: samples.map((sample, n) => sample / ours[n]!)
})

const aims: ReadonlyArray<Aim> = [{ what: "processor of a message", of: WITH, to: { subject: WITHOUT }, atMost: 1.03 }]

export const bench: Bench = {
  name: "metrics",
  aims,
  run: async () => {
    const at = folder()
    try {
      const { runes, samples } = await run(measured(at))
      return [
        row("processor of a message", WITH, samples[WITH]),
        row("processor of a message", WITHOUT, samples[WITHOUT], samples[WITH]),
        row(
          "processor of a rune",
          "the figures alone",
          Array.from({ length: 9 }, () => alone(runes))
        )
      ]
    } finally {
      rmSync(at, { recursive: true, force: true })
    }
  }
}
