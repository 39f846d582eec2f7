/**
 * Lab: what the tests of commit scopes share: a log in memory, a log that becomes durable
 * when the test says so, a system around either, and a supervisor that restarts at once.
 */
import { Cause, Clock, Context, Effect, Exit } from "effect"
import { type Options, System } from "../../../src/core/event-actor/ActorSystem.ts"
import { CommitScope } from "../../../src/core/event-actor/CommitScope.ts"
import { type DeadLetter, DeadLetters } from "../../../src/core/event-actor/DeadLetters.ts"
import { EventLoop, type EventLoopShape, live } from "../../../src/core/event-actor/EventLoop.ts"
import type { ScopeIncarnation } from "../../../src/core/event-actor/ScopeIncarnation.ts"
import type { ScopeOptions } from "../../../src/core/event-actor/ScopeLifecycle.ts"
import type { RuneRefused } from "../../../src/core/event-log/EventLog.ts"
import { Flight, type Log, type Prepared, type Unit } from "../../../src/core/event-log/Log.ts"
import type { Payload, Rune, RuneDraft } from "../../../src/core/event-log/Rune.ts"
import { isPlainJson } from "../../../src/core/event-log/PlainJson.ts"
import type { ChildHandle, Hold } from "../../../src/core/supervision/Child.ts"
import { ending, restarts } from "../../../src/core/supervision/Restart.ts"

abstract class LabLog implements Log {
  head = 0
  abstract readonly durable: number
  abstract readonly flight: Flight | undefined
  /** The runes that are durable, as they are stored. */
  readonly kept: Array<Rune> = []
  /** The runes of each append that is durable. */
  readonly appends: Array<ReadonlyArray<Rune>> = []
  scrub: (json: string) => string = (json) => json
  guard: (unit: Unit) => RuneRefused | undefined = () => undefined
  protected readonly seqs = new Map<string, number>()

  seqOf(stream: string): number {
    return this.seqs.get(stream) ?? 0
  }

  prepare({ payload, visibility = "internal" }: RuneDraft): Prepared | RuneRefused {
    const said = JSON.stringify(payload)
    const text = this.scrub(said)
    const isExact = text === said && isPlainJson(payload)
    return { payload: isExact ? payload : (JSON.parse(text) as Payload), text, visibility }
  }

  refuses(unit: Unit): RuneRefused | undefined {
    return this.guard(unit)
  }

  abstract append(unit: Unit): boolean
  abstract share(ready: number): number

  protected take({ runes }: Unit): void {
    for (const { eventId, seq, stream } of runes) {
      if (eventId !== this.head + 1 || seq !== this.seqOf(stream) + 1) throw new Error(`${eventId} is out of order`)
      this.head = eventId
      this.seqs.set(stream, seq)
    }
  }

  protected keep({ runes, texts }: Unit): void {
    const stored = runes.map((rune, index) => ({ ...rune, payload: JSON.parse(texts[index]!) as Payload }))
    this.kept.push(...stored)
    this.appends.push(stored)
  }

  /** Where an earlier life of the process left it. */
  resume(runes: ReadonlyArray<Rune>): void {
    for (const rune of runes) {
      this.kept.push(rune)
      this.head = rune.eventId
      this.seqs.set(rune.stream, rune.seq)
    }
  }
}

/** Durable at once. */
export class MemoryLog extends LabLog {
  readonly flight = undefined
  /** An append for which this answers with an error fails with that error. */
  breaks: (unit: Unit) => unknown = () => undefined

  get durable(): number {
    return this.head
  }

  share(): number {
    return Number.MAX_SAFE_INTEGER
  }

  append(unit: Unit): boolean {
    const error = this.breaks(unit)
    if (error !== undefined) throw error
    this.take(unit)
    this.keep(unit)
    return true
  }
}

/** Durable when the test says so. */
export class HeldLog extends LabLog {
  durable = 0
  readonly flight = new Flight()
  private readonly most: number
  private units: Array<Unit> = []

  constructor(most = 100) {
    super()
    this.most = most
  }

  override resume(runes: ReadonlyArray<Rune>): void {
    super.resume(runes)
    this.durable = this.head
  }

  share(): number {
    return this.most
  }

