/**
 * TurnRecovery: what is found out before the first floor is given: who is there, and
 * what became of the turns that were under way.
 *
 * Guarantees: an answer that was given while nobody listened is posted, once; a
 * turn that goes on goes on with a fresh time limit; one that nobody knows of is
 * begun again under the same id.
 */
import { Effect } from "effect"
import type { AgentPort, Fate, Member } from "../domain/AgentPort.ts"
import type { CommandRefused } from "../domain/Messages.ts"
import { holder, seatsOf } from "./ChannelState.ts"
import type { ChannelActor } from "./ChannelActor.ts"
import type { Input } from "./Input.ts"
import type { ChannelRegistry } from "./ChannelRegistry.ts"

type Agents = AgentPort["Service"]

/** The input for a message's fate; undefined: its turn is still to come, or under way. */
const overOf = (agent: string, messageId: string, fate: Fate, again: boolean): Input | undefined => {
  switch (fate._tag) {
    case "Ended": {
      const { outcome, output, turnId } = fate
      return { _tag: "Ended", agent, turnId, messageIds: [messageId], outcome, reason: null, output, again }
    }
    case "Dropped":
      return {
        _tag: "Ended",
        agent,
        turnId: messageId,
        messageIds: [messageId],
        outcome: "interrupted",
        reason: "it was dropped",
        output: "",
        again: false
      }
    default:
      return undefined
  }
}

/** The turn that is under way there, if one is. */
const settleTurn = Effect.fnUntraced(function* (agents: Agents, { presence }: ChannelRegistry, actor: ChannelActor) {
  const seated = holder(actor.channel)
  if (seated === undefined || seated.prompt === null) return
  const { agent, prompt } = seated
  const to = { conversation: actor.channel.conversation, agent }
  const fates: Array<readonly [messageId: string, fate: Fate]> = []
  for (const messageId of [prompt, ...(actor.channel.floor?.sent ?? [])]) {
    const fate: Fate = yield* Effect.catch(agents.fate(to, messageId), (error: CommandRefused) =>
      Effect.as(Effect.logWarning(`${agent}: ${error.message}`), { _tag: "Unknown" } as const)
    )
    fates.push([messageId, fate])
  }
  const later = fates.slice(1)
  const goesOn = later.some(([, { _tag }]) => _tag === "Carried" || _tag === "Waiting" || _tag === "Ended")
  for (const [messageId, fate] of fates) {
    // the channel had not heard of it: the agent is gone before its turn is over
    if (fate._tag === "Ended" && fate.died === true) yield* actor.tell({ _tag: "Left", agent, how: "disconnected" })
    const isPrompt = messageId === prompt
    // a run that is only being started has told it nothing, and may never
    const isTold = fate._tag === "Carried" && fate.begun
    if (isPrompt && isTold) presence.carry(to.conversation, agent, prompt)
    // One that was taken back said nothing, and stays new.
    const over = fate._tag === "Dropped" && !isPrompt ? undefined : overOf(agent, messageId, fate, isPrompt && goesOn)
    if (over !== undefined) yield* actor.tell(over)
    else if (isTold) yield* actor.tell({ _tag: "Carried", agent, messageIds: [messageId] })
  }
  // a signal that it gave in another turn ends no floor whose prompt it has still to hear
  const isOver = fates.every(([, { _tag }]) => _tag !== "Carried" && _tag !== "Waiting")
  // It had ended its turn, and nothing that was said meanwhile keeps it.
  const messageIds = later.flatMap(([id, { _tag }]) => (_tag === "Dropped" ? [id] : []))
  if (isOver) yield* actor.tell({ _tag: "Recalled", agent, prompt, messageIds })
  yield* actor.tell({ _tag: "Resumed" })
})

/** Takes back again what a daemon took back and could not say before it died. */
const recallAgain = Effect.fnUntraced(function* (agents: Agents, { channel }: ChannelActor) {
  for (const { agent, prompt, stand } of seatsOf(channel)) {
    if (prompt === null || stand.state === "ACTIVE") continue
    const to = { conversation: channel.conversation, agent }
    yield* agents.withdraw(to, [prompt]).pipe(
      Effect.flatMap((isBack) =>
        isBack ? Effect.void : agents.interrupt(to, prompt, "its turn in the channel is over")
      ),
      // an agent that is gone carries nothing
      Effect.ignore
    )
  }
})

const settleChannel = Effect.fnUntraced(function* (
  agents: Agents,
  registry: ChannelRegistry,
  actor: ChannelActor,
  members: ReadonlyArray<Member>
) {
  const { conversation } = actor.channel
  for (const { agent, disconnected } of members) {
    if (disconnected === true) yield* actor.tell({ _tag: "Left", agent, how: "disconnected" })
  }
  // The turn first: what it came to is posted even if its agent has gone since.
  yield* settleTurn(agents, registry, actor)
  for (const agent of Object.keys(actor.channel.seats)) {
    const isOnline = registry.presence.online(conversation, agent)
    yield* actor.tell(isOnline ? { _tag: "Came", agent } : { _tag: "Left", agent, how: "stopped" })
  }
  yield* recallAgain(agents, actor)
  // All of it is in the log before any floor is given.
  yield* Effect.ignore(actor.ask({ _tag: "Look" }))
})

export const settle = Effect.fnUntraced(function* (agents: Agents, registry: ChannelRegistry) {
  for (const conversation of registry.conversations) {
    const members = yield* agents.members(conversation)
    for (const member of members) registry.presence.settle(member)
    for (const actor of registry.of(conversation)) yield* settleChannel(agents, registry, actor, members)
  }
  registry.settle()
})
