/**
 * Repair: cuts each damaged stream of a store after its last intact rune. No daemon may use the store during a repair.
 *
 * Guarantees: a copy of the old store is kept in a folder next to the store, readable only by its owner. Lost runes are
 * also written to this folder, as lines of JSON. The remaining runes are written into a new store, which replaces the
 * old one in one step. Before that step, no data of the old store is changed. After a kill, the repair can be started
 * again. A failed repair leaves no files behind. A repair of one stream changes no other stream. Positions have no
 * gaps, because a rune of kind `rune.lost` replaces each lost rune. A rune in the home stream records what was cut.
 */
import { Effect } from "effect"
import * as fs from "node:fs"
import { basename, dirname, join } from "node:path"
import { type BaselineFile, isBeginning } from "./BaselineFile.ts"
import type { Link } from "./ChainWalk.ts"
import { Cuts, erasuresIn, headOf, inSegments, type Options, type Place, placesIn } from "./Cuts.ts"
import { type Definition, isDefined, mended } from "./SchemaRepair.ts"
import { StorageError } from "./EventLog.ts"
import { GENESIS, hashPayload, hashRune } from "./HashChain.ts"
import { anchorFileOf, anchorIn, behind } from "./HeadFile.ts"
import type { Rules } from "./LogRules.ts"
import * as Migrations from "./Migrations.ts"
import type { Rune } from "./Rune.ts"
import { COLUMNS, fromRow, type RuneRow } from "./RuneRow.ts"
import * as Room from "./Room.ts"
import { namesIn, SEGMENTS, SegmentFile, sizeOf, storeBytes } from "./SegmentFile.ts"
import { list, type Listed, listedIn, Segments } from "./Segments.ts"
import { type Database, nodeSqlite, openStore, using } from "./Sqlite.ts"
import { emptyWal } from "./SqliteStore.ts"
import { storageError } from "./StorageFailure.ts"
import { parsePayload } from "./StoredRune.ts"
import { sideFileOf } from "./SideFile.ts"
import { syncFolder } from "./SyncFolder.ts"

/** Folder next to the store, with one subfolder for each repair. */
export const FOLDER = "damaged"
/** Subfolder of a repair that is in progress. */
const UNFINISHED = "unfinished"

export interface Input {
  readonly file: string
  readonly rules: Rules
  /** The only stream to repair; if omitted, all damaged streams are repaired. */
  readonly only?: string | undefined
  /**
   * Creates a function that returns the reason why a rune cannot be folded. `beginning`: the state before the
   * log's first rune; undefined if no older runes were deleted.
   */
  readonly folds?: (beginning: BaselineFile | undefined) => NonNullable<Options["folds"]>
  /** Called with each lost rune that is still readable. */
  readonly onLost: (row: RuneRow) => void
}

interface Opened extends Input {
  readonly database: Database
  readonly segments: Segments
}

const endings = ["-wal", "-shm"]

/** Copies a file if it exists, so that only its owner can read the copy. When this returns, the copy is on disk. */
const kept = (from: string, to: string): void => {
  if (!fs.existsSync(from)) return
  fs.copyFileSync(from, to)
  fs.chmodSync(to, 0o600)
  const copy = fs.openSync(to, "r")
  fs.fsyncSync(copy)
  fs.closeSync(copy)
}

const emptied = (file: string): void => {
  for (const ending of ["", ...endings]) fs.rmSync(`${file}${ending}`, { force: true })
}

/** Removes a file that the store no longer lists. If that fails, the next start removes it. */
const removed = (file: string): void => {
  try {
    fs.rmSync(file, { force: true })
  } catch {}
}

/** Path of a temporary copy of a store with damaged definitions. The copy exists while the store is read. */
const mendingOf = (file: string): string => `${file}.mending`

