/**
 * ChannelHandlers: what each procedure on channels does.
 *
 * Guarantees: inputs are checked first; an agent speaks only through a run of its
 * own that is under way, and if its `may` names "post". A daemon that is built
 * without channels says so.
 */
import { Effect } from "effect"
import * as ConversationRow from "../agents/ConversationRow.ts"
import { Agents } from "../agents/Agents.ts"
import { Channels } from "../channels/Channels.ts"
import { decodeChannel, MAX_SEATS, type Order } from "../config/ChannelConfig.ts"
import { MAX_POST_BYTES, type Utterance } from "../domain/ChannelMessages.ts"
import { NAME, NAME_FORM } from "../config/Fields.ts"
import { type Caller, CommandRefused, type Done } from "../domain/Messages.ts"
import { Admission } from "./Admission.ts"
import { group } from "./ChannelProtocol.ts"
import { bounded, checkNamed, checkText } from "./Inputs.ts"
import { Limits } from "./Procedure.ts"
import { speaking } from "./AgentApiHandlers.ts"

interface Named {
  readonly name: string
  readonly caller: Caller
}

const checkAgent = (agent: string): Effect.Effect<void, CommandRefused> =>
  NAME.test(agent)
    ? Effect.void
    : Effect.fail(
        new CommandRefused({
          message: `"${agent.slice(0, 100)}" cannot be an agent's name.`,
          remedy: `Use ${NAME_FORM}.`
        })
      )

const checkAgents = Effect.fnUntraced(function* (agents: ReadonlyArray<string>) {
  if (agents.length > MAX_SEATS) {
    return yield* new CommandRefused({
      message: `agents has ${agents.length} entries and may have ${MAX_SEATS}.`,
      remedy: "Make several channels."
    })
  }
  yield* Effect.forEach(agents, checkAgent, { discard: true })
})

const checkPost = Effect.fnUntraced(function* (text: string) {
  yield* checkText(text)
  const bytes = Buffer.byteLength(text)
  if (bytes > MAX_POST_BYTES) {
    return yield* new CommandRefused({
      message: `text has ${bytes} bytes and may have ${MAX_POST_BYTES}.`,
      remedy: "Put it in a file that the others can read, and post its path."
    })
  }
})

const checkUtterance = (utterance: Utterance): Effect.Effect<void, CommandRefused> => {
  switch (utterance._tag) {
    case "Post":
      return checkPost(utterance.text)
    case "Wait":
      return bounded("reason", utterance.reason, Limits.reasonLength)
    case "TurnComplete":
      return Effect.void
  }
}

const settingsOf = ({ agents, order, topic }: { agents: ReadonlyArray<string>; order: Order; topic: string }) =>
  decodeChannel({ agents: [...new Set(agents)], order, ...(topic === "" ? {} : { topic }) })

/** What becomes of a command on a channel whose conversation is over: said as such. */
const orOver =
  (agents: Agents["Service"], channels: Channels["Service"], { caller, name }: Named) =>
  <A, E>(run: Effect.Effect<A, E>) =>
    Effect.catch(run, (error): Effect.Effect<never, E | CommandRefused> =>
      channels.show(name, caller).pipe(
        Effect.flatMap(({ channel }) => agents.conversation(channel.conversation, caller)),
        Effect.orElseSucceed(() => undefined),
        Effect.flatMap((found) =>
          Effect.fail(found?.state === "closed" || found?.state === "archived" ? ConversationRow.over(found) : error)
        )
      )
    )

/** A seat may wait for an agent that is yet to come; a slip of the pen would wait for ever. */
const withAbsent = Effect.fnUntraced(function* (
  agents: Agents["Service"],
  channels: Channels["Service"],
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

export const layer = group.toLayer(
  Effect.gen(function* () {
    const agents = yield* Agents
    const admit = yield* Admission
    const channels = yield* Channels

    const on = <A, E>(
      { caller, name }: Named,
      run: (channels: Channels["Service"]) => Effect.Effect<A, E>,
      check: Effect.Effect<void, CommandRefused> = Effect.void
    ) =>
      admit.call(
        Effect.andThen(
          Effect.andThen(checkNamed({ name, caller }), check),
          Effect.suspend(() => orOver(agents, channels, { caller, name })(run(channels)))
        )
      )

    return group.of({
      Channels: () => admit.call(channels.list),
      Channel: ({ caller, name }) => on({ caller, name }, (channels) => channels.show(name, caller)),
      NewChannel: (input) =>
        on(
          input,
          (channels) =>
            Effect.flatMap(channels.create(input.name, settingsOf(input), input.caller), (done) =>
              withAbsent(agents, channels, input, input.agents, done)
            ),
          Effect.andThen(checkAgents(input.agents), bounded("topic", input.topic, Limits.reasonLength))
        ),
      CloseChannel: (input) => on(input, (channels) => channels.close(input.name, input.caller)),
      AssignSeat: ({ agent, ...input }) =>
        on(
          input,
          (channels) =>
            Effect.flatMap(channels.assign(input.name, agent, input.caller), (done) =>
              withAbsent(agents, channels, input, [agent], done)
            ),
          checkAgent(agent)
        ),
      RemoveSeat: ({ agent, ...input }) =>
        on(input, (channels) => channels.remove(input.name, agent, input.caller), checkAgent(agent)),
      PostToChannel: ({ text, ...input }) =>
        on(input, (channels) => channels.post(input.name, text, input.caller), checkPost(text)),
      OrderChannel: ({ agents, order, ...input }) =>
        on(input, (channels) => channels.order(input.name, order, agents, input.caller), checkAgents(agents)),
      GrantFloor: ({ agent, ...input }) =>
        on(input, (channels) => channels.grant(input.name, agent, input.caller), checkAgent(agent)),
      SkipFloor: (input) => on(input, (channels) => channels.skip(input.name, input.caller)),
      RequeueSeat: ({ agent, ...input }) =>
        on(input, (channels) => channels.requeue(input.name, agent, input.caller), checkAgent(agent)),
      PauseChannel: ({ paused, ...input }) => on(input, (channels) => channels.pause(input.name, paused, input.caller)),
      VoiceChannel: ({ channel, runId, utterance }) =>
        admit.call(
          Effect.gen(function* () {
            const { of } = yield* speaking(agents, runId, "post")
            yield* bounded("channel", channel, Limits.nameLength)
            yield* checkUtterance(utterance)
            const { voice } = channels
            const { agent, conversation } = of
            return yield* voice({ conversation, agent }, utterance, channel === "" ? {} : { channel })
          })
        )
    })
  })
)
