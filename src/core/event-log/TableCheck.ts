/**
 * TableCheck: checks the parts of a store that no hash chain covers. These are the file's structure and header, the
 * tables and triggers, and the stored heads of streams with runes in segments.
 *
 * Guarantees: the check changes nothing. At run time this module uses no npm packages, because the verifying thread
 * loads it.
 */
import { closeSync, openSync, readSync } from "node:fs"
import { definitionsIn, textOf } from "./SchemaRepair.ts"
import { anchorIn, behind } from "./HeadFile.ts"
import type { Head } from "./SegmentFile.ts"
import { leftHeadsIn, type Listed, listedIn } from "./Segments.ts"
import { SideFileCheck } from "./SideFileCheck.ts"
import type { Database } from "./Sqlite.ts"
import type { StoredRune } from "./StoredRune.ts"

/** Result of the check of the tables. The caller must compare `schema` and `listed` with the expected values. */
export interface Tables {
  readonly problems: ReadonlyArray<string>
  /** The definitions of tables and triggers, as text. */
  readonly schema: string
  /** True if the side file next to the store is wrong. A running daemon then rebuilds that file. */
  readonly isRefilled?: boolean
  /** The segments that the store listed before the runes were read, and after that. */
  readonly listed: readonly [before: ReadonlyArray<Listed>, after: ReadonlyArray<Listed>]
}

/** Maximum number of reported problems in the file's structure. A file with more problems is damaged everywhere. */
const MAX_FOUND = 20

const HEAD_BYTES = 100

/** Fields of the file header that have only one valid value: offset, bytes, value. */
const FIXED: ReadonlyArray<readonly [offset: number, bytes: number, value: number]> = [
  [16, 2, 4096],
  [18, 1, 2],
  [19, 1, 2],
  [20, 1, 0],
  [21, 1, 64],
  [22, 1, 32],
  [23, 1, 32],
  [44, 4, 4],
  [48, 4, 0],
  [56, 4, 1],
  [68, 4, 0],
  [72, 6, 0],
  [78, 6, 0],
  [84, 6, 0],
  [90, 2, 0]
]

/**
 * Returns true if this is a file header as SQLite writes it. The header's two change counters must be equal. The flag
 * of incremental vacuum (offset 64) must be set if, and only if, the store can free space (offset 52).
 */
const isHead = (head: Buffer): boolean =>
  head.toString("latin1", 0, 16) === "SQLite format 3\0" &&
  FIXED.every(([offset, bytes, value]) => head.readUIntBE(offset, bytes) === value) &&
  head.readUInt32BE(24) === head.readUInt32BE(92) &&
  head.readUInt32BE(64) === (head.readUInt32BE(52) === 0 ? 0 : 1)

const headOf = (file: string): Buffer => {
  const head = Buffer.alloc(HEAD_BYTES)
  const handle = openSync(file, "r")
  try {
    readSync(handle, head, 0, HEAD_BYTES, 0)
  } finally {
    closeSync(handle)
  }
  return head
}

/** Reads the header up to three times, because another connection can be writing it. */
const hasHead = (file: string): boolean => [1, 2, 3].some(() => isHead(headOf(file)))

const problemsIn = (database: Database, file: string): ReadonlyArray<string> => {
  const problems: Array<string> = []
  if (!hasHead(file)) problems.push("the head of its file is not as SQLite writes it")
  for (const row of database.prepare(`PRAGMA integrity_check(${MAX_FOUND})`).all()) {
    const said = String(Object.values(row)[0])
    if (said !== "ok") problems.push(`its file is damaged: ${said.replaceAll("\n", " ")}`)
  }
  const rows = (sql: string) => database.prepare(sql).all()
  if (rows("SELECT 1 FROM erasing").length > 0) problems.push("its table of erasures under way is not empty")
  return problems
}

/** Problems of streams whose heads in the table `left_heads` differ from their newest runes in the segments. */
const leftProblems = (database: Database, segments: ReadonlyMap<string, Head>): ReadonlyArray<string> => {
  const found: Array<string> = []
  const seen = new Set<string>()
  for (const { eventId, guarded, hash, isSealed, seq, stream } of leftHeadsIn(database)) {
    seen.add(stream)
    const left = segments.get(stream)
    const isSame =
      left?.eventId === eventId &&
      left.seq === seq &&
      left.hash === hash &&
      left.isSealed === isSealed &&
      left.guarded === guarded
    if (!isSame) found.push(`where ${stream} goes on is not where it ends in the segments`)
  }
  for (const stream of segments.keys()) if (!seen.has(stream)) found.push(`where ${stream} goes on is not said`)
  // report any value of `sealed` other than 0 and 1, because it would be read as 0 or 1
  for (const { stream } of database.prepare("SELECT stream FROM left_heads WHERE sealed NOT IN (0, 1)").all()) {
    found.push(`where ${String(stream)} goes on is not where it ends in the segments`)
  }
  return found
}

/** Checks the tables of a store in a file, while all its runes are read. */
export class TableCheck {
  private readonly database: Database
  private readonly beside: SideFileCheck
  private readonly problems: ReadonlyArray<string>
  private readonly schema: string
  private readonly listed: ReadonlyArray<Listed>

  constructor(database: Database, file: string) {
    this.database = database
    // read the anchor before the store, because runes appended later are newer than the anchor
    const anchor = anchorIn(file)
    const gap = anchor === undefined ? undefined : behind(database, anchor)
    this.problems = [...problemsIn(database, file), ...(gap === undefined ? [] : [gap])]
    this.schema = textOf(definitionsIn(database))
    this.listed = listedIn(database)
    this.beside = new SideFileCheck(file)
  }

  next(runes: ReadonlyArray<StoredRune>): void {
    this.beside.next(runes)
  }

  /** Ends the check. `left`: the newest rune in the segments, by stream; undefined if a segment could not be read. */
  end(left: ReadonlyMap<string, Head> | undefined): Tables {
    const beside = this.beside.end()
    return {
      problems: [...this.problems, ...(left === undefined ? [] : leftProblems(this.database, left)), ...beside],
      schema: this.schema,
      listed: [this.listed, listedIn(this.database)],
      isRefilled: this.beside.isRefilled
    }
  }
}
