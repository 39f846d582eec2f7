/**
 * Cells: names the legal cells of a machine's table, one for each branch. It also finds the cells that an event takes,
 * including those of states that the machine passes through.
 */
import { type AnyMachine, branchesOf, edges, type Tagged } from "../../src/core/event-actor/StateMachine.ts"

interface Named {
  readonly from: string
  readonly event: string
  readonly to: string
  readonly when?: string | undefined
}

export const nameOf = ({ event, from, to, when = "" }: Named): string => `${from} × ${event} → ${to} ${when}`.trim()

/** Names of all legal cells of the machine. */
export const cellsOf = (machine: AnyMachine): ReadonlyArray<string> => (edges(machine) as Array<Named>).map(nameOf)

/** A cell that an event took, with its result. */
export interface Taken {
  readonly cell: string
  readonly to: string
  readonly kind: string
  readonly actions: ReadonlyArray<Tagged & { readonly [field: string]: unknown }>
}

/** The cells that the event takes; none if the machine refuses it. */
export const taken = (machine: AnyMachine, from: string, before: unknown, event: Tagged): ReadonlyArray<Taken> => {
  const cell = machine.table[from]?.[event._tag]
  if (cell === undefined || typeof cell === "string" || machine.fenced?.(before, event) === true) return []
  const data = cell.set === undefined ? before : machine.updates[cell.set]!(before, event)
  const branch = branchesOf(cell).find(
    ({ when }) => when === undefined || machine.guards[when as string]!(data, event)
  )!
  const { act = [], rune: kind = machine.rune, to, when } = branch
  const one: Taken = {
    cell: nameOf({ from, event: event._tag, to, when }),
    to,
    kind,
    actions: act.map((tag: string) => machine.actions[tag]!(data, event))
  }
  const passes = machine.passing?.[to]
  return passes === undefined ? [one] : [one, ...taken(machine, to, data, passes(data))]
}
