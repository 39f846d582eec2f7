/**
 * ChannelProtocol: the procedures on channels, by people and by the agents in them.
 * `name` is a channel's, from within the caller's project, else `project/channel`.
 */
import { Schema } from "effect"
import { Rpc, RpcGroup } from "effect/rpc"
import { Order } from "../config/ChannelConfig.ts"
import { ChannelInfo, ChannelView, Utterance } from "../domain/ChannelMessages.ts"
import { CommandRefused, Done } from "../domain/Messages.ts"
import { error, named } from "./Procedure.ts"

const agents = Schema.Array(Schema.String)

export const group = RpcGroup.make(
  /** Those that are closed left out. */
  Rpc.make("Channels", { success: Schema.Array(ChannelInfo), error: CommandRefused }),
  Rpc.make("Channel", { payload: named, success: ChannelView, error: CommandRefused }),
  Rpc.make("NewChannel", { payload: { ...named, agents, order: Order, topic: Schema.String }, success: Done, error }),
  Rpc.make("CloseChannel", { payload: named, success: Done, error }),
  Rpc.make("AssignSeat", { payload: { ...named, agent: Schema.String }, success: Done, error }),
  Rpc.make("RemoveSeat", { payload: { ...named, agent: Schema.String }, success: Done, error }),
  Rpc.make("PostToChannel", { payload: { ...named, text: Schema.String }, success: Done, error }),
  /** `agents`: who stands first in the queue, in that order. */
  Rpc.make("OrderChannel", { payload: { ...named, order: Order, agents }, success: Done, error }),
  Rpc.make("GrantFloor", { payload: { ...named, agent: Schema.String }, success: Done, error }),
  Rpc.make("SkipFloor", { payload: named, success: Done, error }),
  /** `agent`, which waits or has the floor, goes to the end of the queue. */
  Rpc.make("RequeueSeat", { payload: { ...named, agent: Schema.String }, success: Done, error }),
  Rpc.make("PauseChannel", { payload: { ...named, paused: Schema.Boolean }, success: Done, error }),
  /** An agent in its own turn; `channel` may be empty where it has one floor only. */
  Rpc.make("VoiceChannel", {
    payload: { runId: Schema.String, channel: Schema.String, utterance: Utterance },
    success: Done,
    error
  })
)
