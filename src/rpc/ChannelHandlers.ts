/**
 * ChannelHandlers: what each procedure on channels does.
 *
 * Guarantees: an agent speaks only through a run of its own that is under way, and
 * if its `may` names "post".
 */
import { Effect } from "effect"
import * as ConversationRow from "../agents/ConversationRow.ts"
import { Agents } from "../agents/Agents.ts"
import { Channels } from "../channels/Channels.ts"
import { decodeChannel, type Order } from "../config/ChannelConfig.ts"
import { type Caller, type CommandRefused, type Done } from "../domain/Messages.ts"
import { group } from "./ChannelProtocol.ts"
import { speaking } from "./AgentApiHandlers.ts"

interface Named {
  readonly name: string
  readonly caller: Caller
}

const settingsOf = ({ agents, order, topic }: { agents: ReadonlyArray<string>; order: Order; topic: string }) =>
  decodeChannel({ agents: [...new Set(agents)], order, ...(topic === "" ? {} : { topic }) })

/** Refuses a command on a channel whose conversation is over in those words. */
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
    const channels = yield* Channels

    const on = <A, E>(named: Named, run: Effect.Effect<A, E>) => orOver(agents, channels, named)(run)

    return group.of({
      Channels: () => channels.list,
      Channel: (input) => on(input, channels.show(input.name, input.caller)),
      NewChannel: (input) =>
        on(
          input,
          Effect.flatMap(channels.create(input.name, settingsOf(input), input.caller), (done) =>
            withAbsent(agents, channels, input, input.agents, done)
          )
        ),
      CloseChannel: (input) => on(input, channels.close(input.name, input.caller)),
      AssignSeat: ({ agent, ...input }) =>
        on(
          input,
          Effect.flatMap(channels.assign(input.name, agent, input.caller), (done) =>
            withAbsent(agents, channels, input, [agent], done)
          )
        ),
      RemoveSeat: ({ agent, ...input }) => on(input, channels.remove(input.name, agent, input.caller)),
      PostToChannel: ({ text, ...input }) => on(input, channels.post(input.name, text, input.caller)),
      OrderChannel: ({ agents, order, ...input }) => on(input, channels.order(input.name, order, agents, input.caller)),
      GrantFloor: ({ agent, ...input }) => on(input, channels.grant(input.name, agent, input.caller)),
      SkipFloor: (input) => on(input, channels.skip(input.name, input.caller)),
      RequeueSeat: ({ agent, ...input }) => on(input, channels.requeue(input.name, agent, input.caller)),
      PauseChannel: ({ paused, ...input }) => on(input, channels.pause(input.name, paused, input.caller)),
      VoiceChannel: ({ channel, runId, utterance }) =>
        Effect.flatMap(speaking(agents, runId, "post"), ({ of: { agent, conversation } }) =>
          channels.voice({ conversation, agent }, utterance, channel === "" ? {} : { channel })
        )
    })
  })
)
