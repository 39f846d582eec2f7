/**
 * Collector: where spans and figures go, by the daemon's own config or by the variables that OpenTelemetry defines.
 */
import { Context } from "effect"

/** Whether the spans of this process go anywhere. */
export const Exported = Context.Reference<boolean>("agentd/telemetry/Exported", { defaultValue: () => false })

export interface Environment {
  readonly [name: string]: string | undefined
}

/** The address of the collector; `traces` is where spans go. */
export interface Collector {
  readonly traces: string
  readonly metrics: string | undefined
}

const below = (base: string, path: string): string => `${base.endsWith("/") ? base.slice(0, -1) : base}/v1/${path}`

const collectorAt = (base: string): Collector => ({
  traces: below(base, "traces"),
  metrics: below(base, "metrics")
})

/** By the daemon's config, else by OpenTelemetry's own variables; undefined: nobody collects. */
export const collectorOf = (environment: Environment, configured?: string): Collector | undefined => {
  if (configured !== undefined) return collectorAt(configured)
  const base = environment["OTEL_EXPORTER_OTLP_ENDPOINT"]
  const traces = environment["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"]
  if (environment["OTEL_SDK_DISABLED"] === "true") return undefined
  if (traces !== undefined && traces !== "") return { traces, metrics: undefined }
  return base === undefined || base === "" ? undefined : collectorAt(base)
}
