/**
 * TestLog: the log in memory as both of its sides see it, the service and the actors'
 * own, and forms of it that a test holds back or lets die.
 */
import { Context, Deferred, Effect, Latch, Layer } from "effect"
import { layer, layerMemory, type Options } from "../../../src/app/DaemonLog.ts"
import { EventLog, StorageError } from "../../../src/core/event-log/EventLog.ts"
import { Flight, Log, type Unit } from "../../../src/core/event-log/Log.ts"
import { Redact } from "../../../src/core/event-log/Redact.ts"
import type { Rune, RuneDraft } from "../../../src/core/event-log/Rune.ts"
import { until } from "./World.ts"

/** The service, with the log that actors append to. */
export type TestLog = EventLog["Service"] & { readonly core: Log }

const bothOf = (context: Context.Context<EventLog | Log>): TestLog => ({
  ...Context.get(context, EventLog),
  core: Context.get(context, Log)
})

export const memoryLog = Effect.map(Layer.build(Layer.fresh(layerMemory.pipe(Layer.provide(Redact.layer)))), bothOf)

/** On disk; it closes with the test's scope. */
export const openLog = (options: Options) =>
  Effect.map(Layer.build(Layer.fresh(layer(options).pipe(Layer.provide(Redact.layer)))), bothOf)

/** Copies the part of a log that holds, into a log of its own: as another daemon might have left it. */
export const copyOf = Effect.fnUntraced(function* (log: TestLog, holds: (rune: Rune) => boolean) {
  const copy = yield* memoryLog
  for (const rune of yield* log.tail({}, 100_000)) {
    const { actor, from, kind, moves, payload, stream, to, trigger } = rune
    if (holds(rune)) yield* copy.append([{ actor, from, kind, moves, payload, stream, to, trigger }])
  }
  return copy
})

/** The one that is provided. */
export const provided = Effect.map(Effect.context<EventLog | Log>(), bothOf)

type Held = { readonly unit: Unit } | { readonly run: () => void }

const gone = new StorageError({ message: "the daemon is gone", remedy: "", reason: "closed" })

/** A log between the actors and the one below; what it keeps back takes ids all the same. */
class Between implements Log {
  readonly flight = new Flight()
  protected readonly below: Log
  durable: number
  readonly units: Array<Unit> = []
  isOver = false

  constructor(below: Log) {
    this.below = below
    this.durable = below.durable
  }

  private get pending(): ReadonlyArray<Unit> {
    return this.units
  }
  get head(): number {
    return this.below.head + this.pending.reduce((sum, { runes }) => sum + runes.length, 0)
  }
  seqOf(stream: string): number {
    return (
      this.below.seqOf(stream) +
      this.pending.reduce((sum, { runes }) => sum + runes.filter((rune) => rune.stream === stream).length, 0)
    )
  }
  prepare(draft: RuneDraft): ReturnType<Log["prepare"]> {
    return this.below.prepare(draft)
  }
  refuses(unit: Unit): ReturnType<Log["refuses"]> {
    return this.pending.length > 0 ? undefined : this.below.refuses(unit)
  }
  share(): number {
    return Number.MAX_SAFE_INTEGER
  }
  append(unit: Unit): boolean {
    const isDurable = this.below.append(unit)
    this.durable = this.below.head
    return isDurable
  }

  /** Nothing that is on its way becomes durable any more, and nothing more is taken. */
  end(): void {
    this.isOver = true
    this.units.length = 0
    this.flight.fail(gone)
  }

  /** Keeps a unit on its way, for as long as the test likes. */
  protected keep(unit: Unit): false {
    if (this.isOver) throw gone
    this.flight.push(unit)
    this.units.push(unit)
    return false
  }

  /** The oldest becomes durable. */
  protected land(): void {
    const unit = this.units.shift()!
    this.flight.shift()
    this.below.append(unit)
    this.durable = this.below.head
    unit.owner.durable(unit)
    this.flight.passed(this.durable)
  }
}

/** The kinds of what is kept back. */
class Holding extends Between {
  held: (rune: Pick<RuneDraft, "kind" | "actor" | "trigger">) => boolean = () => false
  caught = 0
  private readonly waiting: Array<Held> = []

