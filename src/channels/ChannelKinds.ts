/**
 * ChannelKinds: the kinds of runes of a channel and its seats.
 */
import { Schema, Struct } from "effect"
import { ChannelConfig, Order, TurnConfig } from "../config/ChannelConfig.ts"
import { Signal } from "../domain/ChannelMessages.ts"
import { machineKinds } from "../core/event-actor/MachineKinds.ts"
import { kind, reader } from "../core/event-log/EventKinds.ts"
import * as SeatMachine from "./SeatMachine.ts"

const text = Schema.String

const turnConfig = TurnConfig.mapFields(Struct.map(Schema.toType))
/** Settings of a channel in a rune. An older agentd wrote fewer fields; `completed` adds the missing ones. */
const settings = ChannelConfig.mapFields(Struct.map(Schema.toType)).mapFields(({ rejoin, ...fields }) => ({
  ...fields,
  rejoin: Schema.optionalKey(rejoin),
  turnConfig: turnConfig.mapFields(({ restAfterPosts, ...rest }) => ({
    ...rest,
    restAfterPosts: Schema.optionalKey(restAfterPosts)
  }))
}))

const person = Schema.Struct({ by: text })
/** Name of the user who sent the command; missing in runes of an older agentd. */
const by = Schema.optional(Schema.NullOr(text))

export const seatKinds = machineKinds(SeatMachine, { "seat.moved": { fields: { agentId: text, channel: text } } })

export const channelKinds = {
  ...seatKinds,
  "channel.created": kind(Schema.Struct({ name: text, origin: Schema.Literals(["config", "person"]), by, settings })),
  "channel.configured": kind(Schema.Struct({ settings, by })),
  "channel.assigned": kind(Schema.Struct({ agent: text, by })),
  "channel.unassigned": kind(Schema.Struct({ agent: text, by })),
  "channel.posted": kind(
    Schema.Struct({
      messageId: text,
      by: Schema.Literals(["person", "agent"]),
      from: text,
      text,
      /** Id of the message with which the agent that has the floor received the post. Null or missing if none did. */
      injected: Schema.optional(Schema.NullOr(text)),
      /** Id of the agent's turn that gave this answer. */
      turnId: Schema.optional(Schema.NullOr(text))
    })
  ),
  "channel.notice": kind(Schema.Struct({ text })),
  "channel.unsignalled": kind(Schema.Struct({ agent: text, turnId: text })),
  "channel.withheld": kind(Schema.Struct({ agent: text, turnId: text, text, why: Schema.optional(text) })),
  "channel.signalled": kind(Schema.Struct({ agent: text, signal: Signal })),
  "channel.read": kind(
    Schema.Struct({
      agent: text,
      upTo: Schema.Int,
      /** Posts after `upTo` that the agent was sent. Their turn failed, so they are unread again. */
      again: Schema.optional(Schema.Array(Schema.Struct({ messageId: text, seq: Schema.Int })))
    })
  ),
  "channel.stirred": kind(Schema.Struct({ agent: text, messageId: text })),
  "channel.ordered": kind(Schema.Struct({ order: Order, agents: Schema.Array(text), by })),
  "channel.paused": kind(person),
  "channel.resumed": kind(person),
  "channel.closed": kind(person)
}

export const readChannel = reader(channelKinds)
