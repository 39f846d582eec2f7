/**
 * Channels: the rooms in which agents and people take turns: what a project's
 * config says of them, what people do to them, and what agents say in them.
 *
 * Guarantees: a reply reports what is durable; at most one agent has the floor of
 * a channel, and nobody else's words are posted there but people's; what was
 * posted is read by everyone who sits there once it has the floor.
 */
import { Context, type Effect } from "effect"
import type { ChannelConfig, ChannelsConfig, Order } from "../config/ChannelConfig.ts"
import type { ChannelInfo, ChannelView, Utterance } from "../domain/ChannelMessages.ts"
import type { Address } from "../domain/AgentPort.ts"
import type { Caller, CommandRefused, Done } from "../domain/Messages.ts"
import type { StorageError } from "../event-log/EventLog.ts"

/** A project's conversation, as it is named now. */
export interface Home {
  readonly conversation: string
  /** The project's name. */
  readonly project: string
  /** Absolute path of its `agentd.jsonc`. */
  readonly config: string
}

type Command = Effect.Effect<Done, CommandRefused | StorageError>

/** A channel is named from within its project, else as `project/channel`. */
export class Channels extends Context.Service<
  Channels,
  {
    /** What the project's file says now: call it when the project is registered, and whenever its file has changed. */
    readonly configure: (home: Home, channels: ChannelsConfig) => Effect.Effect<void, StorageError>
    /** Whether that was said of a conversation, and its channels are there. */
    readonly isConfigured: (conversation: string) => Effect.Effect<boolean>
    /** Those that are closed left out. */
    readonly list: Effect.Effect<ReadonlyArray<ChannelInfo>>
    readonly show: (name: string, caller: Caller) => Effect.Effect<ChannelView, CommandRefused>
    /** In the caller's project. */
    readonly create: (name: string, config: ChannelConfig, caller: Caller) => Command
    readonly close: (name: string, caller: Caller) => Command
    readonly assign: (name: string, agent: string, caller: Caller) => Command
    readonly remove: (name: string, agent: string, caller: Caller) => Command
    readonly post: (name: string, text: string, caller: Caller) => Command
    /** The agents named stand first, in that order. */
    readonly order: (name: string, order: Order, agents: ReadonlyArray<string>, caller: Caller) => Command
    readonly grant: (name: string, agent: string, caller: Caller) => Command
    readonly skip: (name: string, caller: Caller) => Command
    /** Who waits, or has the floor, forfeits its turn and goes to the end of the queue. */
    readonly requeue: (name: string, agent: string, caller: Caller) => Command
    readonly pause: (name: string, paused: boolean, caller: Caller) => Command
    /**
     * An agent speaks through its tools; `channel` may be left out where it has one
     * floor only. `messageId` is of the tool call's making: once more under the same
     * id it changes nothing.
     */
    readonly voice: (
      agent: Address,
      utterance: Utterance,
      options?: { readonly channel?: string; readonly messageId?: string }
    ) => Command
    /** Whether liveness is settled: before that no floor is given. */
    readonly ready: Effect.Effect<boolean>
  }
>()("agentd/channels/Channels") {}