  override append(unit: Unit): boolean {
    if (this.isOver) throw gone
    const isHeld = unit.runes.some((rune) => this.held(rune))
    if (isHeld) this.caught += 1
    if (!isHeld && this.waiting.length === 0) return super.append(unit)
    this.waiting.push({ unit })
    return this.keep(unit)
  }

  /** Puts an effect that is no actor's in the same line. */
  inLine<A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E> {
    return Effect.suspend(() => {
      if (this.isOver) return Effect.die(gone)
      if (this.waiting.length === 0) return effect
      const turn = Deferred.makeUnsafe<void>()
      this.waiting.push({ run: () => Deferred.doneUnsafe(turn, Effect.void) })
      return Effect.andThen(
        Deferred.await(turn),
        Effect.suspend(() => (this.isOver ? Effect.die(gone) : effect))
      )
    })
  }

  die(): void {
    this.held = () => false
    const { waiting } = this
    this.end()
    for (const next of waiting.splice(0)) if ("run" in next) next.run()
  }

  rise(): void {
    this.isOver = false
  }

  free(): void {
    this.held = () => false
    for (let next = this.waiting.shift(); next !== undefined; next = this.waiting.shift()) {
      if ("unit" in next) this.land()
      else next.run()
    }
  }
}

/** The log; appends of runes that are `held` wait for `free`, and so does what comes behind them. */
export const holding = (log: TestLog) => {
  const core = new Holding(log.core)
  const death = Latch.makeUnsafe(false)
  return {
    log: {
      ...log,
      core,
      append: (drafts) => core.inLine(log.append(drafts)),
      appendLazy: (drafts) => core.inLine(log.appendLazy(drafts))
    } satisfies TestLog as TestLog,
    hold: (held: Holding["held"]) => {
      core.caught = 0
      core.held = held
    },
    /** Something waits. */
    caught: until(
      Effect.sync(() => core.caught),
      (count) => count > 0
    ),
    free: Effect.sync(() => core.free()),
    /** Ends the daemon's writing, of waiting units, too. */
    die: Effect.sync(() => {
      core.die()
      death.openUnsafe()
    }),
    dead: death.await,
    /** The next daemon writes again, from what was durable. */
    reborn: Effect.sync(() => core.rise())
  }
}

class Mortal extends Between {
  count = 0
  private readonly last: number
  private readonly isHeard: boolean
  private readonly died: () => void

  constructor(below: Log, last: number, isHeard: boolean, died: () => void) {
    super(below)
    this.last = last
    this.isHeard = isHeard
    this.died = died
  }

  /** Whether one more is written. */
  next(): "written" | "last" | "lost" {
    this.count += 1
    return this.count < this.last ? "written" : this.count === this.last ? "last" : "lost"
  }

  override append(unit: Unit): boolean {
    const which = this.next()
    if (which === "written") return super.append(unit)
    if (which === "lost") return this.keep(unit)
    this.below.append(unit)
    this.died()
    if (this.isHeard) {
      this.durable = this.below.head
      return true
    }
    this.flight.push(unit)
    return false
  }
}

/** A log on which a daemon dies: the n-th append is the last one; `heard`: it is still told of. */
export const mortal = Effect.fnUntraced(function* (log: TestLog, n: number, heard: boolean) {
  const dead = yield* Deferred.make<void>()
  const buried = yield* Deferred.make<never, StorageError>()
  const core = new Mortal(log.core, n, heard, () => Deferred.doneUnsafe(dead, Effect.void))
  const append: EventLog["Service"]["append"] = (drafts) =>
    Effect.suspend(() => {
      const which = core.next()
      if (which === "written") return log.append(drafts)
      if (which === "lost") return Deferred.await(buried)
      const last = Effect.tap(log.append(drafts), () => Deferred.succeed(dead, undefined))
      return heard ? last : Effect.andThen(last, Deferred.await(buried))
    })
  const appendLazy: EventLog["Service"]["appendLazy"] = (drafts) =>
    Effect.suspend(() => (core.count >= n ? Effect.void : log.appendLazy(drafts)))
  return {
    log: { ...log, core, append, appendLazy } satisfies TestLog as TestLog,
    dead: Deferred.await(dead),
    bury: Effect.andThen(
      Deferred.fail(buried, gone),
      Effect.sync(() => core.end())
    ),
    count: () => core.count
  }
})
