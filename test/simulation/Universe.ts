/**
 * Universe: virtual time, and all that is ready to happen at the present moment.
 *
 * One thread of control: what is ready is taken one by one in an order that the seed
 * decides; when nothing is, time jumps to the next timer. Nothing here waits for the
 * real clock, the event loop or a promise.
 *
 * A `Life` is one process of the daemon: fibers run in it by its scheduler, clock and
 * chance. When it is killed nothing of it runs again, not even a finalizer: that is
 * kill -9, and not the closing of a scope.
 */
import { createHash } from "node:crypto"
import { Cause, Clock, Context, Duration, Effect, type Exit, Logger, Random, Scheduler } from "effect"
import type { EventLoopShape } from "../../src/core/event-actor/EventLoop.ts"
import { NextTick } from "../../src/core/event-log/NextTick.ts"
import { Chance } from "./Chance.ts"

interface Ready {
  readonly life: Life | undefined
  readonly run: () => void
}

interface Timer {
  readonly at: number
  readonly tie: number
  readonly life: Life | undefined
  run: (() => void) | undefined
}

/** In which order what is ready at the same moment goes. */
export type Order =
  /** As the event loop does it: first in, first out. */
  | "fifo"
  /** Any of them: whatever the code relies on beyond what Effect promises is found. */
  | "any"

/** So many steps without time going on are a loop that never ends. */
const MAX_STEPS_AT_ONCE = 2_000_000

export class Stuck extends Error {}
/** Asked for: no bug. */
export class Halted extends Error {}

export class Universe {
  /** ms since the beginning. */
  now = 0
  steps = 0
  readonly order: Order
  private readonly chance: Chance
  private ready: Array<Ready> = []
  private head = 0
  /** Tasks that go on as soon as the stack is free. */
  private micro: Array<Ready> = []
  private ties = 0
  private readonly timers: Array<Timer> = []
  private stepsAtOnce = 0
  private readonly digest = createHash("sha256")
  readonly lines: Array<string> = []
  tracing = false
  /** The step at which the world ends. */
  haltAt = Number.POSITIVE_INFINITY

  constructor(seed: number, order: Order) {
    this.order = order
    this.chance = new Chance(seed, "order")
  }

  /** Notes an event in the digest: two runs are alike when it is. */
  note(what: string, hidden = ""): void {
    const line = `${this.now.toFixed(3)} ${this.steps} ${what}`
    this.digest.update(line)
    if (hidden !== "") this.digest.update(hidden)
    if (this.tracing) this.lines.push(line)
  }

  get hash(): string {
    return this.digest.copy().update(`${this.steps} ${this.chance.drawn}`).digest("hex").slice(0, 16)
  }

  soon(run: () => void, life?: Life): void {
    this.ready.push({ life, run })
  }

  /** Before anything else that is ready. */
  atOnce(run: () => void, life: Life): void {
    this.micro.push({ life, run })
  }

  /** Runs in `ms`; the answer takes it back. */
  later(ms: number, run: () => void, life?: Life): () => void {
    const timer: Timer = {
      at: this.now + Math.max(0, ms),
      tie: this.order === "fifo" ? ++this.ties : this.chance.unit(),
      life,
      run
    }
    push(this.timers, timer)
    return () => void (timer.run = undefined)
  }
  /** False when nothing will ever happen again. */
  step(): boolean {
    const goesOn = this.next()
    for (let index = 0; index < this.micro.length; index++) {
      const { life, run } = this.micro[index]!
      if (life?.isDead !== true) run()
    }
    this.micro = []
    return goesOn
  }

  private next(): boolean {
    if (this.steps >= this.haltAt) {
      // oxlint-disable-next-line no-debugger -- what `--until` is for
      debugger
      throw new Halted("the step that was asked for")
    }
    const next = this.take()
    if (next !== undefined) {
      if (++this.stepsAtOnce > MAX_STEPS_AT_ONCE) throw new Stuck("time stands still")
      this.steps += 1
      next.run()
      return true
    }
    for (;;) {
      const timer = pop(this.timers)
      if (timer === undefined) return false
      if (timer.run === undefined || timer.life?.isDead === true) continue
      if (timer.at > this.now) this.stepsAtOnce = 0
      this.now = timer.at
      this.steps += 1
      timer.run()
      return true
    }
  }

  private take(): Ready | undefined {
    while (this.head < this.ready.length) {
      const index = this.order === "fifo" ? this.head : this.head + this.chance.below(this.ready.length - this.head)
      const next = this.ready[index]!
      this.ready[index] = this.ready[this.head]!
      this.head += 1
      if (this.head > 1024) {
        this.ready = this.ready.slice(this.head)
        this.head = 0
      }
      if (next.life?.isDead !== true) return next
    }
    this.ready = []
    this.head = 0
    return undefined
  }

  /** Until it holds, or so many ms have gone by. */
  until(holds: () => boolean, within: number): boolean {
    const end = this.now + within
    while (!holds()) {
      if (this.now > end || !this.step()) return false
    }
    return true
  }

