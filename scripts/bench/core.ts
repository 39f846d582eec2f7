/**
 * Bench of the core in memory: the event-sourced actors that the daemon is made of, in
 * commit scopes, under the daemon's own supervisor, over a log that makes each hash at
 * once, with the daemon's kinds, invariants and redaction. Tell, ask, spawn, idle bytes and restart are those of a table machine.
 *
 * Beside them: Erlang's gen_statem that makes, hashes and stores the same rune, a bare
 * one (its spawn and its restart are those of OTP's supervisor), and Effect's Queue with
 * a fiber, which writes nothing either.
 */
import type { CommitScope } from "../../src/core/event-actor/CommitScope.ts"
import { Deferred, Effect, Fiber, Layer, Queue } from "effect"
import type { EventSourcedActor } from "../../src/core/event-actor/EventSourcedActor.ts"
import type { Member } from "../../src/core/event-actor/Member.ts"
import {
  type Aim,
  type Bench,
  type Figures,
  heap,
  interleave,
  type Measure,
  perSecond,
  quantile,
  type Subject
} from "./Bench.ts"
import { counter, hello, type Message, running, table } from "./Counter.ts"
import { erlang } from "./Erlang.ts"
import * as HashingLog from "./HashingLog.ts"
import { type Core, layer, looks, run, spawner } from "./Scopes.ts"

const ROUNDS = 5
const TELLS = 100_000
const ASKS = 50_000
const SPAWNS = 50_000
const CRASHES = 1_500
/** Restarts before those that count: a daemon that restarts anything has run for a while, and so has its code. */
const WARM_UP = 500
const HOT = 16
/** Messages that wait at each hot actor. */
const BUSY = 50

const measures: ReadonlyArray<Measure> = [
  { what: "tell", unit: "/s", better: "more" },
  { what: "ask", unit: "/s", better: "more" },
  { what: "hop, ping-pong", unit: "/s", better: "more" },
  { what: "hop, ring of 1,000", unit: "/s", better: "more" },
  { what: "bystander ask p50", unit: "µs", better: "less" },
  { what: "bystander ask p99", unit: "µs", better: "less" },
  { what: "spawn", unit: "/s", better: "more" },
  { what: "idle", unit: "bytes", better: "less" },
  { what: "restart p50", unit: "µs", better: "less" },
  { what: "restart p99", unit: "µs", better: "less" }
]

const OURS = "scope that runs nothing"
const FIBER = "scope with a fiber"
const RUNE = "gen_statem, same rune"
const BARE = "gen_statem, bare"

const aims: ReadonlyArray<Aim> = [
  { what: "tell", to: { subject: RUNE }, atLeast: 2 },
  { what: "ask", to: { subject: RUNE }, atLeast: 1.3 },
  { what: "hop, ping-pong", to: { subject: RUNE }, atLeast: 1.3 },
  { what: "hop, ring of 1,000", to: { subject: RUNE }, atLeast: 1.3 },
  { what: "ask", to: { subject: BARE }, atLeast: 0.3 },
  { what: "hop, ping-pong", to: { subject: BARE, what: "ask" }, atLeast: 0.3 },
  { what: "bystander ask p99", to: { subject: RUNE }, atMost: 0.2 },
  { what: "spawn", to: { subject: BARE }, atLeast: 10 },
  { what: "restart p50", to: { subject: BARE }, atMost: 0.3 },
  { what: "idle", atMost: 400 }
]

// --- agentd

const messages = <S, M, A>(definition: EventSourcedActor<S, M, A>, message: M): Core<Figures> =>
  Effect.gen(function* () {
    const spawn = yield* spawner
    const actor = yield* spawn(definition)
    const told = performance.now()
    for (let n = 0; n < TELLS; n++) actor.tellNow(message)
    yield* actor.ask(message)
    const tell = perSecond(TELLS, told)
    const asked = performance.now()
    for (let n = 0; n < ASKS; n++) yield* actor.ask(message)
    return { tell, ask: perSecond(ASKS, asked) }
  })

const hops = (what: string, count: number): Core<Figures> =>
  Effect.gen(function* () {
    const spawn = yield* spawner
    const ring = yield* Effect.replicateEffect(spawn(counter), count)
    const since = performance.now()
    yield* Effect.callback<void>((resume) => {
      ring[0]!.tellNow({ _tag: "Hop", left: TELLS, ring, end: () => resume(Effect.void) })
    })
    return { [what]: perSecond(TELLS, since) }
  })

const seen = ({ p50, p99 }: { readonly p50: number; readonly p99: number }): Figures => ({
  "bystander ask p50": p50,
  "bystander ask p99": p99
})

const bystander: Core<Figures> = Effect.gen(function* () {
  const spawn = yield* spawner
  const hot = yield* Effect.replicateEffect(spawn(counter), HOT)
  for (const actor of hot) for (let n = 0; n < BUSY; n++) actor.tellNow({ _tag: "Busy" })
  const actor = yield* spawn(counter)
  const figures = seen(yield* looks(actor.ask(hello)))
  for (const { scope } of hot) (scope as CommitScope).close()
  return figures
})

const spawns = <S, M, A>(definition: EventSourcedActor<S, M, A>): Core<Figures> =>
  Effect.gen(function* () {
    const spawn = yield* spawner
    const actors = Array.from<unknown>({ length: SPAWNS })
    const before = heap()
    const since = performance.now()
    for (let n = 0; n < SPAWNS; n++) actors[n] = yield* spawn(definition)
    const rate = perSecond(SPAWNS, since)
    const idle = (heap() - before) / SPAWNS
    return { spawn: rate, idle: actors.length === SPAWNS ? idle : Number.NaN }
  })

