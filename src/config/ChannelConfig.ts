/**
 * ChannelConfig: the config of a channel: its agents, the order in which they get the floor, and
 * how turns begin and end. Every default is filled in. A decoded config is JSON, so that the log
 * can store it.
 */
import { Schema } from "effect"
import { described, Name, NAME_FORM, optional, Text, whole, withDefault } from "./Fields.ts"

export const MAX_CHANNELS = 1000
export const MAX_SEATS = 500

export const ORDERS = ["round-robin", "priority", "manual"] as const
export const Order = Schema.Literals(ORDERS)
export type Order = typeof Order.Type

const seconds = whole(1, 86_400)

export const TurnConfig = Schema.Struct({
  defaultTimeoutSeconds: seconds.pipe(
    withDefault(60, "An agent that has the floor and gives no sign of life for so long loses it.")
  ),
  humanInterruptMode: Schema.Literals(["queue", "interrupt", "inject", "parallel"]).pipe(
    withDefault(
      "inject",
      "What a person's message does to the turn in progress. queue: it waits for the turn's end. interrupt: the turn is ended and begun again with it. inject: the agent that has the floor gets it at once. parallel: so does, with its next turn, every agent of the channel that is at work on something else."
    )
  ),
  announceTimeouts: Schema.Boolean.pipe(withDefault(true, "Whether a turn that timed out is said in the channel.")),
  announceDisconnects: Schema.Boolean.pipe(
    withDefault(true, "Whether it is said in the channel that an agent is gone, or failed.")
  ),
  autoDetectTurnEnd: Schema.Boolean.pipe(
    withDefault(false, "Whether an answer without TURN_COMPLETE ends the turn after some silence.")
  ),
  autoDetectSilenceSeconds: seconds.pipe(withDefault(10, "That silence.")),
  waitTimeoutSeconds: seconds.pipe(
    withDefault(300, "An agent that waits for longer loses its turn, unless it named a time of its own.")
  ),
  restAfterPosts: whole(1, 100_000).pipe(
    withDefault(
      20,
      "After so many posts of agents without a word of a person, a task or a message from outside the channel rests, until a person posts or resumes it."
    )
  )
})
export type TurnConfig = typeof TurnConfig.Type

export const ChannelConfig = Schema.Struct({
  topic: optional(Text.check(Schema.isMaxLength(2000)), "What the channel is for; part of what each agent is told."),
  agents: Schema.Array(Name)
    .check(
      Schema.makeFilter((agents: ReadonlyArray<string>) =>
        agents.length > MAX_SEATS
          ? `must hold at most ${MAX_SEATS} agents`
          : new Set(agents).size < agents.length
            ? "must name each agent once"
            : true
      )
    )
    .pipe(withDefault([], "Who sits in it, in the order of their first turns.")),
  order: Order.pipe(
    withDefault(
      "round-robin",
      "round-robin: in turn. priority: the highest first, in turn among equals. manual: only whom a person gives the floor."
    )
  ),
  priorities: Schema.Record(Name, whole(-1000, 1000)).pipe(
    withDefault({}, "By agent, with order priority; 0 for those not named.")
  ),
  timeouts: Schema.Record(Name, seconds).pipe(
    withDefault({}, "By agent, in seconds, instead of turnConfig.defaultTimeoutSeconds.")
  ),
  turnConfig: TurnConfig.pipe(withDefault({}, "How turns begin and end.")),
  rejoin: Schema.Boolean.pipe(
    withDefault(
      false,
      "Whether an agent whose process died takes its place again by itself once it is back. Else a person assigns it again."
    )
  )
})
export type ChannelConfig = typeof ChannelConfig.Type

export const ChannelsConfig = Schema.Record(Name, described(ChannelConfig, `A channel; its name: ${NAME_FORM}.`)).check(
  Schema.makeFilter((channels: object) => Object.keys(channels).length <= MAX_CHANNELS, {
    message: `must hold at most ${MAX_CHANNELS} channels`
  })
)
export type ChannelsConfig = typeof ChannelsConfig.Type

/** Decodes a channel; omitted settings get their defaults. */
export const decodeChannel = Schema.decodeUnknownSync(ChannelConfig)

const DEFAULTS = decodeChannel({})

/** Settings in a log: an older agentd had fewer of them. */
export interface Kept extends Partial<Omit<ChannelConfig, "turnConfig">> {
  readonly turnConfig?: Partial<TurnConfig>
}

/** Completes settings that an older agentd stored: missing ones get their defaults. */
export const completed = (settings: Kept): ChannelConfig => ({
  ...DEFAULTS,
  ...settings,
  turnConfig: { ...DEFAULTS.turnConfig, ...settings.turnConfig }
})
