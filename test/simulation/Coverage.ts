/**
 * Coverage: which cells of the machines' tables the worlds have come to, and which faults came
 * while which command was open. What none comes to is a gap in the workload, and is named.
 */
import { Autonomy } from "../../src/goals/GoalMachine.ts"
import { machines, names } from "../agents/TableWalk.ts"
import { cellsOf } from "../support/Cells.ts"
import type { Cells } from "./checks/Tables.ts"
import { COMMANDS } from "./people/Commands.ts"
import { FAULTS } from "./Swarm.ts"

const tables = { ...machines, goal: Autonomy }
const all = [...names, "goal"] as const

export const add = (into: Cells, from: Cells): void => {
  for (const name of all) for (const cell of from[name]) into[name].add(cell)
}

export const coverage = (reached: Cells) =>
  all.map((name) => {
    const cells = cellsOf(tables[name])
    const missing = cells.filter((cell) => !reached[name].has(cell))
    return { name, all: cells.length, reached: cells.length - missing.length, missing }
  })

/** As it is counted among what was reached. */
export const faultWhile = (fault: string, command: string): string => `fault ${fault} while ${command} is open`

/** Commands that wait for an answer. */
const asked = COMMANDS.filter((command) => command !== "edit")

export const faultsAtCommands = (reached: ReadonlyMap<string, number>) => {
  const all = asked.flatMap((command) => FAULTS.map((fault) => faultWhile(fault, command)))
  return { all: all.length, missing: all.filter((one) => !reached.has(one)) }
}
