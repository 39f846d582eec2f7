/**
 * The actor figures: agentd's actors as they ship, under their supervisor, beside
 * a plain Effect Queue with a fiber, XState 5, and, where `erl` is on the path,
 * Erlang's gen_server under its supervisor.
 */
import { execFileSync } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Context, Deferred, Effect, Fiber, Layer, Queue, References } from "effect"
import { createActor, createMachine } from "xstate"
import * as DeadLetters from "../../src/event-actor/DeadLetters.ts"
import * as MachineActor from "../../src/event-actor/MachineActor.ts"
import * as ServerActor from "../../src/event-actor/ServerActor.ts"
import * as Supervisor from "../../src/supervision/Supervisor.ts"
import { define, to } from "../../src/event-actor/StateMachine.ts"
import { layerMemory } from "../../src/app/DaemonLog.ts"
import { EventLog } from "../../src/event-log/EventLog.ts"
import { type Bench, heap, interleave, isOnPath, type Measure, quantile, type Subject } from "./Bench.ts"

const ROUNDS = 5
const TELLS = 300_000
const ASKS = 100_000
const SPAWNS = 20_000
const CRASHES = 500
/** Restarts before those that count: a daemon that restarts anything has run for a while, and so has its code. */
const WARM_UP = 2_000
const LOOKS = 300

const measures: ReadonlyArray<Measure> = [
  { what: "tell", unit: "/s", better: "more" },
  { what: "tell, as an Effect", unit: "/s", better: "more" },
  { what: "ask", unit: "/s", better: "more" },
  { what: "ask, 64 askers", unit: "/s", better: "more" },
  { what: "spawn", unit: "/s", better: "more" },
  { what: "idle", unit: "bytes", better: "less" },
  { what: "restart p50", unit: "µs", better: "less" },
  { what: "restart p99", unit: "µs", better: "less" },
  { what: "bystander ask p99", unit: "µs", better: "less" },
  { what: "bystander told p99", unit: "µs", better: "less" }
]

const perSecond = (count: number, since: number) => (count * 1_000) / (performance.now() - since)

const spin = (turns: number) => {
  let sum = 0
  for (let n = 0; n < turns; n++) sum += n
  return sum
}

/** Latencies in µs of what is done `LOOKS` times, each after a little while. */
const latencies = Effect.fnUntraced(function* (look: Effect.Effect<unknown, unknown>) {
  const all: Array<number> = []
  for (let n = 0; n < LOOKS; n++) {
    yield* Effect.sleep(1)
    const since = performance.now()
    yield* look
    all.push((performance.now() - since) * 1_000)
  }
  return quantile(all, 0.99)
})

const asking = Effect.fnUntraced(function* (ask: Effect.Effect<unknown, unknown>) {
  const one = performance.now()
  for (let n = 0; n < ASKS; n++) yield* ask
  const sequential = perSecond(ASKS, one)
  const many = performance.now()
  yield* Effect.forEach(
    Array.from({ length: 64 }),
    () =>
      Effect.gen(function* () {
        for (let n = 0; n < ASKS / 64; n++) yield* ask
      }),
    { concurrency: "unbounded", discard: true }
  )
  return { ask: sequential, "ask, 64 askers": perSecond(ASKS, many) }
})

// --- agentd

type Message =
  | { readonly _tag: "Hello" }
  | { readonly _tag: "Crash" }
  | { readonly _tag: "Busy"; readonly self: ServerActor.ServerActor<number, Message, number> }
  | { readonly _tag: "Reply"; readonly to: Deferred.Deferred<void> }
const hello: Message = { _tag: "Hello" }
/** Made once: what an Error costs to make is not what a restart costs. */
const crash = new Error("crash")

const server = Effect.fnUntraced(function* (onInit: () => void) {
  return yield* ServerActor.kind<number, Message, number>({
    deadLetters: yield* DeadLetters.DeadLetters,
    capacity: TELLS + 1,
    init: () => {
      onInit()
      return 0
    },
    receive: (count, message) => {
      if (message._tag === "Crash") throw crash
      if (message._tag === "Busy") {
        spin(100)
        message.self.tellNow(message)
      } else if (message._tag === "Reply") Deferred.doneUnsafe(message.to, Effect.void)
      return count + 1
    },
    answer: (count) => count
  })
})

