/**
 * Snapshot: the state of a fold over one stream, at one rune of that stream.
 *
 * A snapshot saves reading; it is never the truth. It is bound to the chain by the hash
 * of its rune, to the fold by the fold's version, and to its own bytes by a seal: where
 * one of them does not agree there is no snapshot, and the fold reads the stream.
 */
import { hash } from "node:crypto"

export interface SnapshotOrder {
  readonly stream: string
  /** Of the fold. */
  readonly name: string
  /** Of the fold: rises with every change of the fold or of its state. */
  readonly version: number
  /** The newest rune of the stream that is folded in. */
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
