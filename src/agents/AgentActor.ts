/**
 * AgentActor: the Agent machine of one agent, animated: its life from the spawn to
 * its end, one actor for each incarnation.
 *
 * The worker makes it ready and the turns make it busy; it says when it ends, which
 * ends the worker. It decides nothing that its table does not.
 */
import { Effect } from "effect"
import type { DeadLetters } from "../event-actor/DeadLetters.ts"
import * as MachineActor from "../event-actor/MachineActor.ts"
import type { RuneRef, RuneDraft } from "../event-log/Rune.ts"
import * as AgentMachine from "./AgentMachine.ts"
import { step } from "../event-actor/StateMachine.ts"
import type { EventLog } from "../event-log/EventLog.ts"

export type AgentActor = MachineActor.MachineActor<AgentMachine.State, AgentMachine.Event, AgentMachine.Data>
export type Snapshot = AgentActor["snapshot"]
type Act = MachineActor.Context<AgentMachine.State, AgentMachine.Event, AgentMachine.Data>

/** What its life moves. */
export interface Life {
  readonly agent: string
  readonly conversation: string
  readonly log: EventLog["Service"]
  readonly deadLetters: DeadLetters["Service"]
  /** It has nothing to do, and can be reached. */
  readonly idle: (cause: RuneRef) => Effect.Effect<void>
  readonly interruptTurn: (turnId: string, reason: string) => Effect.Effect<void>
  readonly forceStop: (turnId: string) => Effect.Effect<void>
  /** How the turn that it is busy with has ended; undefined while it has not. */
  readonly ended: (turnId: string) => AgentMachine.Event | undefined
  /** It has ended: its worker ends, whoever watches is told. */
  readonly release: (data: AgentMachine.Data, failed: boolean, cause: RuneRef) => Effect.Effect<void>
}

const perform = (life: Life, action: AgentMachine.Action, act: Act): Effect.Effect<void> => {
  const { turnId } = action
  if (turnId === null) return Effect.void
  switch (action._tag) {
    case "StartTurn": // its TurnActor has started it, and says so here
      return Effect.void
    case "InterruptTurn":
      return life.interruptTurn(turnId, `the budget of ${act.snapshot.data.spent} is spent`)
    case "ForceStopTurn":
      return life.forceStop(turnId)
  }
}

export const make = (life: Life, snapshot: Snapshot) =>
  Effect.flatMap(
    MachineActor.kind({
      machine: AgentMachine.Agent,
      log: life.log,
      deadLetters: life.deadLetters,
      perform: (action: AgentMachine.Action, act: Act) => perform(life, action, act),
      activities: {
        // its worker tells when there is a place to work in, or that there cannot be one
        InitAgent: () => Effect.void,
        TakeWork: (act: Act) => life.idle(act.cause),
        WatchTurn: (act: Act) => {
          const ended = life.ended(act.snapshot.data.turnId ?? "")
          return ended === undefined ? Effect.void : act.self.tell(ended, act.cause)
        },
        ReleaseAgent: (act: Act) => life.release(act.snapshot.data, act.snapshot.state === "failed", act.cause)
      }
    }),
    (kind) => {
      const actor = addressOf(life.agent)
      return kind.make({ address: `${life.conversation}/${actor}`, actor, stream: life.conversation, snapshot })
    }
  )

export const addressOf = (agent: string): string => `agent/${agent}`

/** Where an incarnation's machine stands before its first rune. */
export const fresh: Snapshot = MachineActor.start(AgentMachine.Agent, AgentMachine.initial())

/** The whole life of one that ends before anything of it lives: its runes, without an actor. */
export const unlived = (
  { agent, conversation }: Pick<Life, "agent" | "conversation">,
  events: ReadonlyArray<AgentMachine.Event>
): ReadonlyArray<RuneDraft> => {
  const drafts: Array<RuneDraft> = []
  let { data, state }: { data: AgentMachine.Data; state: AgentMachine.State } = fresh
  for (const event of events) {
    const moved = step(AgentMachine.Agent, state, data, event)
    if (moved._tag === "Refused") continue
    drafts.push({
      stream: conversation,
      kind: moved.kind,
      actor: addressOf(agent),
      from: state,
      to: moved.state,
      trigger: event._tag,
      payload: moved.payload
    })
    ;({ data, state } = moved)
  }
  return drafts
}
