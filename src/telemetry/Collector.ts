/**
 * Collector: the address to which spans and metrics are sent, from the daemon's config or from OpenTelemetry's standard
 * variables.
 */
import { Context } from "effect"

export const Exported = Context.Reference<boolean>("agentd/telemetry/Exported", { defaultValue: () => false })

export interface Environment {
  readonly [name: string]: string | undefined
}

/** URLs for spans and metrics. `metrics` is undefined if metrics are not sent. */
export interface Collector {
  readonly traces: string
  readonly metrics: string | undefined
}

const below = (base: string, path: string): string => `${base.endsWith("/") ? base.slice(0, -1) : base}/v1/${path}`

const collectorAt = (base: string): Collector => ({
  traces: below(base, "traces"),
  metrics: below(base, "metrics")
})

/**
 * The collector from the daemon's config; if none is configured, the collector from OpenTelemetry's variables.
 * Undefined if neither names one.
 */
export const collectorOf = (environment: Environment, configured?: string): Collector | undefined => {
  if (configured !== undefined) return collectorAt(configured)
  const base = environment["OTEL_EXPORTER_OTLP_ENDPOINT"]
  const traces = environment["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"]
  if (environment["OTEL_SDK_DISABLED"] === "true") return undefined
  if (traces !== undefined && traces !== "") return { traces, metrics: undefined }
  return base === undefined || base === "" ? undefined : collectorAt(base)
}
