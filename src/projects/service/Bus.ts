/**
 * Bus: what agents tell those outside: their reports to channels and plans, their
 * runs' events to the board.
 *
 * Guarantees: a listener that is slow holds up no agent, until it is so far behind that memory would be
 * at stake: then who reports waits for it, and no report is lost.
 */
import { Context, Effect, Layer, PubSub, Stream } from "effect"
import type { AgentReport } from "../../domain/AgentPort.ts"
import type { Project } from "../../config/ConfigFile.ts"
import type { Watched } from "../../agents/actors/AgentSetting.ts"

/** The present config of an open conversation. */
export interface ConfigNews {
  readonly conversation: string
  readonly config: Project
}

export interface RunNews {
  readonly runId: string
  /** `project/agent` */
  readonly agent: string
  readonly event: Watched
}

/** Signs of life are left out while so many reports wait. */
const BUSY = 1_000
/** Each has room from the start on, whether reports wait or not. */
const REPORTS = 8_192
const NEWS = 4_096
/** Of projects whose files were read. */
const CONFIGS = 1_024

export class Bus extends Context.Service<
  Bus,
  {
    readonly report: (report: AgentReport) => Effect.Effect<void>
    readonly watched: (of: { readonly agent: string; readonly runId: string }, event: Watched) => Effect.Effect<void>
    readonly configured: (news: ConfigNews) => Effect.Effect<void>
    readonly reports: Stream.Stream<AgentReport>
    /** A reader that is too slow misses the oldest. */
    readonly news: Stream.Stream<RunNews>
    readonly configs: Stream.Stream<ConfigNews>
  }
>()("agentd/agents/Bus") {}

export const make = Effect.gen(function* () {
  const reports = yield* PubSub.bounded<AgentReport>(REPORTS)
  const news = yield* PubSub.sliding<RunNews>(NEWS)
  const configs = yield* PubSub.bounded<ConfigNews>(CONFIGS)
  return Bus.of({
    configured: (config) => Effect.asVoid(PubSub.publish(configs, config)),
    configs: Stream.fromPubSub(configs),
    report: (report) =>
      report._tag === "Active" && PubSub.sizeUnsafe(reports) > BUSY
        ? Effect.void
        : Effect.asVoid(PubSub.publish(reports, report)),
    watched: ({ agent, runId }, event) => Effect.asVoid(PubSub.publish(news, { agent, runId, event })),
    reports: Stream.fromPubSub(reports),
    news: Stream.fromPubSub(news)
  })
})

export const layer: Layer.Layer<Bus> = Layer.effect(Bus, make)
