/**
 * TurnRecovery: finds out after a restart, before the first floor is given, which agents are online, and how the turns
 * in progress ended.
 *
 * Guarantees: an answer that was given while the daemon was down is posted once. A turn that is still running
 * continues, and its time limit restarts. A turn that its agent does not know is started again under the same id.
 */
import { Effect } from "effect"
import type { AgentPort, Fate, Member } from "../domain/AgentPort.ts"
import type { CommandRefused } from "../domain/Messages.ts"
import { holder, seatsOf } from "./ChannelState.ts"
import type { ChannelActor } from "./ChannelActor.ts"
import type { FloorInput } from "./FloorInput.ts"
import type { ChannelRegistry } from "./ChannelRegistry.ts"

type Agents = AgentPort["Service"]

/** The input that reports what happened to a message. Undefined if the message still waits, or its turn is running. */
const overOf = (agent: string, messageId: string, fate: Fate, again: boolean): FloorInput | undefined => {
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

/** Handles the turn of the agent with the floor, if an agent has it. */
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
    // the channel has not been told that the agent went offline before its turn was over
    if (fate._tag === "Ended" && fate.died === true) yield* actor.tell({ _tag: "Left", agent, how: "disconnected" })
    const isPrompt = messageId === prompt
    // a run that is only starting has not received the prompt, and may never receive it: do not count it as received
    const isTold = fate._tag === "Carried" && fate.begun
    if (isPrompt && isTold) presence.carry(to.conversation, agent, prompt)
    // The agent has not read a withdrawn message, so it stays unread.
    const over = fate._tag === "Dropped" && !isPrompt ? undefined : overOf(agent, messageId, fate, isPrompt && goesOn)
    if (over !== undefined) yield* actor.tell(over)
    else if (isTold) yield* actor.tell({ _tag: "Carried", agent, messageIds: [messageId] })
  }
  // a signal that the agent gave in another turn does not end a turn whose prompt the agent has not read yet
  const isOver = fates.every(([, { _tag }]) => _tag !== "Carried" && _tag !== "Waiting")
  // The agent had given the signal that ends its turn, and no later post of a user continues the turn.
  const messageIds = later.flatMap(([id, { _tag }]) => (_tag === "Dropped" ? [id] : []))
  if (isOver) yield* actor.tell({ _tag: "Recalled", agent, prompt, messageIds })
  yield* actor.tell({ _tag: "Resumed" })
})

/** Withdraws the prompts of earlier turns again: an earlier daemon may have been killed before it did so. */
const recallAgain = Effect.fnUntraced(function* (agents: Agents, { channel }: ChannelActor) {
  for (const { agent, prompt, stand } of seatsOf(channel)) {
    if (prompt === null || stand.state === "ACTIVE") continue
    const to = { conversation: channel.conversation, agent }
    yield* agents.withdraw(to, [prompt]).pipe(
      Effect.flatMap((isBack) =>
        isBack ? Effect.void : agents.interrupt(to, prompt, "its turn in the channel is over")
      ),
      // ignore errors: an agent that no longer exists has no messages
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
    const isBetween = disconnected === "between"
    if (disconnected !== undefined) yield* actor.tell({ _tag: "Left", agent, how: "disconnected", isBetween })
  }
  // settle the turn first: its answer is posted even if its agent has gone offline since
  yield* settleTurn(agents, registry, actor)
  for (const agent of Object.keys(actor.channel.seats)) {
    const isOnline = registry.presence.online(conversation, agent)
    yield* actor.tell(isOnline ? { _tag: "Came", agent } : { _tag: "Left", agent, how: "stopped" })
  }
  yield* recallAgain(agents, actor)
  // everything is in the log before any agent gets the floor
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
