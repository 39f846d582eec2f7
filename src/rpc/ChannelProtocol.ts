/**
 * ChannelProtocol: the procedures on channels, by people and by the agents in them.
 * `name` is a channel's, from within the caller's project, else `project/channel`.
 */
import { Schema } from "effect"
import { Rpc, RpcGroup } from "effect/rpc"
import { MAX_SEATS, Order } from "../config/ChannelConfig.ts"
import { ChannelInfo, ChannelView, MAX_POST_BYTES, Signal } from "../domain/ChannelMessages.ts"
import { CommandRefused, Done } from "../domain/Messages.ts"
import * as Bounds from "./Bounds.ts"
import { error, input } from "./Procedure.ts"

const agents = Bounds.list(Bounds.agentName, MAX_SEATS, "Make several channels.")
const agent = Bounds.agentName
const post = Bounds.text(MAX_POST_BYTES, "Put it in a file that the others can read, and post its path.")

const [wait, turnComplete] = Signal.members
const utterance = Schema.Union([
  Schema.TaggedStruct("Post", { text: post }),
  Schema.Struct({ ...wait.fields, reason: Bounds.reason }),
  turnComplete
])

export const group = RpcGroup.make(
  /** Lists channels without the closed ones. */
  Rpc.make("Channels", { success: Schema.Array(ChannelInfo), error: CommandRefused }),
  Rpc.make("Channel", { payload: input(Bounds.named), success: ChannelView, error: CommandRefused }),
  Rpc.make("NewChannel", {
    payload: input({ ...Bounds.named, agents, order: Order, topic: Bounds.reason }),
    success: Done,
    error
  }),
  Rpc.make("CloseChannel", { payload: input(Bounds.named), success: Done, error }),
  Rpc.make("AssignSeat", { payload: input({ ...Bounds.named, agent }), success: Done, error }),
  Rpc.make("RemoveSeat", { payload: input({ ...Bounds.named, agent }), success: Done, error }),
  Rpc.make("PostToChannel", { payload: input({ ...Bounds.named, text: post }), success: Done, error }),
  /** `agents`: who stands first in the queue, in that order. */
  Rpc.make("OrderChannel", { payload: input({ ...Bounds.named, order: Order, agents }), success: Done, error }),
  Rpc.make("GrantFloor", { payload: input({ ...Bounds.named, agent }), success: Done, error }),
  Rpc.make("SkipFloor", { payload: input(Bounds.named), success: Done, error }),
  /** `agent`, which waits or has the floor, goes to the end of the queue. */
  Rpc.make("RequeueSeat", { payload: input({ ...Bounds.named, agent }), success: Done, error }),
  Rpc.make("PauseChannel", { payload: input({ ...Bounds.named, paused: Schema.Boolean }), success: Done, error }),
  /** An agent in its own turn; `channel` may be empty where it has one floor only. */
  Rpc.make("VoiceChannel", {
    payload: input({ runId: Bounds.name, channel: Bounds.name, utterance }),
    success: Done,
    error
  })
)
