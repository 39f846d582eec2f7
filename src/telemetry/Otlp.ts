/**
 * Otlp: sends spans and metrics to a collector, over HTTP in OpenTelemetry's protocol (OTLP).
 *
 * Guarantees: nothing is sent unless the daemon's config or OpenTelemetry's standard variables name a collector. If the
 * collector is unreachable, only the data for it is lost.
 */
import { Effect, Layer, Option, Tracer } from "effect"
import { FetchHttpClient } from "effect/http"
import { OtlpExporter, OtlpMetrics, OtlpSerialization, OtlpTracer } from "effect/observability"
import { type Collector, type Environment, Exported } from "./Collector.ts"

const SHUTDOWN = "1 second"
const resource = { serviceName: "agentd" }
const transport = Layer.mergeAll(OtlpExporter.layerFlusher, OtlpSerialization.layerJson, FetchHttpClient.layer)

/** Sends spans until the scope closes, and then the remaining spans. */
export const tracer = ({ traces }: Collector) =>
  Effect.provide(
    OtlpTracer.make({ url: traces, resource, exportInterval: "1 second", shutdownTimeout: SHUTDOWN }),
    transport
  )

/** Interval at which metrics are sent. */
export const INTERVAL = "10 seconds"

/** Sends the metrics of the registry in the context until the scope closes. */
export const figures = (url: string) =>
  Effect.provide(OtlpMetrics.make({ url, resource, exportInterval: INTERVAL, shutdownTimeout: SHUTDOWN }), transport)

/** Matches `00-<trace>-<span>-<flags>`, the format of TRACEPARENT in W3C Trace Context. */
const PARENT = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/u

export const parentOf = (environment: Environment): Tracer.ExternalSpan | undefined => {
  const [, traceId, spanId, flags] = PARENT.exec(environment["TRACEPARENT"] ?? "") ?? []
  return traceId === undefined || spanId === undefined
    ? undefined
    : Tracer.externalSpan({ traceId, spanId, sampled: (Number.parseInt(flags ?? "0", 16) & 1) === 1 })
}

/** Runs a program as one span with this name. Its parent is the span in TRACEPARENT. */
export const traced =
  (collector: Collector, name: string, environment: Environment) =>
  <A, E, R>(program: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> => {
    const parent = Option.fromUndefinedOr(parentOf(environment))
    return Effect.scoped(
      Effect.flatMap(tracer(collector), (sends) =>
        Effect.withSpan(program, name, Option.isSome(parent) ? { parent: parent.value } : { root: true }).pipe(
          Effect.provideService(Tracer.Tracer, sends),
          Effect.provideService(Exported, true)
        )
      )
    ) as Effect.Effect<A, E, R>
  }