  append(unit: Unit): boolean {
    this.take(unit)
    this.flight.push(unit)
    this.units.push(unit)
    return false
  }

  /** Appends on their way. */
  get waiting(): number {
    return this.units.length
  }

  /** The oldest become durable. */
  land(count = this.units.length): void {
    for (let n = 0; n < count; n++) {
      const unit = this.flight.shift()
      this.units.shift()
      this.keep(unit)
      this.durable = unit.runes.at(-1)!.eventId
      unit.owner.durable(unit)
    }
    this.flight.passed(this.durable)
  }

  /** The oldest is not taken. */
  break(error: unknown = new Error("disk")): void {
    this.units = []
    this.head = this.durable
    this.seqs.clear()
    for (const { seq, stream } of this.kept) this.seqs.set(stream, seq)
    this.flight.fail(error)
  }
}

export interface Lab<L extends Log> {
  readonly log: L
  readonly system: System
  readonly letters: Array<Omit<DeadLetter, "at">>
}

/** A system over the log; strict, so that every test holds states to immutable plain data. */
export const lab = <L extends Log>(
  log: L,
  options: Partial<Options> & { readonly loop?: EventLoopShape } = {},
  context: Context.Context<never> = Context.empty() as Context.Context<never>
): Lab<L> => {
  const letters: Array<Omit<DeadLetter, "at">> = []
  const deadLetters = DeadLetters.of({
    post: (letter) => void letters.push(letter),
    recent: Effect.sync(() => letters.map((letter) => ({ ...letter, at: 0 }))),
    counts: Effect.succeed({})
  })
  const services = Context.add(
    Context.add(context, DeadLetters, deadLetters),
    EventLoop,
    options.loop ?? live(Context.get(context, Clock.Clock))
  )
  return { log, letters, system: new System({ strict: true, ...options, log }, services) }
}

export const memory = (options: Partial<Options> = {}) => lab(new MemoryLog(), options)

/** Starts a scope as a supervisor with this context does; throws where the scope refuses. */
export const begin = (scope: CommitScope, context = Context.empty() as Context.Context<never>): ScopeIncarnation => {
  const hold: Hold = { supervisor: "lab", context, isOver: false, isAbandoned: false, onOver: () => {} }
  return scope.start(hold) as ScopeIncarnation
}

/** A supervisor that restarts on the very stack: the hardest one for a scope. */
export class Restarter {
  readonly handles = new Map<CommitScope, ChildHandle>()
  readonly crashes: Array<unknown> = []
  private readonly context: Context.Context<never>

  constructor(context: Context.Context<never> = Context.empty() as Context.Context<never>) {
    this.context = context
  }

  get restarts(): number {
    return this.crashes.length
  }

  startChild(scope: CommitScope): void {
    const handle = begin(scope, this.context)
    this.handles.set(scope, handle)
    handle.onExit({
      childExited: (exit) => {
        if (this.handles.get(scope) === handle) this.ended(scope, exit)
      }
    })
  }

  private ended(scope: CommitScope, exit: Exit.Exit<unknown, unknown>): void {
    this.handles.delete(scope)
    if (!restarts[scope.restart][ending(exit)] || Exit.hasInterrupts(exit)) return
    if (Exit.isFailure(exit)) this.crashes.push(Cause.squash(exit.cause))
    this.startChild(scope)
  }

  stopChild(scope: CommitScope): void {
    this.handles.get(scope)?.stop("shutdown")
  }

  /** As a supervisor does when the grace is over. */
  kill(scope: CommitScope): void {
    const handle = this.handles.get(scope)
    this.handles.delete(scope)
    handle?.stop("shutdown")
    handle?.stop("kill")
  }
}

export const scopeIn = (system: System, stream: string, options: Partial<ScopeOptions> = {}): CommitScope =>
  new CommitScope(system, { id: stream, stream, ...options })

/** Until nothing more happens by itself. */
export const quiet = async (): Promise<void> => {
  for (let n = 0; n < 20; n++) await new Promise((resolve) => setImmediate(resolve))
}

export const random = (seed: number) => () => {
  seed = (seed + 0x6d2b79f5) | 0
  let t = Math.imul(seed ^ (seed >>> 15), 1 | seed)
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
  return ((t ^ (t >>> 14)) >>> 0) / 4294967296
}
