/**
 * ChannelProtocol: procedures for channels, for users and for the agents in the channels. `name`: a channel of the
 * caller's project, or `project/channel`.
 *
 * Guarantees: an agent can post only while a run of its own is in progress, and only if `may` in its config lists
 * "post".
 */
import { Effect, Schema } from "effect"
import { Rpc } from "effect/rpc"
import * as ConversationRow from "../../projects/ConversationRow.ts"
import { decodeChannel, MAX_SEATS, Order } from "../../config/ChannelConfig.ts"
import { ChannelInfo, ChannelView, MAX_POST_BYTES, Signal } from "../../domain/ChannelMessages.ts"
import { type Caller, CommandRefused, Done } from "../../domain/Messages.ts"
import { speaking } from "./AgentApiProtocol.ts"
import * as Bounds from "../../board/Bounds.ts"
import type { Features } from "./Features.ts"
import { command, error, input, procedure, Speaks } from "./Procedure.ts"

const agents = Bounds.list(Bounds.agentName, MAX_SEATS, "Make several channels.")
const agent = Bounds.agentName
const post = Bounds.text(MAX_POST_BYTES, "Put it in a file that the others can read, and post its path.")

const [wait, turnComplete] = Signal.members
const utterance = Schema.Union([
  Schema.TaggedStruct("Post", { text: post }),
  Schema.Struct({ ...wait.fields, reason: Bounds.reason }),
  turnComplete
])

interface Named {
  readonly name: string
  readonly caller: Caller
}

const settingsOf = ({ agents, order, topic }: { agents: ReadonlyArray<string>; order: Order; topic: string }) =>
  decodeChannel({ agents: [...new Set(agents)], order, ...(topic === "" ? {} : { topic }) })

/** If a command fails and the channel's conversation is closed, the refusal says that the conversation is closed. */
const orOver = <A, E>({ agents, channels }: Features, { caller, name }: Named, run: Effect.Effect<A, E>) =>
  Effect.catch(run, (error): Effect.Effect<never, E | CommandRefused> =>
    channels.show(name, caller).pipe(
      Effect.flatMap(({ channel }) => agents.conversation(channel.conversation, caller)),
      Effect.orElseSucceed(() => undefined),
      Effect.flatMap((found) =>
        Effect.fail(found?.state === "closed" || found?.state === "archived" ? ConversationRow.over(found) : error)
      )
    )
  )

/**
 * Adds a warning about agents that do not exist to a reply. A seat can wait for an agent that is created later, but
 * with a misspelled name it would wait for ever.
 */
const withAbsent = Effect.fnUntraced(function* (
  { agents, channels }: Features,
  { caller, name }: Named,
  named: ReadonlyArray<string>,
  done: Done
) {
  const view = yield* Effect.result(channels.show(name, caller))
  if (view._tag === "Failure") return done
  const { conversation } = view.success.channel
  const rows = yield* agents.all
  const here = rows.flatMap((row) => (row.conversation === conversation ? [row.agent] : []))
  const absent = named.filter((agent) => !here.includes(agent))
  if (absent.length === 0) return done
  const who =
    absent.length === 1 ? `There is no agent ${absent[0]} now` : `There are no agents ${absent.join(", ")} now`
  return { ...done, message: `${done.message} ${who}: the seat stays empty until there is one.` }
})

/**
 * Posts or signals for an agent that has the floor. `channel` can be empty if the agent has the floor in only one
 * channel.
 */
export const voiceChannel = procedure(
  Rpc.make("VoiceChannel", {
    payload: input({ runId: Bounds.name, channel: Bounds.name, utterance }),
    success: Done,
    error
  }).annotate(Speaks, "speaks"),
  ({ agents, channels }, { channel, runId, utterance }) =>
    Effect.flatMap(speaking(agents, runId, "post"), ({ of: { agent, conversation } }) =>
      channels.voice({ conversation, agent }, utterance, channel === "" ? {} : { channel })
    )
)

export const channels = [
  /** Lists all channels that are not closed. */
  procedure(
    Rpc.make("Channels", { success: Schema.Array(ChannelInfo), error: CommandRefused }),
    ({ channels }) => channels.list
  ),
  procedure(
    Rpc.make("Channel", { payload: input(Bounds.named), success: ChannelView, error: CommandRefused }),
    (features, input) => orOver(features, input, features.channels.show(input.name, input.caller))
  ),
  procedure(command("NewChannel", { agents, order: Order, topic: Bounds.reason }, "acts"), (features, input) =>
    orOver(
      features,
      input,
      Effect.flatMap(features.channels.create(input.name, settingsOf(input), input.caller), (done) =>
        withAbsent(features, input, input.agents, done)
      )
    )
  ),
  procedure(command("CloseChannel", {}, "acts"), (features, input) =>
    orOver(features, input, features.channels.close(input.name, input.caller))
  ),
  procedure(command("AssignSeat", { agent }, "acts"), (features, { agent, ...input }) =>
    orOver(
      features,
      input,
      Effect.flatMap(features.channels.assign(input.name, agent, input.caller), (done) =>
        withAbsent(features, input, [agent], done)
      )
    )
  ),
  procedure(command("RemoveSeat", { agent }, "acts"), (features, { agent, ...input }) =>
    orOver(features, input, features.channels.remove(input.name, agent, input.caller))
  ),
  procedure(command("PostToChannel", { text: post }, "acts"), (features, { text, ...input }) =>
    orOver(features, input, features.channels.post(input.name, text, input.caller))
  ),
  /** Changes the order of the queue. `agents`: the agents that come first, in this order. */
  procedure(command("OrderChannel", { order: Order, agents }, "acts"), (features, { agents, order, ...input }) =>
    orOver(features, input, features.channels.order(input.name, order, agents, input.caller))
  ),
  procedure(command("GrantFloor", { agent }, "acts"), (features, { agent, ...input }) =>
    orOver(features, input, features.channels.grant(input.name, agent, input.caller))
  ),
  procedure(command("SkipFloor", {}, "acts"), (features, input) =>
    orOver(features, input, features.channels.skip(input.name, input.caller))
  ),
  /** Moves `agent`, which is waiting or has the floor, to the end of the queue. */
  procedure(command("RequeueSeat", { agent }, "acts"), (features, { agent, ...input }) =>
    orOver(features, input, features.channels.requeue(input.name, agent, input.caller))
  ),
  procedure(command("PauseChannel", { paused: Schema.Boolean }, "acts"), (features, { paused, ...input }) =>
    orOver(features, input, features.channels.pause(input.name, paused, input.caller))
  ),
  voiceChannel
] as const
