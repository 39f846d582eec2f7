/**
 * AgentLife: an agent's Inbox, Turn and Agent tables as one commit scope, its conversation
 * as another, on the daemon's own tables: an example of what `follow` and `joins` are for.
 *
 *     send ─► inbox.received ─► turn.started ─► inbox.delivered ─► agent.busy   one append
 *     the same, joined: inbox.received ─► turn.started (moves inbox and agent)  one append
 *
 * Nothing here asks, retries, sweeps or settles: what siblings hear of a move is durable
 * together with it, or not at all.
 */
import * as Agent from "../../../src/agents/machines/AgentMachine.ts"
import * as Conversation from "../../../src/agents/machines/ConversationMachine.ts"
import * as Inbox from "../../../src/agents/machines/Inbox.ts"
import * as Turn from "../../../src/agents/machines/TurnMachine.ts"
import type { ActorHandle } from "../../../src/core/event-actor/ActorHandle.ts"
import type { System } from "../../../src/core/event-actor/ActorSystem.ts"
import { type Context, tell, type Tell } from "../../../src/core/event-actor/EventSourcedActor.ts"
import { fold, unheard } from "../../../src/core/event-actor/ScopeFold.ts"
import { type Moved, stateMachineActor } from "../../../src/core/event-actor/StateMachineActor.ts"
import type { Snapshot } from "../../../src/core/event-actor/StateMachine.ts"
import { causeOf, type Rune } from "../../../src/core/event-log/Rune.ts"
import { scopeIn } from "./Lab.ts"

type InboxState = Snapshot<"Open", Inbox.Data>
type TurnState = Snapshot<Turn.State, Turn.Data>
type AgentState = Snapshot<Agent.State, Agent.Data>
type ConversationState = Snapshot<Conversation.State, Conversation.Data>
type ConversationHandle = ActorHandle<ConversationState, Conversation.Event>

/** The input for the process; the only action of a plain turn. */
export interface GiveInput {
  readonly _tag: "GiveInput"
  readonly turnId: string
  readonly text: string
}

export interface Around {
  readonly agent: string
  /** Siblings join the runes of the turn in place of writing their own. */
  readonly isJoined: boolean
  readonly conversation: ConversationHandle
  /** Writes to the process's input. */
  readonly give: (input: GiveInput) => void
}

const namesOf = (agent: string) => ({ inbox: `inbox/${agent}`, turn: `turn/${agent}`, agent: `agent/${agent}` })

/** The next turn, where there is something to do and nothing against it; its id comes from the rune that begins it. */
const nextTurn = (
  { agent, conversation }: Around,
  inbox: Inbox.Data,
  turn: TurnState,
  life: Agent.State,
  { now, nextId, ref }: Context
): ReadonlyArray<Tell> => {
  const names = namesOf(agent)
  if (turn.state !== "idle" || life !== "idle") return []
  // A hint: who pauses it meanwhile has the last word, by message.
  const { state } = conversation.state
  if (state !== "active" && state !== "created") return []
  const waiting = [
    ...inbox.carried.filter(({ messageId }) => turn.data.unfinished.includes(messageId)),
    ...inbox.waiting
  ]
  if (waiting.length === 0) return []
  return [
    tell(ref<Turn.Event>(names.turn), {
      _tag: "start_turn",
      turnId: `turn-${nextId}`,
      agentId: agent,
      input: waiting.map(({ text }) => text).join("\n"),
      source: turn.data.unfinished.length > 0 ? "resume" : "queue",
      messageIds: waiting.map(({ messageId }) => messageId),
      at: now
    })
  ]
}

const inboxActor = (around: Around) =>
  stateMachineActor<"Open", Inbox.Event, Inbox.Data, never>({
    machine: Inbox.Inbox,
    data: Inbox.initial,
    joins: Inbox.joins,
    follow: ({ after, context, event }) =>
      event._tag !== "Received"
        ? undefined
        : {
            tells: nextTurn(
              around,
              after.data,
              context.read<TurnState>(namesOf(around.agent).turn),
              context.read<AgentState>(namesOf(around.agent).agent).state,
              context
            ),
            reply: { eventId: context.nextId }
          }
  })

const endOf = (turnId: string, { outcome, reason }: NonNullable<Turn.Data["ended"]>): Agent.Event =>
  outcome === "error"
    ? { _tag: "turn_error", turnId, message: reason ?? "" }
    : { _tag: outcome === "completed" ? "turn_completed" : "turn_interrupted", turnId }

