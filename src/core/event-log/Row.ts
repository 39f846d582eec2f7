/** Row: a rune in the form in which the store inserts it: its columns, and its header and payload as text. */
import { headerText } from "./HashChain.ts"
import type { Rune } from "./Rune.ts"

export interface Row {
  readonly eventId: number
  readonly seq: number
  readonly stream: string
  readonly at: number
  readonly kind: string
  readonly actor: string
  readonly from: string | null
  readonly to: string | null
  readonly trigger: string | null
  readonly causeStream: string | null
  readonly causeSeq: number | null
  /** The other state machines that the rune moves, as a JSON array; null if there are none. */
  readonly moves: string | null
  readonly visibility: string
  readonly header: string
  readonly text: string
}

export const rowOf = (rune: Rune, text: string): Row => ({
  eventId: rune.eventId,
  seq: rune.seq,
  stream: rune.stream,
  at: rune.at,
  kind: rune.kind,
  actor: rune.actor,
  from: rune.from,
  to: rune.to,
  trigger: rune.trigger,
  causeStream: rune.cause?.stream ?? null,
  causeSeq: rune.cause?.seq ?? null,
  moves: rune.moves.length === 0 ? null : JSON.stringify(rune.moves),
  visibility: rune.visibility,
  header: headerText({ ...rune, format: 2, causeId: null }),
  text
})
