/**
 * Cells: the legal cells of a machine's table by name, one for each branch, and the cells
 * by which one event moves it: those of the states that it passes through with them.
 */
import { type AnyMachine, branchesOf, edges, type Tagged } from "../../src/core/event-actor/StateMachine.ts"

interface Named {
  readonly from: string
  readonly event: string
  readonly to: string
  readonly when?: string | undefined
}

export const nameOf = ({ event, from, to, when = "" }: Named): string => `${from} × ${event} → ${to} ${when}`.trim()

/** All of them. */
export const cellsOf = (machine: AnyMachine): ReadonlyArray<string> => (edges(machine) as Array<Named>).map(nameOf)

/** A cell as an event took it. */
export interface Taken {
  readonly cell: string
  readonly to: string
  readonly kind: string
  readonly actions: ReadonlyArray<Tagged & { readonly [field: string]: unknown }>
}

/** The cells by which the event moves the machine; none where it is refused. */
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