const dynamic = (name: string) =>
  Supervisor.make({ name, strategy: "dynamic", intensity: 1_000_000, period: "10 millis", backoff: "none" })

const ours = Effect.gen(function* () {
  let up: Deferred.Deferred<void> | undefined
  const kind = yield* server(() => {
    if (up !== undefined) Deferred.doneUnsafe(up, Effect.void)
  })
  const top = yield* dynamic("top")
  const spawn = Effect.fnUntraced(function* (address: string) {
    const actor = yield* kind.make(address)
    yield* top.startChild(actor)
    return actor
  })
  const actor = yield* spawn("bench/a")

  const told = performance.now()
  for (let n = 0; n < TELLS; n++) actor.tellNow(hello)
  yield* actor.ask(hello)
  const tell = perSecond(TELLS, told)

  const effects = performance.now()
  for (let n = 0; n < TELLS; n++) yield* actor.tell(hello)
  yield* actor.ask(hello)
  const tellEffect = perSecond(TELLS, effects)

  const asks = yield* asking(actor.ask(hello))

  const crashes: Array<number> = []
  for (let n = -WARM_UP; n < CRASHES; n++) {
    up = Deferred.makeUnsafe()
    const since = performance.now()
    yield* Effect.exit(actor.ask({ _tag: "Crash" }))
    yield* Deferred.await(up)
    if (n >= 0) crashes.push((performance.now() - since) * 1_000)
    yield* Effect.yieldNow
  }
  up = undefined

  for (let n = 0; n < 16; n++) {
    const busy = yield* spawn(`bench/busy/${n}`)
    for (let m = 0; m < 1_000; m++) busy.tellNow({ _tag: "Busy", self: busy })
  }
  const bystander = yield* latencies(actor.ask(hello))
  const toldBystander = yield* latencies(
    Effect.suspend(() => {
      const to = Deferred.makeUnsafe<void>()
      actor.tellNow({ _tag: "Reply", to })
      return Deferred.await(to)
    })
  )
  return {
    tell,
    "tell, as an Effect": tellEffect,
    ...asks,
    "restart p50": quantile(crashes, 0.5),
    "restart p99": quantile(crashes, 0.99),
    "bystander ask p99": bystander,
    "bystander told p99": toldBystander
  }
})

const oursSpawned = Effect.gen(function* () {
  const kind = yield* server(() => {})
  const top = yield* dynamic("top")
  const actors = Array.from<unknown>({ length: SPAWNS })
  const before = heap()
  const since = performance.now()
  for (let n = 0; n < SPAWNS; n++) {
    const actor = yield* kind.make(`bench/spawned/${n}`)
    yield* top.startChild(actor)
    actors[n] = actor
  }
  const spawn = perSecond(SPAWNS, since)
  const idle = (heap() - before) / SPAWNS
  return { spawn, idle: actors.length === SPAWNS ? idle : Number.NaN }
})

// --- agentd, a machine with its rune log

interface Hello {
  readonly _tag: "Hello"
}
const counter = define<"Up", Hello, number, never, "inbox.received">()({
  name: "counter",
  initial: "Up",
  final: [],
  rune: "inbox.received",
  guards: {},
  updates: { count: (count) => count + 1 },
  actions: {},
  timers: {},
  fields: {},
  states: { Up: {} },
  table: { Up: { Hello: to("Up", { set: "count" }) } }
})

