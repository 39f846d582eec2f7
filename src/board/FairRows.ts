/**
 * FairRows: rows by time, and fair: no agent's many rows hide another's. Pure.
 */
import * as BoardRow from "../domain/BoardRow.ts"
import type { WaitingRow } from "./WaitingMessages.ts"

/** Maximum number of rows of one agent that stand where their time puts them. */
const MAX_OF_ONE = 20

interface Fair {
  readonly first: ReadonlyArray<WaitingRow>
  /** Rows of agents that have more: behind those of all others, each agent's in turn. */
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
