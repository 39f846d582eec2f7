/**
 * TableWalk: the runes of lives, read as the moves of the agents' five machines: a rune's
 * own machine by its event, the machines in `moves` by what joins it beside their tables.
 *
 * Guarantees: each move is a legal cell of its table, and the rune says what the cell says;
 * the states are those of the actors' own folds.
 */
import assert from "node:assert/strict"
import * as AgentActor from "../../../src/agents/actors/AgentActor.ts"
import * as AgentMachine from "../../../src/agents/machines/AgentMachine.ts"
import type { LifeState, TurnState, WorkerState } from "../../../src/agents/machines/AgentStates.ts"
import * as ConversationMachine from "../../../src/agents/machines/ConversationMachine.ts"
import type { ConversationSnapshot } from "../../../src/projects/ConversationRecovery.ts"
import * as ToolMachine from "../../../src/agents/machines/ToolMachine.ts"
import * as ToolsState from "../../../src/agents/machines/ToolsState.ts"
import * as TurnActor from "../../../src/agents/actors/TurnActor.ts"
import * as TurnMachine from "../../../src/agents/machines/TurnMachine.ts"
import * as WorkerActor from "../../../src/agents/actors/WorkerActor.ts"
import * as WorkerMachine from "../../../src/agents/machines/WorkerMachine.ts"
import { type AnyMachine, evolve, type Tagged } from "../../../src/core/event-actor/StateMachine.ts"
import { start } from "../../../src/core/event-actor/StateMachineActor.ts"
import type { Rune } from "../../../src/core/event-log/Rune.ts"
import { nameOf, taken } from "../../support/Cells.ts"

export const machines = {
  worker: WorkerMachine.Worker,
  turn: TurnMachine.Turn,
  tool: ToolMachine.Tool,
  agent: AgentMachine.Agent,
  conversation: ConversationMachine.Conversation
} as const satisfies { readonly [name: string]: AnyMachine }
export type Name = keyof typeof machines
export const names = Object.keys(machines) as ReadonlyArray<Name>

/** An action that a move asks for. */
export interface Asked {
  readonly name: string
  readonly action: Tagged & { readonly [field: string]: unknown }
  readonly rune: Rune
}

/** Runes of moves that no fold reads. */
const LAZY: ReadonlyArray<string> = [...TurnMachine.lazy, ...ToolMachine.lazy]
const UNBORN = { state: "[*]", data: AgentMachine.initial() } as const

const kindsOf: { readonly [name in Name]: ReadonlyArray<string> } = {
  worker: [...WorkerMachine.kinds, "worker.started"],
  turn: TurnMachine.kinds,
  tool: ToolMachine.kinds,
  agent: AgentMachine.kinds,
  conversation: ConversationMachine.kinds
}

/** Where the actors of one log stand. */
export class TableWalk {
  readonly reached: { readonly [name in Name]: Set<string> }
  readonly asked: Array<Asked> = []
  private readonly states = new Map<string, unknown>()
  private last = 0

  constructor(reached: TableWalk["reached"]) {
    this.reached = reached
  }

  /** Further runes of the log, oldest first; those from before are left out. */
  take(runes: ReadonlyArray<Rune>): void {
    for (const rune of runes) {
      if (rune.eventId <= this.last) continue
      this.last = rune.eventId
      const { actor, kind, moves } = rune
      const name = actor.slice(0, actor.indexOf("/")) as Name
      if (machines[name] !== undefined && kindsOf[name].includes(kind)) this.own(name, rune)
      for (const address of moves) this.joins(address, rune)
    }
  }

  /** Where a machine's actor of a stream stands; undefined before its first move. */
  state(stream: string, address: string): unknown {
    return this.states.get(`${stream} ${address}`)
  }

  private stand<S>(address: string, rune: Rune, fresh: S): S {
    return (this.states.get(`${rune.stream} ${address}`) as S | undefined) ?? fresh
  }

  private stands(address: string, rune: Rune, state: unknown): void {
    this.states.set(`${rune.stream} ${address}`, state)
  }

  private move(name: Name, from: { readonly state: string; readonly data: unknown }, event: Tagged, rune: Rune) {
    const cells = taken(machines[name], from.state, from.data, event)
    assert.ok(cells.length > 0, `rune ${rune.eventId}: ${name}, ${from.state} × ${event._tag} is legal`)
    for (const { actions, cell } of cells) {
      this.reached[name].add(cell)
      for (const action of actions) this.asked.push({ name: `${name}.${action._tag}`, action, rune })
    }
    return cells[0]!
  }

  /** A move that the rune states itself. */
  private stated(name: Name, from: { readonly state: string; readonly data: unknown }, rune: Rune): void {
    const { kind, to } = this.move(name, from, rune.payload["event"] as Tagged, rune)
    const said = `${rune.from} → ${rune.to} by ${rune.kind}`
    const meant = `${from.state} → ${to} by ${kind}`
    assert.ok(said === meant, `rune ${rune.eventId} says ${said}, its table ${meant}`)
  }

  private own(name: Name, rune: Rune): void {
    const { actor, from, kind, to, trigger } = rune
    if (LAZY.includes(kind)) return void this.reached[name].add(nameOf({ from: from!, event: trigger!, to: to! }))
    switch (name) {
      case "worker": {
        const before = this.stand<WorkerState>(actor, rune, WorkerActor.fresh)
        if (kind !== "worker.started") this.stated(name, before.now!, rune)
        return this.stands(actor, rune, WorkerActor.apply(before, rune, false))
      }
      case "turn": {
        const before = this.stand<TurnState>(actor, rune, TurnActor.fresh)
        this.stated(name, before, rune)
        return this.stands(actor, rune, TurnActor.apply(before, rune))
      }
      case "tool": {
        const address = actor.slice(0, actor.lastIndexOf("/"))
        const before = this.stand(address, rune, ToolsState.fresh)
        this.stated(
          name,
          ToolsState.get(before.open, actor.slice(address.length + 1))?.snapshot ?? ToolsState.unborn,
          rune
        )
        return this.stands(address, rune, ToolsState.apply(before, rune))
      }
      case "agent": {
        const before = this.stand<LifeState>(actor, rune, AgentActor.fresh)
        this.stated(name, trigger === "spawn_requested" ? UNBORN : before, rune)
        return this.stands(actor, rune, AgentActor.apply(before, rune, false))
      }
      case "conversation": {
        // an archived one is told of in another stream
        const { Conversation, initial } = ConversationMachine
        const before = (this.states.get(actor) as ConversationSnapshot | undefined) ?? start(Conversation, initial())
        this.stated(name, before, rune)
        return void this.states.set(actor, evolve(Conversation, before, rune))
      }
    }
  }

  /** A move of a sibling by the same rune. */
  private joins(address: string, rune: Rune): void {
    if (address.startsWith("worker/")) {
      const before = this.stand<WorkerState>(address, rune, WorkerActor.fresh)
      this.move("worker", before.now!, WorkerMachine.joins(rune)!, rune)
      this.stands(address, rune, WorkerActor.apply(before, rune, true))
    } else if (address.startsWith("agent/")) {
      const before = this.stand<LifeState>(address, rune, AgentActor.fresh)
      this.move("agent", before, AgentMachine.joins(rune)!, rune)
      this.stands(address, rune, AgentActor.apply(before, rune, true))
    } else assert.match(address, /^inbox\//, `rune ${rune.eventId} moves a machine of ours`)
  }
}