/** From the message that crashes it until its next incarnation runs. */
const restarts = (definition: typeof counter): Core<Figures> =>
  Effect.gen(function* () {
    const spawn = yield* spawner
    let up = Deferred.makeUnsafe<void>()
    const timers = () => {
      Deferred.doneUnsafe(up, Effect.void)
      return []
    }
    const actor: Member<number, Message> = yield* spawn({ ...definition, timers })
    const all: Array<number> = []
    for (let n = -WARM_UP; n < CRASHES; n++) {
      yield* Effect.yieldNow
      up = Deferred.makeUnsafe()
      const since = performance.now()
      actor.tellNow({ _tag: "Crash" })
      yield* Deferred.await(up)
      if (n >= 0) all.push((performance.now() - since) * 1_000)
    }
    return { "restart p50": quantile(all, 0.5), "restart p99": quantile(all, 0.99) }
  })

// --- a plain Effect Queue and a fiber

interface Mail {
  readonly reply?: Deferred.Deferred<number>
  readonly isBusy?: boolean
  readonly hop?: { readonly left: number; readonly ring: ReadonlyArray<Queue.Queue<Mail>>; readonly end: () => void }
}

const spin = (turns: number) => {
  let sum = 0
  for (let n = 0; n < turns; n++) sum += n
  return sum
}

const queueActor = Effect.fnUntraced(function* () {
  const queue = yield* Queue.unbounded<Mail>()
  let count = 0
  const fiber = yield* Effect.forkScoped(
    Effect.forever(
      Effect.map(Queue.takeAll(queue), (batch) => {
        for (const { hop, isBusy, reply } of batch) {
          count += 1
          if (isBusy === true) {
            spin(100)
            Queue.offerUnsafe(queue, { isBusy })
          }
          if (reply !== undefined) Deferred.doneUnsafe(reply, Effect.succeed(count))
          if (hop?.left === 0) hop.end()
          else if (hop !== undefined) {
            Queue.offerUnsafe(hop.ring[hop.left % hop.ring.length]!, { hop: { ...hop, left: hop.left - 1 } })
          }
        }
      })
    )
  )
  const ask = Effect.suspend(() => {
    const reply = Deferred.makeUnsafe<number>()
    return Effect.andThen(Queue.offer(queue, { reply }), Deferred.await(reply))
  })
  return { queue, fiber, ask }
})

const queueMessages = Effect.gen(function* () {
  const { ask, queue } = yield* queueActor()
  const plain: Mail = {}
  const told = performance.now()
  for (let n = 0; n < TELLS; n++) Queue.offerUnsafe(queue, plain)
  yield* ask
  const tell = perSecond(TELLS, told)
  const asked = performance.now()
  for (let n = 0; n < ASKS; n++) yield* ask
  return { tell, ask: perSecond(ASKS, asked) }
})

const queueHops = (what: string, count: number) =>
  Effect.gen(function* () {
    const ring = (yield* Effect.replicateEffect(queueActor(), count)).map(({ queue }) => queue)
    const since = performance.now()
    yield* Effect.callback<void>((resume) => {
      Queue.offerUnsafe(ring[0]!, { hop: { left: TELLS, ring, end: () => resume(Effect.void) } })
    })
    return { [what]: perSecond(TELLS, since) }
  })

const queueBystander = Effect.gen(function* () {
  for (let n = 0; n < HOT; n++) {
    const { queue } = yield* queueActor()
    for (let m = 0; m < BUSY; m++) Queue.offerUnsafe(queue, { isBusy: true })
  }
  const { ask } = yield* queueActor()
  return seen(yield* looks(ask))
})

const queueSpawns = Effect.gen(function* () {
  const actors = Array.from<unknown>({ length: SPAWNS / 5 })
  const before = heap()
  const since = performance.now()
  for (let n = 0; n < actors.length; n++) actors[n] = yield* queueActor()
  const spawn = perSecond(actors.length, since)
  yield* Effect.yieldNow
  yield* Effect.yieldNow
  return { spawn, idle: (heap() - before) / actors.length }
})

/** A fiber that starts the next one when one has crashed: the least that a restart can be. */
const queueRestarts = Effect.gen(function* () {
  const all: Array<number> = []
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
    if (n >= 0) all.push((performance.now() - since) * 1_000)
  }
  return { "restart p50": quantile(all, 0.5), "restart p99": quantile(all, 0.99) }
})

// --- in turns

/** A system of its own for each part, over an empty log. */
const subject = (name: string, ...parts: ReadonlyArray<Core<Figures>>): Subject => ({
  subject: name,
  round: async () => {
    let figures: Figures = {}
    for (const part of parts) {
      const over = Layer.provide(layer, HashingLog.layer)
      figures = { ...figures, ...(await run(Effect.provide(part, over, { local: true }))) }
    }
    return figures
  }
})

const ours = subject(
  OURS,
  messages(table, hello),
  hops("hop, ping-pong", 2),
  hops("hop, ring of 1,000", 1_000),
  bystander,
  spawns(table),
  restarts(counter)
)

const withFiber = subject(FIBER, messages(running, hello), spawns(running), restarts(running))

const queueAndFiber = subject(
  "Effect Queue + fiber",
  queueMessages,
  queueHops("hop, ping-pong", 2),
  queueHops("hop, ring of 1,000", 1_000),
  queueBystander,
  queueSpawns,
  queueRestarts
)

export const bench: Bench = {
  name: "core",
  aims,
  run: () =>
    interleave(
      measures,
      [
        ours,
        withFiber,
        ...erlang([
          { subject: RUNE, measures: "rune" },
          { subject: BARE, measures: "bare" }
        ]),
        queueAndFiber
      ],
      ROUNDS
    )
}