/** Opens the store. If its table definitions are damaged, opens a copy with the given definitions instead. */
const readable = (file: string, definitions: ReadonlyArray<Definition>): Database => {
  if (isDefined(file, definitions)) return nodeSqlite.open(file)
  const copy = mendingOf(file)
  emptied(copy)
  for (const ending of ["", ...endings]) kept(`${file}${ending}`, `${copy}${ending}`)
  mended(copy, definitions)
  return nodeSqlite.open(copy)
}

const isNamed = ({ file, first, last }: Listed): boolean =>
  file === `${isBeginning(file) ? "begins" : first}-${last}.zst`

const opened = (input: Input, database: Database): Opened => {
  let listed: ReadonlyArray<Listed> = []
  try {
    listed = listedIn(database)
    if (!listed.every(isNamed)) throw new Error("its list of segments is damaged")
  } catch {
    // rebuild the list from the names of the segment files
    const folder = join(dirname(input.file), SEGMENTS)
    const names = fs.existsSync(folder) ? fs.readdirSync(folder) : []
    listed = names
      .flatMap((file) => {
        const [, first, last] = /^(\d+|begins)-(\d+)\.zst$/.exec(file) ?? []
        if (first === undefined) return []
        const content = new SegmentFile(join(folder, file))
        const { bytes, sha256 } = isBeginning(file) ? content : { bytes: 0, sha256: "" }
        return [{ first: isBeginning(file) ? 1 : Number(first), last: Number(last), file, sha256, bytes }]
      })
      .toSorted((a, b) => a.first - b.first)
  }
  return { ...input, database, segments: new Segments(join(dirname(input.file), SEGMENTS), listed) }
}

/** Reads all positions of the store and determines where its streams are cut. */
const cutsOf = ({ database, file, folds, onLost, only, rules, segments }: Opened): Cuts => {
  const erasures = erasuresIn(placesIn(database, segments), rules.home)
  const cuts = new Cuts({
    home: rules.home,
    isLazy: (kind) => rules.kinds.get(kind)?.lazy === true,
    erasures,
    begins: segments.beginning?.summary.heads ?? [],
    only,
    ...(folds === undefined ? {} : { folds: folds(segments.beginning) })
  })
  const anchor = anchorIn(file)
  cuts.behind = anchor === undefined ? undefined : behind(database, anchor)
  let unread: number | undefined
  for (const place of placesIn(database, segments)) {
    cuts.next(place)
    if (place.row === undefined) unread ??= place.eventId
    if (place.row !== undefined && cuts.isLost(place.row)) onLost(place.row)
  }
  if (only !== undefined && unread !== undefined) {
    throw new StorageError({
      reason: "corrupt",
      message: `${file}: ${cuts.unknown} runes cannot be read at all, from rune ${unread} on: nobody can tell whether they are of ${only}. It cannot be repaired alone; nothing is changed.`,
      remedy: "See what a repair of the whole log would lose: agentd repair --dry-run"
    })
  }
  return cuts
}

const failed = (file: string) => (cause: unknown) => storageError(file, cause)

/** Returns the rune as readers see it; undefined if its payload cannot be parsed. */
export const runeOf = (row: RuneRow): Rune | undefined => {
  const stored = fromRow(row)
  const payload = parsePayload(stored)
  return payload === undefined ? undefined : { ...stored, payload }
}

/** Opens the store for reading, and closes it at the end of the scope. */
const reading = (input: Input) =>
  Effect.acquireRelease(
    Effect.try({
      try: () => opened(input, readable(input.file, Migrations.definitions())),
      catch: (cause) => {
        emptied(mendingOf(input.file))
        return storageError(input.file, cause)
      }
    }),
    ({ database, file }) =>
      Effect.sync(() => {
        if (database.isOpen) database.close()
        emptied(mendingOf(file))
      })
  )

/** Determines the cuts that a repair would make. Does not change the store. */
export const look = (input: Input): Effect.Effect<Cuts, StorageError> =>
  reading(input).pipe(
    Effect.flatMap((of) => Effect.try({ try: () => cutsOf(of), catch: failed(input.file) })),
    Effect.scoped
  )

