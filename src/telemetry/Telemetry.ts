/**
 * Telemetry: the daemon's figures, kept by one subscriber of the log, and written as Prometheus reads them.
 *
 * Guarantees: counters begin at 0 with the daemon, as Prometheus expects of a process that was restarted; they
 * count what becomes durable from then on. A subscriber that is slow holds up nobody; one that breaks leaves the
 * figures as they are, and says so.
 */
import { Clock, Context, Effect, Layer, Metric, Schedule, Stream } from "effect"
import { PrometheusMetrics } from "effect/observability"
import { EventLog } from "../core/event-log/EventLog.ts"
import type { Collector } from "./Collector.ts"
import { Meters, type Seen } from "./Meters.ts"
import * as Otlp from "./Otlp.ts"

export class Telemetry extends Context.Service<
  Telemetry,
  {
    /** A hook was answered after so many seconds. */
    readonly hook: (seconds: number) => void
    /** All figures in Prometheus' text format; `tree`: the live tree as it is now. */
    readonly text: (tree: ReadonlyArray<Seen>) => Effect.Effect<string>
  }
>()("agentd/telemetry/Telemetry") {}

/** Runes that become durable within this time are counted together: to wake for each commit costs more than the counting. */
const GATHER = "100 millis"

export interface Options {
  /** Where figures are sent, too; undefined: nowhere. */
  readonly collector: Collector | undefined
  /** The live tree, whose figures are read at each look. */
  readonly tree: Effect.Effect<ReadonlyArray<Seen>>
}

/** Sends the figures on, and reads those of the live tree before. */
const send = Effect.fnUntraced(function* (url: string, meters: Meters, tree: Options["tree"]) {
  yield* Otlp.figures(url)
  const look = Effect.map(tree, (rows) => meters.look(rows))
  yield* Effect.forkScoped(Effect.repeat(look, Schedule.spaced(Otlp.INTERVAL)))
})

export const layer = ({ collector, tree }: Options): Layer.Layer<Telemetry, never, EventLog> =>
  Layer.effect(
    Telemetry,
    Effect.gen(function* () {
      const log = yield* EventLog
      const clock = yield* Clock.Clock
      // of this daemon only, whatever else is counted in its process
      const context = Context.make(Metric.MetricRegistry, new Map())
      const meters = new Meters(context)
      const after = yield* log.head
      let looked = 0
      yield* Stream.runForEachArray(log.subscribe({ after }), (runes) =>
        Effect.suspend(() => {
          meters.takeAll(runes, { now: clock.currentTimeMillisUnsafe(), looked })
          return Effect.sleep(GATHER)
        }).pipe(
          Effect.andThen(
            Effect.sync(() => {
              looked = clock.currentTimeMillisUnsafe()
            })
          )
        )
      ).pipe(
        Effect.tapCause((cause) => Effect.logWarning("the figures of /metrics stand still", cause)),
        Effect.ignoreCause,
        Effect.forkScoped
      )
      if (collector?.metrics !== undefined) yield* Effect.provideContext(send(collector.metrics, meters, tree), context)
      return {
        hook: (seconds) => meters.hook(seconds),
        text: (tree) =>
          Effect.sync(() => {
            meters.look(tree)
            return PrometheusMetrics.formatUnsafe(context)
          })
      }
    })
  )