const machine = Effect.gen(function* () {
  const kind = yield* MachineActor.kind({
    machine: counter,
    log: yield* EventLog,
    deadLetters: yield* DeadLetters.DeadLetters,
    perform: () => Effect.void,
    activities: {},
    capacity: TELLS
  })
  const top = yield* dynamic("top")
  const spawn = Effect.fnUntraced(function* (name: string) {
    const actor = yield* kind.make({
      address: `bench/counter/${name}`,
      actor: `counter/${name}`,
      stream: "bench",
      snapshot: MachineActor.start(counter, 0)
    })
    yield* top.startChild(actor)
    return actor
  })
  const actor = yield* spawn("a")
  const event: Hello = { _tag: "Hello" }
  const told = performance.now()
  for (let n = 0; n < TELLS / 10; n++) actor.tellNow(event)
  yield* actor.ask(event)
  const tell = perSecond(TELLS / 10, told)
  const asked = performance.now()
  for (let n = 0; n < ASKS / 20; n++) yield* actor.ask(event)
  const ask = perSecond(ASKS / 20, asked)
  const actors = Array.from<unknown>({ length: SPAWNS })
  const before = heap()
  const since = performance.now()
  for (let n = 0; n < SPAWNS; n++) actors[n] = yield* spawn(`${n}`)
  const spawned = perSecond(SPAWNS, since)
  const idle = (heap() - before) / SPAWNS
  return { tell, ask, spawn: spawned, idle: actors.length === SPAWNS ? idle : Number.NaN }
})

// --- a plain Effect Queue and a fiber

interface Mail {
  readonly reply: Deferred.Deferred<number> | undefined
  readonly busy: boolean
}
const plain: Mail = { reply: undefined, busy: false }

const queueActor = Effect.fnUntraced(function* () {
  const queue = yield* Queue.bounded<Mail>(TELLS + 1)
  let count = 0
  const fiber = yield* Effect.forkScoped(
    Effect.forever(
      Effect.map(Queue.takeAll(queue), (batch) => {
        for (const mail of batch) {
          count += 1
          if (mail.busy) {
            spin(100)
            Queue.offerUnsafe(queue, mail)
          }
          if (mail.reply !== undefined) Deferred.doneUnsafe(mail.reply, Effect.succeed(count))
        }
      })
    )
  )
  const ask = Effect.suspend(() => {
    const reply = Deferred.makeUnsafe<number>()
    return Effect.andThen(Queue.offer(queue, { reply, busy: false }), Deferred.await(reply))
  })
  return { queue, fiber, ask }
})

const queueAndFiber = Effect.gen(function* () {
  const { ask, queue } = yield* queueActor()
  const told = performance.now()
  for (let n = 0; n < TELLS; n++) Queue.offerUnsafe(queue, plain)
  yield* ask
  const tell = perSecond(TELLS, told)
  const effects = performance.now()
  for (let n = 0; n < TELLS; n++) yield* Queue.offer(queue, plain)
  yield* ask
  const tellEffect = perSecond(TELLS, effects)
  const asks = yield* asking(ask)
  for (let n = 0; n < 16; n++) {
    const busy = yield* queueActor()
    for (let m = 0; m < 1_000; m++) Queue.offerUnsafe(busy.queue, { reply: undefined, busy: true })
  }
  const bystander = yield* latencies(ask)
  return {
    tell,
    "tell, as an Effect": tellEffect,
    ...asks,
    "bystander ask p99": bystander,
    "bystander told p99": bystander
  }
})

const queueSpawned = Effect.gen(function* () {
  const actors = Array.from<unknown>({ length: SPAWNS })
  const before = heap()
  const since = performance.now()
  for (let n = 0; n < SPAWNS; n++) actors[n] = yield* queueActor()
  const spawn = perSecond(SPAWNS, since)
  yield* Effect.yieldNow
  yield* Effect.yieldNow
  const idle = (heap() - before) / SPAWNS
  return { spawn, idle: actors.length === SPAWNS ? idle : Number.NaN }
})