/** Replacement for a payload that is lost. */
const BLANK = "{}"

const textOf = (value: unknown): string => JSON.stringify(value)

const isAsListed = ({ content, sha256 }: Segments["open"][number]): boolean => {
  try {
    return content.sha256 === sha256
  } catch {
    return false
  }
}

/** The segments before the first damage, which stay unchanged. All later runes are written into the new store. */
const wholeOf = (segments: Segments, { first }: Cuts): Segments["open"] => {
  const from = segments.open.findIndex((one) => one.last > segments.deleted && (one.last >= first || !isAsListed(one)))
  return from === -1 ? segments.open : segments.open.slice(0, from)
}

class Rewriting {
  private readonly of: Opened
  private readonly cuts: Cuts
  private readonly into: Database
  private readonly folders: { readonly unfinished: string; readonly beside: string }
  private readonly now: number
  private readonly whole: Segments["open"]
  private readonly lostStream: string
  private readonly links = new Map<string, Link>()
  private readonly blanked: Array<RuneRow> = []
  /** Payloads of lost `rune.erasing` runes of the home stream. Each has the hash of a payload after an erasure. */
  private readonly erasings: Array<string> = []
  private readonly insert: (row: RuneRow) => void
  private readonly lines: number
  private last: number

  constructor(of: Opened, cuts: Cuts, into: Database, folders: Rewriting["folders"], now: number) {
    this.of = of
    this.cuts = cuts
    this.into = into
    this.folders = folders
    this.now = now
    this.whole = wholeOf(of.segments, cuts)
    this.last = this.whole.at(-1)?.last ?? 0
    this.lostStream = `lost:${headOf(of.database)}`
    this.lines = fs.openSync(join(folders.unfinished, "lost.jsonl"), "w", 0o600)
    const statement = into.prepare(
      `INSERT INTO runes (${COLUMNS.join(",")}) VALUES (${COLUMNS.map(() => "?").join(",")})`
    )
    this.insert = (row) => void statement.run(...COLUMNS.map((column) => row[column]))
  }

  /** Writes the new store. Returns the paths of the segments that are not part of it. */
  run(): ReadonlyArray<string> {
    const { database, segments } = this.of
    const files = segments.open.slice(this.whole.length).map(({ content }) => content.path)
    for (const path of files) kept(path, join(this.folders.unfinished, basename(path)))
    this.into.exec("BEGIN")
    for (const one of this.whole) {
      const { heads } = one.content.footer
      list(this.into, one, heads)
      for (const { eventId, hash, seq, stream } of heads) this.links.set(stream, { eventId, seq, hash })
    }
    for (const place of placesIn(database, segments, this.last)) {
      const row = this.rowOf(place)
      this.insert(row)
      this.links.set(row.stream, { eventId: row.event_id, seq: row.seq, hash: row.hash })
      this.last = row.event_id
    }
    this.tell()
    this.into.prepare("UPDATE head SET event_id = ?").run(this.last)
    this.into.exec("COMMIT")
    this.into.exec("PRAGMA wal_checkpoint(TRUNCATE)")
    fs.fsyncSync(this.lines)
    fs.closeSync(this.lines)
    return files
  }

  /** Returns the row that the new store gets at this position. */
  private rowOf({ eventId, row }: Place): RuneRow {
    const { home } = this.of.rules
    const isLost = row === undefined || this.cuts.isLost(row)
    if (row !== undefined && (isLost || this.cuts.isBlanked(row))) fs.writeSync(this.lines, `${textOf(row)}\n`)
    if (isLost) {
      if (row?.stream === home && row.kind === "rune.erasing" && row.payload !== null) {
        if (hashPayload(row.payload) === row.payload_hash) this.erasings.push(row.payload)
      }
      const payload = textOf({ stream: row?.stream ?? null, seq: row?.seq ?? null, kind: row?.kind ?? null })
      // replace a lost rune of the home stream in that stream, so that the later runes keep their seqs
      const stream = row?.stream === home ? home : this.lostStream
      return this.made({ stream, eventId, at: row?.at ?? this.now, kind: "rune.lost", payload })
    }
    const kept = row.stream === home && this.cuts.cuts.has(home) ? this.chained(row) : row
    if (!this.cuts.isBlanked(row)) return kept
    this.blanked.push(kept)
    return { ...kept, payload: BLANK }
  }

