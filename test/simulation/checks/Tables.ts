/**
 * Tables: each rune is a legal move of its machines and says what their tables say; and
 * which cells the worlds have come to.
 */
import type { WorkerState } from "../../../src/agents/machines/AgentStates.ts"
import type { Rune } from "../../../src/core/event-log/Rune.ts"
import { initial, Seat } from "../../../src/channels/SeatMachine.ts"
import type { Tagged } from "../../../src/core/event-actor/StateMachine.ts"
import { names, TableWalk } from "../../world/agents/TableWalk.ts"
import { taken } from "../../support/Cells.ts"
import type { Check, Verdicts } from "./Check.ts"

/** Of the agents' machines, of a goal's, a seat's and a plate's. */
export type Cells = TableWalk["reached"] & {
  readonly goal: Set<string>
  readonly seat: Set<string>
  readonly plate: Set<string>
}
export const noCells = (): Cells =>
  Object.fromEntries([...names, "goal", "seat", "plate"].map((name) => [name, new Set<string>()])) as unknown as Cells

/** A worker as it stood after each rune that moved it. */
export interface Stands {
  readonly at: Map<number, string>
  newest: string
}

export class Tables implements Check {
  readonly workers = new Map<string, Stands>()
  readonly cells = noCells()
  private readonly walk = new TableWalk(this.cells)
  private readonly verdicts: Verdicts

  constructor(verdicts: Verdicts) {
    this.verdicts = verdicts
  }

  rune(rune: Rune): void {
    try {
      this.walk.take([rune])
    } catch (error) {
      const what = error instanceof Error ? error.message : String(error)
      this.verdicts.broken("a rune is a legal move", `${rune.eventId} ${rune.kind}: ${what.slice(0, 200)}`)
    }
    this.walk.asked.length = 0
    if (rune.kind === "seat.moved") this.seated(rune)
    for (const address of [rune.actor, ...rune.moves]) if (address.startsWith("worker/")) this.stood(rune, address)
  }

  /** The channel's own moves are a promise of channels; here the rune is a cell of the table. */
  private seated({ eventId, from, payload, to }: Rune): void {
    const event = payload["event"] as Tagged & { readonly turnId?: string }
    // all that its table reads is in the event
    const before = { ...initial("", ""), member: true, turnId: event.turnId ?? null }
    const [cell] = taken(Seat, from ?? "", before, event)
    if (cell === undefined || cell.to !== to)
      return this.verdicts.broken("a rune is a legal move", `${eventId} seat.moved from ${from} by ${event._tag}`)
    this.cells.seat.add(cell.cell)
  }

  private stood({ eventId, stream }: Rune, address: string): void {
    const { now } = (this.walk.state(stream, address) as WorkerState | undefined) ?? {}
    if (now == null) return
    const { consecutiveErrors, totalErrors } = now.data
    const text = JSON.stringify({ state: now.state, consecutiveErrors, totalErrors })
    const stands = this.workers.get(`${stream} ${address}`) ?? { at: new Map<number, string>(), newest: text }
    stands.at.set(eventId, text)
    stands.newest = text
    this.workers.set(`${stream} ${address}`, stands)
  }
}
