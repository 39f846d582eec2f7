/**
 * Coverage: what the worlds have come to, of all that there is: the cells of the machines'
 * tables, the faults while each command is open, the refusals, the ways to end. What none
 * comes to is a gap in the workload, and is named.
 */
import { Seat } from "../../src/channels/SeatMachine.ts"
import { Autonomy } from "../../src/goals/GoalMachine.ts"
import { Plate } from "../../src/plates/PlateMachine.ts"
import { machines, names } from "../world/agents/TableWalk.ts"
import { cellsOf } from "../support/Cells.ts"
import { whyNot } from "../support/Unreached.ts"
import { ENDS } from "./checks/Ends.ts"
import { plateCell } from "./checks/Plates.ts"
import type { Cells } from "./checks/Tables.ts"
import { COMMANDS } from "./people/Commands.ts"
import { names as refusals } from "./Refusals.ts"
import { MISHAPS } from "./Swarm.ts"

export const tables = { ...machines, goal: Autonomy, seat: Seat }
const all = [...names, "goal", "seat", "plate"] as const

/** So much of a whole is reached. */
export interface Covered {
  readonly name: string
  readonly all: number
  readonly reached: number
  readonly missing: ReadonlyArray<string>
}

export const add = (into: Cells, from: Cells): void => {
  for (const name of all) for (const cell of from[name]) into[name].add(cell)
}

/** The reason for which no world comes to a plate's cell. */
const offBoard = (state: string, tag: string): string | undefined => {
  if (/^(SessionStart|PromptSubmit|ToolStart|ToolCall|Stop)$/.test(tag))
    return "the five events of /events are another program's, and nobody has that here: test/world/plates has them"
  if (tag === "StatusNoted" && state === "Starting")
    return "a note is looked for by the session's id, and a plate that has one has started"
  if (tag.startsWith("Run") && /Awaiting/.test(state))
    return "an agent's run has one turn at a time, and its prompts end with their calls: test/world/plates has them"
  if (/^Run(ToolCalled|ApprovalRequested|TurnEnded)$/.test(tag) && /^(Starting|Idle|Error)$/.test(state))
    return "a run's calls, and its turn's end, are told within a turn that was told first, in order: test/world/plates has them"
  return undefined
}

const plateCells: ReadonlyArray<string> = Object.entries(Plate.table).flatMap(([state, row]) =>
  Object.entries(row).flatMap(([tag, cell]) =>
    typeof cell === "string" || offBoard(state, tag) !== undefined ? [] : [plateCell(state, tag)]
  )
)

/** Of each table: its legal cells but those that no daemon comes to, which are named with the reason in Unreached. */
export const coverage = (reached: Cells): ReadonlyArray<Covered> =>
  all.map((name) => {
    const legal = name === "plate" ? plateCells : cellsOf(tables[name])
    const cells = name === "plate" ? legal : legal.filter((cell) => whyNot(name, cell) === undefined)
    const missing = cells.filter((cell) => !reached[name].has(cell))
    return { name, all: cells.length, reached: cells.length - missing.length, missing }
  })

/** As they are counted among what was reached. */
export const faultWhile = (fault: string, command: string): string => `fault ${fault} while ${command} is open`
export const refused = (refusal: string): string => `refused: ${refusal}`

/** Commands that are answered in the moment in which they are asked: nothing comes between. */
const AT_ONCE =
  "edit ps one why verify log follow status projects plates calls conversation conversations channelShow goalShow goals desk plateShow elsewhere".split(
    " "
  )

/** Commands that wait for an answer. */
const asked = COMMANDS.filter((command) => !AT_ONCE.includes(command))

const seen = (name: string, of: ReadonlyArray<string>, reached: ReadonlyMap<string, number>): Covered => {
  const missing = of.filter((one) => !reached.has(one))
  return { name, all: of.length, reached: of.length - missing.length, missing }
}

/** Faults while commands are open, refusals, ways to end. */
export const sometimes = (reached: ReadonlyMap<string, number>): ReadonlyArray<Covered> => [
  ...MISHAPS.map((fault) =>
    seen(
      `${fault} while a command is open`,
      asked.map((command) => faultWhile(fault, command)),
      reached
    )
  ),
  seen("refusals", refusals.map(refused), reached),
  seen("ways to end", ENDS, reached)
]
