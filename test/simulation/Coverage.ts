/**
 * Coverage: which cells of the machines' tables the worlds have come to, and which faults came
 * while which command was open. What none comes to is a gap in the workload, and is named.
 */
import { Autonomy } from "../../src/goals/GoalMachine.ts"
import { Plate } from "../../src/plates/PlateMachine.ts"
import { machines, names, unreached } from "../agents/TableWalk.ts"
import { cellsOf } from "../support/Cells.ts"
import { plateCell } from "./checks/Plates.ts"
import type { Cells } from "./checks/Tables.ts"
import { COMMANDS } from "./people/Commands.ts"
import { FAULTS } from "./Swarm.ts"

const tables = { ...machines, goal: Autonomy }
const all = [...names, "goal", "plate"] as const

export const add = (into: Cells, from: Cells): void => {
  for (const name of all) for (const cell of from[name]) into[name].add(cell)
}

/** What no world comes to on a plate. */
const offBoard = (state: string, tag: string): string | undefined => {
  if (/^(SessionStart|PromptSubmit|ToolStart|ToolCall|Stop)$/.test(tag))
    return "the five events of /events are another program's, and nobody has that here: test/plates has them"
  if (tag === "StatusNoted" && state === "Starting")
    return "a note is looked for by the session's id, and a plate that has one has started"
  if (tag.startsWith("Run") && /Awaiting/.test(state))
    return "an agent's run has one turn at a time, and its prompts end with their calls: test/plates has them"
  return undefined
}

const plateCells: ReadonlyArray<string> = Object.entries(Plate.table).flatMap(([state, row]) =>
  Object.entries(row).flatMap(([tag, cell]) =>
    typeof cell === "string" || offBoard(state, tag) !== undefined ? [] : [plateCell(state, tag)]
  )
)

export const coverage = (reached: Cells) =>
  all.map((name) => {
    // what no daemon comes to is named with its reason there
    const known: { readonly [cell: string]: string } = name === "goal" || name === "plate" ? {} : unreached[name]
    const legal = name === "plate" ? plateCells : cellsOf(tables[name])
    const cells = legal.filter((cell) => known[cell] === undefined)
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