const began = (around: Around, { after, context, event }: Moved<Turn.State, Turn.Event, Turn.Data>) => {
  const names = namesOf(around.agent)
  const { messageIds } = after.data
  const turnId = after.data.turnId!
  const acts: ReadonlyArray<GiveInput> = [
    { _tag: "GiveInput", turnId, text: event._tag === "start_turn" || event._tag === "steer" ? event.input : "" }
  ]
  const news = tell(around.conversation, { _tag: "new_turn", turnId, agentId: around.agent })
  if (around.isJoined) return { moves: [names.inbox, names.agent], tells: [news], acts }
  return {
    tells: [
      tell(context.ref<Inbox.Event>(names.inbox), { _tag: "Delivered", runId: turnId, messageIds }),
      tell(context.ref<Agent.Event>(names.agent), { _tag: "turn_assigned", turnId }),
      news
    ],
    acts
  }
}

const ended = (around: Around, { after, context }: Moved<Turn.State, Turn.Event, Turn.Data>) => {
  const names = namesOf(around.agent)
  const { data } = after
  const turnId = data.turnId!
  const tells: ReadonlyArray<Tell> = [
    tell(around.conversation, { _tag: "turn_completed", turnId, agentId: around.agent, outcome: data.ended!.outcome })
  ]
  if (around.isJoined) return { moves: [names.agent], tells }
  return { tells: [tell(context.ref<Agent.Event>(names.agent), endOf(turnId, data.ended!)), ...tells] }
}

const turnActor = (around: Around) =>
  stateMachineActor<Turn.State, Turn.Event, Turn.Data, Turn.Action, GiveInput>({
    machine: Turn.Turn,
    data: Turn.initial(),
    follow: (move) => {
      const { after, before, context, event } = move
      if (before.state === "idle" && (event._tag === "start_turn" || event._tag === "steer")) return began(around, move)
      if (before.data.ended === null && after.data.ended !== null) return ended(around, move)
      if (after.state !== "idle") return undefined
      const names = namesOf(around.agent)
      const life = context.read<AgentState>(names.agent).state
      return { tells: nextTurn(around, context.read<InboxState>(names.inbox).data, after, life, context) }
    },
    perform: (action) => {
      if (action._tag === "GiveInput") around.give(action)
    }
  })

const agentActor = (around: Around) =>
  stateMachineActor<Agent.State, Agent.Event, Agent.Data, Agent.Action>({
    machine: Agent.Agent,
    data: Agent.initial(),
    joins: Agent.joins,
    follow: ({ after, before, context }) => {
      if (before.state !== "running_turn") return undefined
      const names = namesOf(around.agent)
      const turn = context.read<TurnState>(names.turn)
      return { tells: nextTurn(around, context.read<InboxState>(names.inbox).data, turn, after.state, context) }
    },
    perform: () => {}
  })

const conversationActor = stateMachineActor<
  Conversation.State,
  Conversation.Event,
  Conversation.Data,
  Conversation.Action
>({ machine: Conversation.Conversation, data: Conversation.initial(), perform: () => {} })

/** The states of the actors of one stream, by the log. */
export const foldOf = (runes: ReadonlyArray<Rune>, agent: string) => {
  const names = namesOf(agent)
  const around = { agent, isJoined: false, conversation: undefined as never, give: () => {} }
  const states = fold(
    {
      [names.inbox]: inboxActor(around),
      [names.turn]: turnActor(around),
      [names.agent]: agentActor(around),
      "conversation/c": conversationActor
    },
    runes
  )
  return {
    inbox: states[names.inbox] as InboxState,
    turn: states[names.turn] as TurnState,
    agent: states[names.agent] as AgentState,
    conversation: states["conversation/c"] as ConversationState
  }
}
export type Folded = ReturnType<typeof foldOf>

export const conversationScope = (system: System, from: ConversationState) => {
  const scope = scopeIn(system, "c", { id: "conversation/c" })
  return { scope, conversation: scope.add("conversation/c", conversationActor, from) }
}

export const agentScope = (system: System, around: Around, from: Folded) => {
  const names = namesOf(around.agent)
  const scope = scopeIn(system, "c", { id: names.agent })
  return {
    scope,
    inbox: scope.add(names.inbox, inboxActor(around), from.inbox),
    turn: scope.add(names.turn, turnActor(around), from.turn),
    agent: scope.add(names.agent, agentActor(around), from.agent)
  }
}

/** The one repair that is left: what the conversation has not heard of is told again. */
export const tellAgain = (runes: ReadonlyArray<Rune>, agentId: string, conversation: ConversationHandle): void => {
  const said = runes.filter(({ actor, kind }) => actor === `turn/${agentId}` && kind !== "turn.finalized")
  const received = runes.filter(({ actor }) => actor === "conversation/c")
  for (const rune of unheard(said, received)) {
    const { from, payload, to } = rune
    const turnId = String(payload["turn_id"])
    if (from === "idle") conversation.tellNow({ _tag: "new_turn", turnId, agentId }, causeOf(rune))
    else if (to === "completed" || to === "interrupted" || to === "error") {
      conversation.tellNow({ _tag: "turn_completed", turnId, agentId, outcome: to }, causeOf(rune))
    }
  }
}
