/**
 * Tracing: records the daemon's commands and their effects as spans.
 *
 * Guarantees: without a collector there are no spans and no log subscriber, so tracing costs nothing.
 */
import { Context, Effect, Stream, type Tracer } from "effect"
import { EventLog } from "../core/event-log/EventLog.ts"
import type { Collector } from "./Collector.ts"
import * as Otlp from "./Otlp.ts"
import { Spans } from "./Spans.ts"

export interface Tracing {
  readonly tracer: Tracer.Tracer
  /** Called when the command with this span has been answered with this rune. */
  readonly answered: (eventId: number, span: Tracer.AnySpan) => void
}

/** The daemon's tracing; undefined if there is no collector. */
export const Traces = Context.Reference<Tracing | undefined>("agentd/telemetry/Traces", {
  defaultValue: () => undefined
})

/** Subscribes to the log until the scope closes, and records spans from its runes. */
const follow = Effect.fnUntraced(function* (tracer: Tracer.Tracer) {
  const log = yield* EventLog
  const spans = new Spans(tracer)
  const after = yield* log.head
  yield* Stream.runForEachArray(log.subscribe({ after }), (runes) =>
    Effect.sync(() => {
      for (const rune of runes) spans.take(rune)
    })
  ).pipe(
    Effect.tapCause((cause) => Effect.logWarning("no further spans of turns are sent", cause)),
    Effect.ignoreCause,
    Effect.forkScoped
  )
  const answered: Tracing["answered"] = (eventId, span) => spans.answered(eventId, span)
  return { tracer, answered } satisfies Tracing
})

/** Sends spans to this collector until the scope closes. Without a collector there is no tracing. */
export const to = (collector: Collector | undefined) =>
  collector === undefined ? Effect.undefined : Effect.flatMap(Otlp.tracer(collector), follow)