/** A fiber that starts the next one when one has crashed: the least that a restart can be. */
const queueRestarts = Effect.gen(function* () {
  const crashes: Array<number> = []
  const queue = yield* Queue.unbounded<void>()
  let up = Deferred.makeUnsafe<void>()
  const incarnation = Effect.suspend(() => {
    Deferred.doneUnsafe(up, Effect.void)
    return Effect.andThen(Queue.take(queue), Effect.die("crash"))
  })
  yield* Effect.forkScoped(Effect.forever(Effect.flatMap(Effect.forkChild(incarnation), Fiber.await)))
  for (let n = -WARM_UP; n < CRASHES; n++) {
    yield* Deferred.await(up)
    up = Deferred.makeUnsafe()
    const since = performance.now()
    Queue.offerUnsafe(queue, undefined)
    yield* Deferred.await(up)
    if (n >= 0) crashes.push((performance.now() - since) * 1_000)
  }
  return { "restart p50": quantile(crashes, 0.5), "restart p99": quantile(crashes, 0.99) }
})

// --- XState 5

const xstate = async () => {
  const definition = createMachine({
    id: "counter",
    initial: "up",
    context: { count: 0 },
    states: { up: { on: { Hello: { actions: ({ context }) => void (context.count += 1) } } } }
  })
  const actor = createActor(definition).start()
  const event = { type: "Hello" } as const
  const told = performance.now()
  for (let n = 0; n < TELLS / 10; n++) actor.send(event)
  const tell = perSecond(TELLS / 10, told)
  const asked = performance.now()
  let seen = 0
  for (let n = 0; n < TELLS / 10; n++) {
    actor.send(event)
    seen += actor.getSnapshot().context.count
  }
  const ask = perSecond(TELLS / 10, asked)
  const count = SPAWNS / 4
  const actors = Array.from<unknown>({ length: count })
  const before = heap()
  const since = performance.now()
  for (let n = 0; n < count; n++) actors[n] = createActor(definition).start()
  const spawn = perSecond(count, since)
  const idle = (heap() - before) / count
  return { tell, ask: seen > 0 ? ask : Number.NaN, spawn, idle: actors.length === count ? idle : Number.NaN }
}

// --- Erlang

const erlang = (): ReadonlyArray<Subject> => {
  if (!isOnPath("erl")) {
    console.log("erl is not on the path: no comparison with Erlang (Debian: apt install erlang-base)")
    return []
  }
  const folder = mkdtempSync(join(tmpdir(), "agentd-bench-"))
  execFileSync("erlc", ["-o", folder, join(import.meta.dirname, "erlang", "agentd_bench.erl")])
  process.once("exit", () => rmSync(folder, { recursive: true }))
  return [
    {
      subject: "Erlang gen_server",
      round: async () => {
        const output = execFileSync("erl", ["-noshell", "-pa", folder, "-s", "agentd_bench", "main"], {
          encoding: "utf8"
        })
        const lines = output.trim().split("\n")
        return Object.fromEntries(
          lines.map((line) => {
            const gap = line.lastIndexOf(" ")
            return [line.slice(0, gap), Number(line.slice(gap + 1))]
          })
        )
      }
    }
  ]
}

type Figures = { readonly [what: string]: number }
const services = Layer.merge(DeadLetters.layerMemory(), layerMemory)
const quiet = Context.make(References.MinimumLogLevel, "None" as const)

const subject = (
  name: string,
  ...parts: ReadonlyArray<
    Effect.Effect<Figures, unknown, DeadLetters.DeadLetters | EventLog | import("effect").Scope.Scope>
  >
): Subject => ({
  subject: name,
  round: async () => {
    let figures: Figures = {}
    for (const part of parts) {
      const more = await Effect.runPromise(
        part.pipe(Effect.scoped, Effect.provide(services, { local: true }), Effect.provide(quiet))
      )
      figures = { ...figures, ...more }
    }
    return figures
  }
})

export const bench: Bench = {
  name: "actor",
  run: () =>
    interleave(
      measures,
      [
        subject("agentd actor", ours, oursSpawned),
        ...erlang(),
        subject("Effect Queue + fiber", queueAndFiber, queueSpawned, queueRestarts),
        { subject: "XState 5", round: xstate },
        subject("agentd machine actor, log in memory", machine)
      ],
      ROUNDS
    )
}