  /** Appends the row to its stream: returns it with a new seq and hash. */
  private chained(row: RuneRow): RuneRow {
    const before = this.links.get(row.stream) ?? { eventId: 0, seq: 0, hash: GENESIS }
    const seq = before.seq + 1
    // if the row's seq has changed, remove a cause in the same stream, because the cause's seq can name another rune
    const cause_seq = seq === row.seq || row.cause_stream !== null ? row.cause_seq : null
    const next = { ...row, format: 2, seq, prev: before.eventId, cause: null, cause_seq }
    return { ...next, hash: hashRune(before.hash, fromRow(next), row.payload_hash) }
  }

  private made({ at, eventId, kind, payload, stream }: Draft): RuneRow {
    const { visibility = "internal" } = this.of.rules.kinds.get(kind) ?? {}
    return this.chained({
      event_id: eventId,
      format: 2,
      seq: 0,
      prev: 0,
      stream,
      at: Number.isSafeInteger(at) ? at : this.now,
      kind,
      actor: "log/repair",
      from_state: null,
      to_state: null,
      trigger_name: null,
      cause: null,
      cause_stream: null,
      cause_seq: null,
      moves: null,
      visibility,
      payload,
      payload_hash: hashPayload(payload),
      hash: ""
    })
  }

  private append(kind: string, payload: object): void {
    const { home } = this.of.rules
    this.last += 1
    const row = this.made({ stream: home, eventId: this.last, at: this.now, kind, payload: textOf(payload) })
    this.insert(row)
    this.links.set(home, { eventId: this.last, seq: row.seq, hash: row.hash })
  }

  /** Appends runes that record the repair to the home stream. */
  private tell(): void {
    const { beginning } = this.of.segments
    const { blanked, cuts, lost, unknown } = this.cuts
    const segments = this.whole.map(({ bytes, file, first, last, sha256 }) => {
      const runes = isBeginning(file) ? last : last - first + 1
      return { first, last, runes, file, bytes, sha256 }
    })
    if (beginning !== undefined && (unknown > 0 || cuts.has(this.of.rules.home))) {
      const { at, heads } = beginning.summary
      this.append("log.begins", { ...segments[0], streams: heads.length, at, by: "a setting, before a repair" })
    }
    const kindOf = this.into.prepare("SELECT kind FROM runes WHERE event_id = ?")
    for (const payload of this.erasings) {
      const erasing = JSON.parse(payload) as { readonly eventId: number }
      // the next start detects that this erasure is complete
      if (kindOf.get(erasing.eventId)?.["kind"] !== "rune.lost") this.append("rune.erasing", erasing)
    }
    for (const { event_id: eventId, stream } of this.blanked) {
      const by = "repair"
      this.append("rune.erasing", { eventId, stream, fields: [], left: hashPayload(BLANK), by })
      this.append("rune.erased", { eventId, stream, by })
    }
    const streams = [...cuts.values()].slice(0, MAX_TOLD)
    this.append("log.repaired", {
      folder: this.folders.beside,
      lost,
      unknown,
      blanked: blanked.length,
      streams,
      segments
    })
  }
}

interface Draft {
  readonly stream: string
  readonly eventId: number
  readonly at: number
  readonly kind: string
  readonly payload: string
}

/** Maximum number of cut streams that the rune `log.repaired` lists. */
const MAX_TOLD = 500

