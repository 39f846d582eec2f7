/**
 * Bus: passes the reports of agents to channels and plans, and the configs of projects to subscribers.
 *
 * Guarantees: a slow subscriber delays no agent until it is so far behind that memory would run out. Then reporters
 * wait for it, and no report is lost.
 */
import { Context, Effect, Layer, PubSub, Stream } from "effect"
import type { AgentReport } from "../../domain/AgentPort.ts"
import type { Project } from "../../config/ConfigFile.ts"

/** The current config of an open conversation. */
export interface ConfigNews {
  readonly conversation: string
  readonly config: Project
}

/** If more reports than this wait, signs of life are dropped. */
const BUSY = 1_000
/** Capacity for reports, allocated at the start. */
const REPORTS = 8_192
/** Capacity for configs. */
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
