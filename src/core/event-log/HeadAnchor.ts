/**
 * HeadAnchor: a small file beside the store that says which rune is the newest, written after each group of appends and
 * not synced: a store whose write-ahead log is gone, or in whose place an older copy lies, is behind it.
 *
 * Guarantees: the file never says more than what is durable in the store; written once a group, before anybody hears
 * that the group is durable, so that a kill leaves it no older than what was acknowledged. A power cut may leave it
 * older, or not whole: then it says less, or nothing. Free of imports at run time but Node's: the log's threads load
 * this file.
 */
import { hash } from "node:crypto"
import * as fs from "node:fs"
import type { Database } from "./Sqlite.ts"

export const anchorFileOf = (file: string): string => `${file}.head`

/** All that is ever written: the file keeps its length. */
const BYTES = 128

export interface Anchor {
  readonly eventId: number
  readonly hash: string
}

const sealOf = ({ eventId, hash: of }: Anchor): string => hash("sha256", `${eventId} ${of}`, "hex").slice(0, 16)

/** The file's word; undefined where there is none, or none that is whole. */
export const anchorIn = (file: string): Anchor | undefined => {
  try {
    const [id = "", of = "", seal = ""] = fs.readFileSync(anchorFileOf(file), "utf8").trimEnd().split(" ")
    const anchor = { eventId: Number(id), hash: of }
    return Number.isSafeInteger(anchor.eventId) && sealOf(anchor) === seal ? anchor : undefined
  } catch {
    return undefined
  }
}

/** How the store differs from what the file says of it, in words; undefined where the store has the rune, or does not know any more. */
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

export class HeadAnchor {
  private readonly handle: number | undefined

  /** A file that cannot be written is done without: it says less, then. */
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
      // a full disk: the next group tries again
    }
  }

  close(): void {
    if (this.handle !== undefined) fs.closeSync(this.handle)
  }
}
