/**
 * Coverage: which cells of the machines' tables the worlds have come to. A cell that none
 * comes to is a gap in the workload, and is named.
 */
import { machines, names } from "../agents/TableWalk.ts"
import { cellsOf } from "../support/Cells.ts"
import type { Cells } from "./checks/Tables.ts"

export const add = (into: Cells, from: Cells): void => {
  for (const name of names) for (const cell of from[name]) into[name].add(cell)
}

export const coverage = (reached: Cells) =>
  names.map((name) => {
    const all = cellsOf(machines[name])
    const missing = all.filter((cell) => !reached[name].has(cell))
    return { name, all: all.length, reached: all.length - missing.length, missing }
  })
