/**
 * Bus: forwards the reports of agents to channels and plans, and the configs of projects to subscribers.
 *
 * Guarantees: A slow subscriber does not delay agents while the buffer has space. When the buffer is full, agents wait
 * for the subscriber, so that no report is lost.
 */
import { Context, Effect, Layer, PubSub, Stream } from "effect"
import type { AgentReport } from "../../domain/AgentPort.ts"
import type { Project } from "../../config/ConfigFile.ts"

export interface ConfigNews {
  readonly conversation: string
  readonly config: Project
}

/** If more reports than this wait, reports that only show activity are discarded. */
const BUSY = 1_000
/** Maximum number of reports that wait for a subscriber. Memory for all of them is allocated at the start. */
const REPORTS = 8_192
/** Maximum number of configs that wait for a subscriber. */
const CONFIGS = 1_024

export class Bus extends Context.Service<
  Bus,
  {
    readonly report: (report: AgentReport) => Effect.Effect<void>
    readonly configured: (news: ConfigNews) => Effect.Effect<void>
    readonly reports: Stream.Stream<AgentReport>
    readonly configs: Stream.Stream<ConfigNews>
  }
>()("agentd/agents/Bus") {}

export const make = Effect.gen(function* () {
  const reports = yield* PubSub.bounded<AgentReport>(REPORTS)
  const configs = yield* PubSub.bounded<ConfigNews>(CONFIGS)
  return Bus.of({
    configured: (config) => Effect.asVoid(PubSub.publish(configs, config)),
    configs: Stream.fromPubSub(configs),
    report: (report) =>
      report._tag === "Active" && PubSub.sizeUnsafe(reports) > BUSY
        ? Effect.void
        : Effect.asVoid(PubSub.publish(reports, report)),
    reports: Stream.fromPubSub(reports)
  })
})

export const layer: Layer.Layer<Bus> = Layer.effect(Bus, make)
