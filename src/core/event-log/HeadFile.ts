/**
 * HeadFile: a small file next to the store that records the newest rune. It is written after each group of appends,
 * but not synced. If the store lacks this rune, its write-ahead log was lost, or an older copy has replaced the store.
 *
 * Guarantees: the file only names a rune that is durable in the store. It is written once per group, before the group
 * is reported as durable. After a kill, the file is therefore not older than the acknowledged runes. After a power
 * failure it can be older or incomplete. It then detects fewer losses, or none. At run time this module uses no npm
 * packages, because the log's threads load it.
 */
import { hash } from "node:crypto"
import * as fs from "node:fs"
import type { Database } from "./Sqlite.ts"

export const anchorFileOf = (file: string): string => `${file}.head`

/** Size of the file in bytes: every write has this length. */
const BYTES = 128

export interface Anchor {
  readonly eventId: number
  readonly hash: string
}

const sealOf = ({ eventId, hash: of }: Anchor): string => hash("sha256", `${eventId} ${of}`, "hex").slice(0, 16)

/** The content of the file; undefined if there is no file or its content is incomplete. */
export const anchorIn = (file: string): Anchor | undefined => {
  try {
    const [id = "", of = "", seal = ""] = fs.readFileSync(anchorFileOf(file), "utf8").trimEnd().split(" ")
    const anchor = { eventId: Number(id), hash: of }
    return Number.isSafeInteger(anchor.eventId) && sealOf(anchor) === seal ? anchor : undefined
  } catch {
    return undefined
  }
}

/** Describes how the store differs from the recorded rune; undefined if the store has that rune or has moved it. */
export const behind = (database: Database, { eventId, hash: of }: Anchor): string | undefined => {
  const head = (database.prepare("SELECT event_id FROM head").get()?.["event_id"] ?? 0) as number
  if (head < eventId) {
    return `the store ends with rune ${head}, and rune ${eventId} was acknowledged: its write-ahead log is gone, or an older copy lies in its place`
  }
  const row = database.prepare("SELECT hash FROM runes WHERE event_id = ?").get(eventId)
  return row === undefined || row["hash"] === of
    ? undefined
    : `rune ${eventId} is another than the one that was acknowledged: another store, or an older copy that has gone on, lies in its place`
}

export class HeadFile {
  private readonly handle: number | undefined

  /** Opens or creates the file. If that fails, `write` does nothing, and later losses are not detected. */
  constructor(file: string) {
    try {
      this.handle = fs.openSync(anchorFileOf(file), fs.constants.O_RDWR | fs.constants.O_CREAT, 0o600)
    } catch {
      this.handle = undefined
    }
  }

  write(anchor: Anchor): void {
    if (this.handle === undefined) return
    const text = `${anchor.eventId} ${anchor.hash} ${sealOf(anchor)}`.padEnd(BYTES - 1)
    try {
      fs.writeSync(this.handle, `${text}\n`, 0)
    } catch {
      // the disk can be full; after the next group, the file is written again
    }
  }

  close(): void {
    if (this.handle !== undefined) fs.closeSync(this.handle)
  }
}
