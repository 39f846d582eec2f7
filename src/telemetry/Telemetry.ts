/**
 * Telemetry: the daemon's metrics, updated by one subscriber of the log, in Prometheus' text format.
 *
 * Guarantees: counters start at 0 with the daemon, as Prometheus expects after a restart, and count what becomes
 * durable from then on. A slow subscriber delays no other part. If it fails, the metrics stay as they are, and a
 * warning is logged.
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
    /** Records how long the answer to a hook took. */
    readonly hook: (seconds: number) => void
    /** All metrics in Prometheus' text format. `tree`: the current live tree. */
    readonly text: (tree: ReadonlyArray<Seen>) => Effect.Effect<string>
  }
>()("agentd/telemetry/Telemetry") {}

/** Runes that become durable within this time are counted together: waking for each commit costs more than counting. */
const GATHER = "100 millis"

export interface Options {
  /** The collector that also gets the metrics; undefined: there is none. */
  readonly collector: Collector | undefined
  /** The live tree, which is read each time metrics are sent. */
  readonly tree: Effect.Effect<ReadonlyArray<Seen>>
}

/** Sends the metrics, and regularly reads those of the live tree. */
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
      // a registry for this daemon only, separate from other metrics of its process
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
