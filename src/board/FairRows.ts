/** FairRows: sorts rows by time so that the many rows of one agent do not hide those of others. Pure. */
import * as BoardRow from "../domain/BoardRow.ts"
import type { WaitingRow } from "./WaitingMessages.ts"

/** Maximum number of rows of one agent that are sorted by time together with the rows of others. */
const MAX_OF_ONE = 20

interface Fair {
  readonly first: ReadonlyArray<WaitingRow>
  /** Further rows of agents that have more. They follow the first rows of all agents, in rounds of 20 per agent. */
  readonly further: ReadonlyArray<WaitingRow>
}

export const fairly = (rows: ReadonlyArray<WaitingRow>): Fair => {
  const counts = new Map<string, number>()
  const placed = rows.toSorted(BoardRow.bySince).map((row) => {
    const whose = row.of ?? row.who
    const count = counts.get(whose) ?? 0
    counts.set(whose, count + 1)
    return { row, turn: Math.floor(count / MAX_OF_ONE) }
  })
  const further = placed.filter(({ turn }) => turn > 0).toSorted((a, b) => a.turn - b.turn)
  return {
    first: placed.filter(({ turn }) => turn === 0).map(({ row }) => row),
    further: further.map(({ row }) => row)
  }
}