  runFor(ms: number): void {
    const end = this.now + ms
    // something happens then, whatever else does
    this.later(ms, () => {})
    while (this.now < end && this.step());
  }
}

const before = (a: Timer, b: Timer): boolean => a.at < b.at || (a.at === b.at && a.tie < b.tie)

const push = (heap: Array<Timer>, timer: Timer): void => {
  let index = heap.push(timer) - 1
  while (index > 0) {
    const parent = (index - 1) >> 1
    if (!before(timer, heap[parent]!)) break
    heap[index] = heap[parent]!
    index = parent
  }
  heap[index] = timer
}

const pop = (heap: Array<Timer>): Timer | undefined => {
  const top = heap[0]
  const last = heap.pop()
  if (last === undefined || top === last) return top
  let index = 0
  for (;;) {
    let child = 2 * index + 1
    if (child >= heap.length) break
    if (child + 1 < heap.length && before(heap[child + 1]!, heap[child]!)) child += 1
    if (!before(heap[child]!, last)) break
    heap[index] = heap[child]!
    index = child
  }
  heap[index] = last
  return top
}

/** Midnight of a day in 2026: what the wall clock shows at the beginning. */
export const EPOCH = 1_767_225_600_000

/** The difference of the wall clock to the time that has gone by: somebody may set it. */
export interface Wall {
  skew: number
}

export interface LifeOptions {
  readonly seed: number
  readonly number: number
  readonly wall: Wall
  /** Operations of a fiber before it lets others run. */
  readonly maxOps: number
  readonly onLog: (level: string, message: string) => void
}

export class Life {
  readonly universe: Universe
  readonly number: number
  isDead = false
  readonly context: Context.Context<never>

  constructor(universe: Universe, options: LifeOptions) {
    this.universe = universe
    this.number = options.number
    const chance = new Chance(options.seed, `life ${options.number}`)
    const logger = Logger.make(({ cause, logLevel, message }) => {
      const text = (Array.isArray(message) ? message : [message])
        .map((part) =>
          typeof part === "string"
            ? part
            : part instanceof Error
              ? `${part.name}: ${part.message}`
              : (JSON.stringify(part) ?? String(part))
        )
        .join(" ")
      options.onLog(logLevel, cause.reasons.length === 0 ? text : `${text} ${Cause.pretty(cause)}`)
    })
    this.context = Context.empty().pipe(
      Context.add(Scheduler.Scheduler, schedulerOf(this, options.maxOps)),
      Context.add(Clock.Clock, clockOf(this, options.wall)),
      Context.add(Random.Random, {
        nextDoubleUnsafe: () => chance.unit(),
        nextIntUnsafe: () => Math.floor((chance.unit() * 2 - 1) * Number.MAX_SAFE_INTEGER)
      }),
      Context.add(Logger.CurrentLoggers, new Set([logger])),
      Context.add(NextTick, (task: () => void) => universe.atOnce(task, this))
    ) as Context.Context<never>
  }

  kill(): void {
    this.isDead = true
  }

  /** Of the actors of this life. No step takes time here: slices are bounded by messages. */
  readonly loop: EventLoopShape = {
    soon: (task) => this.universe.atOnce(task, this),
    later: (task) => this.universe.soon(task, this),
    now: () => this.universe.now
  }

  /** In this life, from now on; `onExit` is told unless it dies first. */
  run<A, E>(effect: Effect.Effect<A, E>, onExit: (exit: Exit.Exit<A, E>) => void = () => {}): void {
    this.universe.soon(() => {
      Effect.runForkWith(this.context)(effect).addObserver((exit) => {
        if (!this.isDead) onExit(exit)
      })
    }, this)
  }
}

const schedulerOf = (life: Life, maxOps: number): Scheduler.Scheduler => ({
  executionMode: "async",
  shouldYield: (fiber) => fiber.currentOpCount >= maxOps,
  makeDispatcher: () => ({
    scheduleTask: (run) => life.universe.soon(run, life),
    flush: () => {
      throw new Error("a simulated life is never run synchronously")
    }
  })
})

const clockOf = (life: Life, wall: Wall): Clock.Clock => {
  const { universe } = life
  const born = universe.now
  const millis = () => Math.floor(EPOCH + universe.now + wall.skew)
  const nanos = () => BigInt(millis()) * 1_000_000n
  const monotonic = () => BigInt(Math.floor((universe.now - born) * 1e6)) + 1_000_000_000n
  return {
    currentTimeMillisUnsafe: millis,
    currentTimeMillis: Effect.sync(millis),
    currentTimeNanosUnsafe: nanos,
    currentTimeNanos: Effect.sync(nanos),
    monotonicTimeNanosUnsafe: monotonic,
    monotonicTimeNanos: Effect.sync(monotonic),
    sleep: (duration) => {
      const ms = Duration.toMillis(duration)
      if (ms <= 0) return Effect.yieldNow
      if (!Number.isFinite(ms)) return Effect.never
      return Effect.callback<void>((resume) => {
        const cancel = universe.later(ms, () => resume(Effect.void), life)
        return Effect.sync(cancel)
      })
    }
  }
}
