/**
 * Telemetry: the daemon's metrics, updated by one subscriber of the log, in Prometheus' text format.
 *
 * Guarantees: counters start at 0 when the daemon starts, as Prometheus expects after a restart, and count runes that
 * become durable after that. A slow subscriber delays no other part of the daemon. If it fails, the metrics are no
 * longer updated, and a warning is logged.
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
    /** Records how many seconds it took to answer a hook. */
    readonly hook: (seconds: number) => void
    /** All metrics in Prometheus' text format. `tree`: the current supervision tree. */
    readonly text: (tree: ReadonlyArray<Seen>) => Effect.Effect<string>
  }
>()("agentd/telemetry/Telemetry") {}

/**
 * Runes that become durable within this time are counted together, because waking up for each commit costs more than
 * the counting.
 */
const GATHER = "100 millis"

export interface Options {
  /** The collector to which the metrics are also sent; undefined if there is none. */
  readonly collector: Collector | undefined
  /** The supervision tree, which is read each time metrics are sent. */
  readonly tree: Effect.Effect<ReadonlyArray<Seen>>
}

/** Sends the metrics, and regularly measures the supervision tree. */
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
      // a registry for this daemon only, separate from other metrics in the same process
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
        Effect.tapCause((cause) => Effect.logWarning("the metrics are no longer updated", cause)),
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