/** Free disk space (bytes) needed: a copy of the store and its segments, the new store and its write-ahead log. */
const neededFor = ({ file, segments }: Opened, cuts: Cuts): number => {
  const whole = wholeOf(segments, cuts)
  let bytes = 3 * storeBytes(file)
  for (const { content } of segments.open.slice(whole.length)) bytes += sizeOf(content.path)
  // write the runes of damaged or later segments back into the store
  for (const { row } of inSegments(segments, whole.at(-1)?.last ?? 0)) bytes += 2 * textOf(row ?? null).length
  return bytes
}

/** Replaces the old store with the new one. `gone`: paths of the segments that are not part of the new store. */
const swap = (file: string, fresh: string, gone: ReadonlyArray<string>) => {
  const definitions = Migrations.definitions()
  if (!isDefined(file, definitions)) mended(file, definitions)
  const database = nodeSqlite.open(file)
  try {
    // move the write-ahead log into the file, so that a kill before the rename leaves the old store complete
    emptyWal(database)
  } finally {
    database.close()
  }
  for (const store of [file, fresh]) for (const ending of endings) fs.rmSync(`${store}${ending}`, { force: true })
  // delete these files before the rename, because they describe the old store; the next start creates new ones
  for (const side of [sideFileOf(file), anchorFileOf(file)]) emptied(side)
  fs.renameSync(fresh, file)
  for (const path of gone) removed(path)
  syncFolder(dirname(file))
}

/** Repairs the store. Returns what was cut, and the folder that contains the copy of the old store. */
export const run = Effect.fnUntraced(function* (input: Input, now: number) {
  const { file } = input
  const fresh = `${file}.repaired`
  const folder = join(dirname(file), FOLDER)
  const beside = join(folder, new Date(now).toISOString().replaceAll(":", "-"))
  const unfinished = join(folder, UNFINISHED)
  let copied = unfinished
  const clear = () => {
    emptied(fresh)
    fs.rmSync(unfinished, { recursive: true, force: true })
  }
  const attempt = <A>(work: () => A) => Effect.try({ try: work, catch: failed(file) })
  // delete the files of an earlier repair that was killed
  yield* attempt(clear)
  const of = yield* reading(input)
  const cuts = yield* attempt(() => cutsOf(of))
  const lack = yield* Room.lacking(dirname(file), yield* attempt(() => neededFor(of, cuts)))
  if (lack !== undefined) {
    return yield* new StorageError({
      reason: "full",
      message: `${file} is not repaired: ${lack}. Nothing is changed.`,
      remedy: "Make room, then run agentd repair again."
    })
  }
  const rewrite = Effect.gen(function* () {
    yield* attempt(() => {
      fs.closeSync(fs.openSync(fresh, "a", 0o600))
      fs.mkdirSync(unfinished, { recursive: true, mode: 0o700 })
      for (const ending of ["", ...endings]) kept(`${file}${ending}`, join(unfinished, `runes.db${ending}`))
    })
    yield* Effect.try({
      try: () => using(openStore({ file: fresh }), (database) => Migrations.migrate(database, fresh)),
      catch: failed(fresh)
    })
    return yield* attempt(() => {
      const into = nodeSqlite.open(fresh)
      try {
        const gone = new Rewriting(of, cuts, into, { unfinished, beside }, now).run()
        into.close()
        of.database.close()
        // the copy of the old store must be durable before the new store replaces the old one
        syncFolder(unfinished)
        fs.renameSync(unfinished, beside)
        copied = beside
        for (const parent of [folder, dirname(file)]) syncFolder(parent)
        swap(file, fresh, gone)
        return { plan: cuts, beside }
      } finally {
        if (into.isOpen) into.close()
      }
    })
  })
  return yield* Effect.onError(rewrite, () =>
    Effect.sync(() => {
      // if this file is missing, the new store has already replaced the old one
      if (!fs.existsSync(fresh)) return
      fs.rmSync(copied, { recursive: true, force: true })
      emptied(fresh)
      if (namesIn(folder).length === 0) fs.rmSync(folder, { recursive: true, force: true })
    })
  )
}, Effect.scoped)
