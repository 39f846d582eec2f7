/**
 * Bus: the reports of agents to channels and plans, and the configs of projects.
 *
 * Guarantees: a listener that is slow holds up no agent, until it is so far behind that memory would be
 * at stake: then who reports waits for it, and no report is lost.
 */
import { Context, Effect, Layer, PubSub, Stream } from "effect"
import type { AgentReport } from "../../domain/AgentPort.ts"
import type { Project } from "../../config/ConfigFile.ts"

/** The present config of an open conversation. */
export interface ConfigNews {
  readonly conversation: string
  readonly config: Project
}

/** Signs of life are left out while so many reports wait. */
const BUSY = 1_000
/** Each has room from the start on, whether reports wait or not. */
const REPORTS = 8_192
/** Of projects whose files were read. */
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
