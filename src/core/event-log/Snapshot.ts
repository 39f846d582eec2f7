/**
 * Snapshot: the state of a fold over one stream, as it was after one rune of that stream.
 *
 * A snapshot only makes reading faster. The runes are the source of truth. A snapshot contains the hash of its rune in
 * the chain, the version of its fold, and a checksum (seal) of its own bytes. If one of them does not match, the
 * snapshot is ignored, and the fold reads the stream.
 */
import { hash } from "node:crypto"

export interface SnapshotOrder {
  readonly stream: string
  /** Name of the fold to which the state belongs. */
  readonly name: string
  /** Version of the fold. The version rises with every change of the fold or of its state. */
  readonly version: number
  /** Position of the newest rune that is included in the state. */
  readonly eventId: number
  readonly state: Uint8Array
}

export interface SnapshotRow extends SnapshotOrder {
  readonly seq: number
  readonly hash: string
  readonly seal: string
}

export const sealOf = (row: Omit<SnapshotRow, "seal">): string =>
  hash(
    "sha256",
    Buffer.concat([
      Buffer.from(JSON.stringify([row.stream, row.name, row.version, row.eventId, row.seq, row.hash])),
      row.state
    ]),
    "hex"
  )
