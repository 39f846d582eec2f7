/**
 * ChannelConfig: the config of a channel: its agents, the order in which they get the floor, and how turns begin and
 * end. All defaults are filled in. A decoded config is plain JSON and can be stored in the log.
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
    withDefault(60, "How long an agent can have the floor without any activity. Then it loses the floor.")
  ),
  humanInterruptMode: Schema.Literals(["queue", "interrupt", "inject", "parallel"]).pipe(
    withDefault(
      "inject",
      "What a person's message does to the current turn. queue: the message waits until the turn ends. interrupt: the turn is ended and started again with the message. inject: the agent that has the floor gets the message at once. parallel: like inject, and each other agent of the channel that is busy gets it with its next turn."
    )
  ),
  announceTimeouts: Schema.Boolean.pipe(
    withDefault(true, "Whether the channel shows a message when a turn times out.")
  ),
  announceDisconnects: Schema.Boolean.pipe(
    withDefault(true, "Whether the channel shows a message when an agent disconnects or fails.")
  ),
  autoDetectTurnEnd: Schema.Boolean.pipe(
    withDefault(
      false,
      "Whether an answer without TURN_COMPLETE ends the turn after autoDetectSilenceSeconds of silence."
    )
  ),
  autoDetectSilenceSeconds: seconds.pipe(withDefault(10, "Length of the silence for autoDetectTurnEnd.")),
  waitTimeoutSeconds: seconds.pipe(
    withDefault(300, "An agent that waits longer than this loses its turn, unless it named a timeout itself.")
  ),
  restAfterPosts: whole(1, 100_000).pipe(
    withDefault(
      20,
      "After this many posts of agents in a row, the channel rests until a person posts or resumes it. A person's post, a task or a message from outside resets the count."
    )
  )
})
export type TurnConfig = typeof TurnConfig.Type

export const ChannelConfig = Schema.Struct({
  topic: optional(Text.check(Schema.isMaxLength(2000)), "What the channel is for. Each of its agents gets this text."),
  agents: Schema.Array(Name)
    .check(
      Schema.makeFilter((agents: ReadonlyArray<string>) =>
        agents.length > MAX_SEATS
          ? `must contain at most ${MAX_SEATS} agents`
          : new Set(agents).size < agents.length
            ? "must name each agent once"
            : true
      )
    )
    .pipe(withDefault([], "The agents of the channel, in the order of their first turns.")),
  order: Order.pipe(
    withDefault(
      "round-robin",
      "round-robin: in turn. priority: the highest priority first, equal ones in turn. manual: only agents that a person gives the floor."
    )
  ),
  priorities: Schema.Record(Name, whole(-1000, 1000)).pipe(
    withDefault({}, "Priority of each agent, for order priority; 0 for agents without an entry.")
  ),
  timeouts: Schema.Record(Name, seconds).pipe(
    withDefault({}, "Timeout of each agent, in seconds, instead of turnConfig.defaultTimeoutSeconds.")
  ),
  turnConfig: TurnConfig.pipe(withDefault({}, "How turns begin and end.")),
  rejoin: Schema.Boolean.pipe(
    withDefault(
      false,
      "Whether an agent whose process died gets its seat back automatically when it runs again. If not, a person must assign it again."
    )
  )
})
export type ChannelConfig = typeof ChannelConfig.Type

export const ChannelsConfig = Schema.Record(Name, described(ChannelConfig, `A channel; its name: ${NAME_FORM}.`)).check(
  Schema.makeFilter((channels: object) => Object.keys(channels).length <= MAX_CHANNELS, {
    message: `must contain at most ${MAX_CHANNELS} channels`
  })
)
export type ChannelsConfig = typeof ChannelsConfig.Type

export const decodeChannel = Schema.decodeUnknownSync(ChannelConfig)

const DEFAULTS = decodeChannel({})

/** Channel settings as stored in the log. An older agentd stored fewer fields. */
export interface Kept extends Partial<Omit<ChannelConfig, "turnConfig">> {
  readonly turnConfig?: Partial<TurnConfig>
}

export const completed = (settings: Kept): ChannelConfig => ({
  ...DEFAULTS,
  ...settings,
  turnConfig: { ...DEFAULTS.turnConfig, ...settings.turnConfig }
})
