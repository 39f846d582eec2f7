/**
 * RuneRow: a row of the table `runes`, and its conversion to a stored rune. Pure, and without imports at run time,
 * because the log's threads load this file.
 */
import type { Cause, Visibility } from "./Rune.ts"
import type { StoredRune } from "./StoredRune.ts"

export interface RuneRow {
  readonly event_id: number
  readonly format: number
  readonly seq: number
  /** Position of the previous rune of the same stream; 0 for the first. */
  readonly prev: number
  readonly stream: string
  readonly at: number
  readonly kind: string
  readonly actor: string
  readonly from_state: string | null
  readonly to_state: string | null
  readonly trigger_name: string | null
  /** Position of the cause. Set only in runes of format 1, whose hash includes it; otherwise null. */
  readonly cause: number | null
  /** Stream of the cause. Null if the cause is in the same stream, or if there is no cause. */
  readonly cause_stream: string | null
  readonly cause_seq: number | null
  /** The other state machines that the rune moves, as a JSON array; null if there are none. */
  readonly moves: string | null
  readonly visibility: Visibility
  readonly payload: string | null
  readonly payload_hash: string
  readonly hash: string
}

/** All columns, in the order in which a line of a segment lists their values. */
export const COLUMNS = [
  "event_id",
  "format",
  "seq",
  "prev",
  "stream",
  "at",
  "kind",
  "actor",
  "from_state",
  "to_state",
  "trigger_name",
  "cause",
  "cause_stream",
  "cause_seq",
  "moves",
  "visibility",
  "payload",
  "payload_hash",
  "hash"
] as const satisfies ReadonlyArray<keyof RuneRow>

export type RowValues = ReadonlyArray<RuneRow[keyof RuneRow]>

/** `values`: the values of all columns, in the order of `COLUMNS`. */
export const rowOfValues = (values: RowValues): RuneRow => {
  const row: { [column: string]: RowValues[number] } = {}
  for (let index = 0; index < COLUMNS.length; index++) row[COLUMNS[index]!] = values[index]!
  return row as unknown as RuneRow
}

export const HEADER_COLUMNS = COLUMNS.filter((column) => column !== "payload").join(", ")

const NONE: ReadonlyArray<string> = []

const causeOf = ({ cause_seq, cause_stream, stream }: RuneRow): Cause | null =>
  cause_seq === null ? null : { stream: cause_stream ?? stream, seq: cause_seq }

const movesOf = (moves: string | null): ReadonlyArray<string> => {
  if (moves === null) return NONE
  try {
    return JSON.parse(moves) as ReadonlyArray<string>
  } catch {
    // the value is damaged; the rune's hash then does not match, and that is reported elsewhere
    return NONE
  }
}

export const fromRow = (row: RuneRow): StoredRune => ({
  format: row.format,
  eventId: row.event_id,
  seq: row.seq,
  prev: row.prev,
  stream: row.stream,
  at: row.at,
  kind: row.kind,
  actor: row.actor,
  from: row.from_state,
  to: row.to_state,
  trigger: row.trigger_name,
  cause: causeOf(row),
  causeId: row.cause,
  moves: movesOf(row.moves),
  visibility: row.visibility,
  payload: row.payload,
  payloadHash: row.payload_hash,
  hash: row.hash
})
