/**
 * WaitingGroups: the list of what waits, with the calls of one kind as one group. Pure. The command line, the board and
 * the page use the same groups.
 */
import type { CallBatch, WaitingReply, WaitingRow } from "./WaitingMessages.ts"

/** A single matter, or the rows of a batch of several calls. */
export interface WaitingGroup {
  readonly batch?: CallBatch
  readonly rows: readonly [WaitingRow, ...ReadonlyArray<WaitingRow>]
}

/** The id of the call that a row is about; undefined if it is about something else. */
export const callIdOf = ({ id }: WaitingRow): string | undefined => (id.startsWith("call/") ? id.slice(5) : undefined)

/** The rows in their order. The rows of a batch of several calls are one group, in the place of its first row. */
export const groupsOf = ({
  batches = [],
  rows
}: Pick<WaitingReply, "batches" | "rows">): ReadonlyArray<WaitingGroup> => {
  const batchOf = new Map(batches.flatMap((batch) => batch.calls.map(({ id }) => [id, batch] as const)))
  const groups = Map.groupBy(rows, (row) => batchOf.get(callIdOf(row) ?? "") ?? row)
  return [...groups].map(([of, [first, ...others]]) =>
    others.length > 0 && "calls" in of ? { batch: of, rows: [first!, ...others] } : { rows: [first!] }
  )
}

/** Maximum number of agents that a title names. */
const MAX_NAMED = 4

/** The title of a batch: `4 calls: npm run … (web/builder, web/tester)`. */
export const batchTitle = (
  rows: ReadonlyArray<Pick<WaitingRow, "who">>,
  { words }: Pick<CallBatch, "words">
): string => {
  const who = [...new Set(rows.map((row) => row.who))]
  const named = [...who.slice(0, MAX_NAMED), ...(who.length > MAX_NAMED ? [`${who.length - MAX_NAMED} more`] : [])]
  return `${rows.length === 1 ? "1 call" : `${rows.length} calls`}: ${words} (${named.join(", ")})`
}
