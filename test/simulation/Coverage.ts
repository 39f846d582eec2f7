/**
 * Coverage: which cells of the machines' tables the worlds have come to, and which faults came
 * while which command was open. What none comes to is a gap in the workload, and is named.
 */
import { Autonomy } from "../../src/goals/GoalMachine.ts"
import { Plate } from "../../src/plates/PlateMachine.ts"
import { machines, names, unreached } from "../agents/TableWalk.ts"
import { cellsOf } from "../support/Cells.ts"
import type { Cells } from "./checks/Tables.ts"
import { COMMANDS } from "./people/Commands.ts"
import { FAULTS } from "./Swarm.ts"

const tables = { ...machines, goal: Autonomy, plate: Plate }
const all = [...names, "goal", "plate"] as const

export const add = (into: Cells, from: Cells): void => {
  for (const name of all) for (const cell of from[name]) into[name].add(cell)
}

export const coverage = (reached: Cells) =>
  all.map((name) => {
    // what no daemon comes to is named with its reason there
    const known: { readonly [cell: string]: string } = name === "goal" || name === "plate" ? {} : unreached[name]
    const cells = cellsOf(tables[name]).filter((cell) => known[cell] === undefined)
    const missing = cells.filter((cell) => !reached[name].has(cell))
    return { name, all: cells.length, reached: cells.length - missing.length, missing }
  })

/** As it is counted among what was reached. */
export const faultWhile = (fault: string, command: string): string => `fault ${fault} while ${command} is open`

/** Those that are answered in the moment in which they are asked: nothing comes between. */
const AT_ONCE =
  "edit ps one why verify log follow status projects plates calls conversation conversations channelShow goalShow goals desk plateShow".split(
    " "
  )

/** Commands that wait for an answer. */
const asked = COMMANDS.filter((command) => !AT_ONCE.includes(command))

export const faultsAtCommands = (reached: ReadonlyMap<string, number>) => {
  const all = asked.flatMap((command) => FAULTS.map((fault) => faultWhile(fault, command)))
  return { all: all.length, missing: all.filter((one) => !reached.has(one)) }
}
