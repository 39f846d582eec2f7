/**
 * Snapshot: the state of a fold over one stream, at one rune of that stream.
 *
 * A snapshot only makes reading faster. The runes are the source of truth. The hash of its rune binds a snapshot to the
 * chain. The fold's version binds it to the fold, and a seal binds it to its own bytes. If one of them does not match,
 * the snapshot is ignored, and the fold reads the stream.
 */
import { hash } from "node:crypto"

export interface SnapshotOrder {
  readonly stream: string
  /** Name of the fold. */
  readonly name: string
  /** Version of the fold. It rises with every change of the fold or of its state. */
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
