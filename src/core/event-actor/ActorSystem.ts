/**
 * ActorSystem: the objects that all commit scopes of a log share: the log itself, the turn scheduler, the clock, the
 * dead letters, limits and metrics.
 */
import { type Cause, Clock, Context, Effect, Layer, References } from "effect"
import type { Log } from "../event-log/Log.ts"
import { DeadLetters } from "./DeadLetters.ts"
import { EventLoop, type EventLoopShape } from "./EventLoop.ts"
import { Macrostep } from "./Macrostep.ts"
import { type Alarm, PutOffAsks } from "./Mail.ts"
import { TurnScheduler } from "./TurnScheduler.ts"

export interface Options {
  readonly log: Log
  /** Maximum number of waiting messages per actor. With more, mail from outside waits or is refused. Default: 1,024. */
  readonly capacity?: number
  /** True in tests: states are frozen, checked to be plain data, and compared with the states that `apply` computes. */
  readonly strict?: boolean
}

/** Counters of this process, since its start. */
export interface Metrics {
  /** Number of handled messages from outside a scope, including refused messages. */
  macrosteps: number
  appends: number
  runes: number
  /** Number of messages that were illegal, or that the actor or the log refused. */
  refused: number
  stale: number
  crashes: number
  deadLetters: number
}

/** Number of tokens per ms since the epoch. If fewer asks per ms are deferred, no token repeats after a restart. */
const TOKENS_PER_MS = 1_000

export class System implements Alarm {
  readonly log: Log
  readonly loop: EventLoopShape
  readonly clock: Clock.Clock
  readonly capacity: number
  readonly isStrict: boolean
  readonly deadLetters: DeadLetters["Service"]
  readonly scheduler: TurnScheduler
  readonly macrostep: Macrostep = new Macrostep(this)
  readonly putOff: PutOffAsks
  readonly metrics: Metrics = {
    macrosteps: 0,
    appends: 0,
    runes: 0,
    refused: 0,
    stale: 0,
    crashes: 0,
    deadLetters: 0
  }
  private readonly context: Context.Context<never>

  constructor(options: Options, context: Context.Context<DeadLetters | EventLoop>) {
    this.log = options.log
    this.capacity = options.capacity ?? 1_024
    this.isStrict = options.strict ?? false
    this.context = context
    this.loop = Context.get(context, EventLoop)
    this.clock = Context.get(context, Clock.Clock)
    this.deadLetters = Context.get(context, DeadLetters)
    this.scheduler = new TurnScheduler(this.loop)
    this.putOff = new PutOffAsks(this, this.clock.currentTimeMillisUnsafe() * TOKENS_PER_MS)
  }

  /** Calls the task after `ms` milliseconds, as a separate turn. The returned function cancels the timer. */
  after(ms: number, task: () => void): () => void {
    const alarm = Effect.andThen(
      Effect.sleep(ms),
      Effect.sync(() => this.scheduler.alone(task))
    )
    const fiber = Effect.runForkWith(this.context)(alarm)
    return () => fiber.interruptUnsafe()
  }

  /** Returns the monotonic time in ms, which is not affected by changes to the wall clock. */
  readonly monotonic = (): number => Number(this.clock.monotonicTimeNanosUnsafe()) / 1e6

  /** Discards a message that came too late: counts it, and logs it at debug level. */
  stale({ address }: { readonly address: string }, message: unknown): void {
    this.metrics.stale += 1
    if (Context.get(this.context, References.MinimumLogLevel) !== "Debug") return
    Effect.runForkWith(this.context)(Effect.logDebug(`${address}: a message came too late and was discarded`, message))
  }

  warn(message: string, cause: Cause.Cause<unknown>): void {
    Effect.runForkWith(this.context)(Effect.logWarning(message, cause))
  }
}

export class ActorSystem extends Context.Service<ActorSystem, System>()("agentd/event-actor/ActorSystem") {}

export const make = (options: Options): Effect.Effect<System, never, DeadLetters | EventLoop> =>
  Effect.map(Effect.context<DeadLetters | EventLoop>(), (context) => new System(options, context))

export const layer = (options: Options): Layer.Layer<ActorSystem, never, DeadLetters | EventLoop> =>
  Layer.effect(ActorSystem, make(options))
