/**
 * Repair: a damaged store is written anew, with all that holds; no daemon runs meanwhile.
 *
 * Guarantees: positions stay dense: in the place of each rune that is lost stands one that says so, in a stream of
 * their own; the store as it was is kept beside, readable for its owner alone, and what is lost once more as lines of
 * JSON; the new store takes the old one's place in one step, so that a kill leaves the one or the other; a rune of the
 * home stream tells what was done.
 */
import { Effect } from "effect"
import { Reactivity } from "effect/reactivity"
import * as fs from "node:fs"
import { dirname, join } from "node:path"
import { actorFileOf } from "./ActorIndex.ts"
import type { Link } from "./ChainWalk.ts"
import type { StorageError } from "./EventLog.ts"
import { chain, GENESIS, hashPayload, joinHeader, quote } from "./HashChain.ts"
import { anchorFileOf, anchorIn, behind } from "./HeadAnchor.ts"
import type { Rules } from "./LogRules.ts"
import * as Migrations from "./Migrations.ts"
import * as NodeSqlite from "./NodeSqlite.ts"
import { BLANK, erasuresIn, headOf, type Options, type Place, placesIn, RepairPlan } from "./RepairPlan.ts"
import type { Rune } from "./Rune.ts"
import { COLUMNS, fromRow, type RuneRow } from "./RuneRow.ts"
import { type Beginning, isBeginning } from "./Beginning.ts"
import { type Made, SEGMENTS, SegmentFile, type SegmentHead, SegmentWriter } from "./SegmentFile.ts"
import { type Listed, listedIn, Segments } from "./Segments.ts"
import { type Database, nodeSqlite } from "./Sqlite.ts"
import { fromSqlError, storageError } from "./StorageFailure.ts"
import { parsePayload } from "./StoredRune.ts"
import { asMigrated, type Definition, isDefined, mended } from "./Definitions.ts"
import { indexFileOf } from "./StreamIndex.ts"
import { syncFolder } from "./SyncFolder.ts"

/** Beside the store: one folder for each repair. */
export const FOLDER = "damaged"

export interface Input {
  readonly file: string
  readonly rules: Rules
  /** The stream that alone is repaired; left out: all. */
  readonly only?: string | undefined
  /** Why a rune does not fold, from where the runes begin. */
  readonly folds?: (beginning: Beginning | undefined) => NonNullable<Options["folds"]>
  /** Hears of each rune that is lost and can be read. */
  readonly onLost: (row: RuneRow) => void
}

interface Opened extends Input {
  readonly database: Database
  readonly segments: Segments
}

const endings = ["-wal", "-shm"]

/** Copies what stands beside a file name, for its owner alone. */
const kept = (from: string, to: string): void => {
  if (!fs.existsSync(from)) return
  fs.copyFileSync(from, to)
  fs.chmodSync(to, 0o600)
}

const emptied = (file: string): void => {
  for (const ending of ["", ...endings]) fs.rmSync(`${file}${ending}`, { force: true })
}

/** Beside the store, while a repair reads one whose definitions are damaged. */
const mendingOf = (file: string): string => `${file}.mending`

/** The store with the definitions of its tables as they should be: where they are damaged, in a copy. */
const readable = (file: string, definitions: ReadonlyArray<Definition>): Database => {
  if (isDefined(file, definitions)) return nodeSqlite.open(file)
  const copy = mendingOf(file)
  emptied(copy)
  for (const ending of ["", ...endings]) kept(`${file}${ending}`, `${copy}${ending}`)
  mended(copy, definitions)
  return nodeSqlite.open(copy)
}

const opened = (input: Input, definitions: ReadonlyArray<Definition>): Opened => {
  const database = readable(input.file, definitions)
  let listed: ReadonlyArray<Listed> = []
  try {
    listed = listedIn(database)
  } catch {
    // the files' names say it too
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

const planOf = ({ database, file, folds, only, rules, segments }: Opened): RepairPlan => {
  const erasures = erasuresIn(placesIn(database, segments), rules.home)
  const plan = new RepairPlan({
    home: rules.home,
    isLazy: (kind) => rules.kinds.get(kind)?.lazy === true,
    erasures,
    begins: segments.beginning?.summary.heads ?? [],
    only,
    ...(folds === undefined ? {} : { folds: folds(segments.beginning) })
  })
  const anchor = anchorIn(file)
  plan.behind = anchor === undefined ? undefined : behind(database, anchor)
  return plan
}

const walk = (of: Opened, plan: RepairPlan): void => {
  for (const place of placesIn(of.database, of.segments)) {
    if (plan.next(place) === "lost" && place.row !== undefined) of.onLost(place.row)
  }
}

const failed = (file: string) => (cause: unknown) => storageError(file, cause)

/** The rune as readers see it; undefined where its payload is none. */
export const runeOf = (row: RuneRow): Rune | undefined => {
  const stored = fromRow(row)
  const payload = parsePayload(stored)
  return payload === undefined ? undefined : { ...stored, payload }
}

/** The losses of a repair, without the repair. */
export const look = (input: Input): Effect.Effect<RepairPlan, StorageError> =>
  Effect.flatMap(asMigrated, (definitions) =>
    Effect.try({
      try: () => {
        const of = opened(input, definitions)
        try {
          const plan = planOf(of)
          walk(of, plan)
          return plan
        } finally {
          of.database.close()
          emptied(mendingOf(input.file))
        }
      },
      catch: failed(input.file)
    })
  )

const textOf = (value: unknown): string => JSON.stringify(value)

/** The new store, while it is written. */
class Rewriting {
  private readonly of: Opened
  private readonly plan: RepairPlan
  private readonly into: Database
  private readonly beside: string
  private readonly now: number
  private readonly lostStream: string
  private readonly links = new Map<string, Link>()
  private readonly heads = new Map<string, SegmentHead>()
  private readonly again: Array<RuneRow> = []
  private readonly blanked: Array<RuneRow> = []
  private readonly made: Array<Made> = []
  private readonly insert: (row: RuneRow) => void
  private readonly lines: number
  private last = 0

  constructor(of: Opened, plan: RepairPlan, into: Database, beside: string, now: number) {
    this.of = of
    this.plan = plan
    this.into = into
    this.beside = beside
    this.now = now
    this.lostStream = `lost:${headOf(of.database)}`
    this.lines = fs.openSync(join(beside, "lost.jsonl"), "w", 0o600)
    const statement = into.prepare(
      `INSERT INTO runes (${COLUMNS.join(",")}) VALUES (${COLUMNS.map(() => "?").join(",")})`
    )
    this.insert = (row) => void statement.run(...COLUMNS.map((column) => row[column]))
  }

  run(): void {
    const { segments } = this.of
    const places = placesIn(this.of.database, segments)
    this.into.exec("BEGIN")
    for (const listed of segments.listed) {
      if (listed.last <= segments.deleted) this.begin(listed)
      else this.segment(listed, places)
    }
    for (const place of places) this.insert(this.rowOf(place))
    this.tell()
    this.into.prepare("UPDATE head SET event_id = ?").run(this.last)
    this.into.exec("COMMIT; PRAGMA wal_checkpoint(TRUNCATE)")
    fs.closeSync(this.lines)
  }

  /** In the place of what a person's setting has deleted. */
  private begin(listed: Listed): void {
    const { heads } = this.of.segments.beginning!.summary
    this.list(listed, heads)
    for (const head of heads) {
      this.heads.set(head.stream, head)
      this.links.set(head.stream, head)
    }
    this.last = listed.last
  }

  private list({ bytes, file, first, last, sha256 }: Listed, heads: Iterable<SegmentHead>): void {
    this.into
      .prepare("INSERT INTO segments (first, last, file, sha256, bytes) VALUES (?, ?, ?, ?, ?)")
      .run(first, last, file, sha256, bytes)
    const set = this.into.prepare("INSERT OR REPLACE INTO left_heads VALUES (?, ?, ?, ?, ?, ?)")
    for (const { eventId, guarded, hash, isSealed, seq, stream } of heads) {
      set.run(stream, eventId, seq, hash, Number(isSealed), guarded)
    }
  }

  private segment(listed: Listed, places: Iterator<Place>): void {
    const folder = join(dirname(this.of.file), SEGMENTS)
    const old = join(folder, listed.file)
    const heads = new Map<string, SegmentHead>()
    const writer = new SegmentWriter(folder)
    const before = this.plan.lost + this.plan.blanked.length + this.again.length
    for (let eventId = listed.first; eventId <= listed.last; eventId++) {
      const row = this.rowOf(places.next().value as Place)
      const head = this.headAfter(row)
      heads.set(row.stream, head)
      this.heads.set(row.stream, head)
      writer.add([row])
    }
    const isSame = before === this.plan.lost + this.plan.blanked.length + this.again.length
    const { bytes, file, first, last, sha256 } = listed
    if (isSame && existing(old)?.sha256 === sha256) writer.abandon()
    else {
      if (fs.existsSync(old)) fs.linkSync(old, join(this.beside, listed.file))
      this.made.push(writer.finish([...heads.values()]))
    }
    const now = this.made.find((one) => one.first === first) ?? { bytes, file, first, last, sha256 }
    this.list(now, heads.values())
  }

  private headAfter({ event_id, hash, kind, seq, stream }: RuneRow): SegmentHead {
    const { guard, kinds } = this.of.rules
    const guarded = guard.kinds.includes(kind) ? event_id : (this.heads.get(stream)?.guarded ?? 0)
    return { stream, eventId: event_id, seq, hash, isSealed: kinds.sealing.includes(kind), guarded }
  }

  /** The row that stands at the place from now on. */
  private rowOf(place: Place): RuneRow {
    const { eventId, row } = place
    const fate = this.plan.next(place)
    this.last = eventId
    if (row !== undefined && (fate === "kept" || fate === "blanked")) {
      this.links.set(row.stream, { eventId, seq: row.seq, hash: row.hash })
      if (fate === "kept") return row
      this.keep(row)
      const blank = { ...row, payload: BLANK }
      this.blanked.push(blank)
      return blank
    }
    if (row !== undefined && fate === "again") this.again.push(row)
    else if (row !== undefined) this.keep(row)
    const payload = {
      stream: row?.stream ?? null,
      seq: row?.seq ?? null,
      kind: row?.kind ?? null,
      again: fate === "again"
    }
    return this.runeOf(this.lostStream, eventId, row?.at ?? this.now, "rune.lost", "log/repair", textOf(payload))
  }

  private keep(row: RuneRow): void {
    fs.writeSync(this.lines, `${textOf(row)}\n`)
  }

  private runeOf(stream: string, eventId: number, at: number, kind: string, actor: string, payload: string): RuneRow {
    const before = this.links.get(stream) ?? { eventId: 0, seq: 0, hash: GENESIS }
    const seq = before.seq + 1
    const time = Number.isSafeInteger(at) ? at : this.now
    const { visibility = "internal" } = this.of.rules.kinds.get(kind) ?? {}
    const header = joinHeader(
      quote(stream),
      seq,
      time,
      quote(kind),
      quote(actor),
      "null",
      "null",
      "null",
      "null",
      "[]",
      quote(visibility)
    )
    const payloadHash = hashPayload(payload)
    const hash = chain(before.hash, header, payloadHash)
    this.links.set(stream, { eventId, seq, hash })
    return {
      event_id: eventId,
      format: 2,
      seq,
      prev: before.eventId,
      stream,
      at: time,
      kind,
      actor,
      from_state: null,
      to_state: null,
      trigger_name: null,
      cause: null,
      cause_stream: null,
      cause_seq: null,
      moves: null,
      visibility,
      payload,
      payload_hash: payloadHash,
      hash
    }
  }

  private append(kind: string, actor: string, payload: string, at = this.now): void {
    this.last += 1
    this.insert(this.runeOf(this.of.rules.home, this.last, at, kind, actor, payload))
  }

  /** The home stream's runes: those behind its break once more, then what was done. */
  private tell(): void {
    const { home } = this.of.rules
    for (const { actor, at, kind, payload } of this.again) this.append(kind, actor, payload ?? BLANK, at)
    const told = this.plan.cuts.has(home) ? this.listed() : this.made
    for (const made of told) {
      if (!isBeginning(made.file)) this.append("segment.rewritten", "log/repair", textOf(made))
      else this.append("log.begins", "log/repair", textOf(this.beginsAgain(made)))
    }
    for (const { event_id: eventId, stream } of this.blanked) {
      const by = "repair"
      this.append("rune.erasing", "log/repair", textOf({ eventId, stream, fields: [], left: hashPayload(BLANK), by }))
      this.append("rune.erased", "log/repair", textOf({ eventId, stream, by }))
    }
    const streams = [...this.plan.cuts.values()].slice(0, MAX_TOLD)
    const { blanked, lost, unknown } = this.plan
    this.append(
      "log.repaired",
      "log/repair",
      textOf({ folder: this.beside, lost, unknown, blanked: blanked.length, streams })
    )
  }

  private beginsAgain(made: Made) {
    const { at, heads } = this.of.segments.beginning!.summary
    return { ...made, streams: heads.length, at, by: "a setting, before a repair" }
  }

  private listed(): ReadonlyArray<Made> {
    return this.of.segments.listed.map(
      (one) => this.made.find(({ first }) => first === one.first) ?? { ...one, runes: one.last - one.first + 1 }
    )
  }
}

/** Streams that the rune about a repair names. */
const MAX_TOLD = 500

const existing = (path: string): SegmentFile | undefined => (fs.existsSync(path) ? new SegmentFile(path) : undefined)

/** Carries it out; the answer is what was done, and the folder that holds the store as it was. */
export const run = Effect.fnUntraced(function* (input: Input, now: number) {
  const { file } = input
  const fresh = `${file}.repaired`
  const beside = join(dirname(file), FOLDER, new Date(now).toISOString().replaceAll(":", "-"))
  const attempt = <A>(work: () => A) => Effect.try({ try: work, catch: failed(file) })
  yield* attempt(() => {
    fs.mkdirSync(beside, { recursive: true, mode: 0o700 })
    emptied(fresh)
    fs.closeSync(fs.openSync(fresh, "a", 0o600))
    for (const ending of ["", ...endings]) kept(`${file}${ending}`, join(beside, `runes.db${ending}`))
    syncFolder(beside)
  })
  yield* Effect.scoped(Effect.flatMap(NodeSqlite.make({ file: fresh }), (sql) => Migrations.migrate(sql, fresh))).pipe(
    Effect.mapError((error) => (error._tag === "StorageError" ? error : fromSqlError(fresh, error))),
    Effect.provide(Reactivity.layer)
  )
  const definitions = yield* asMigrated
  return yield* attempt(() => {
    const of = opened(input, definitions)
    const into = nodeSqlite.open(fresh)
    try {
      const plan = planOf(of)
      new Rewriting(of, plan, into, beside, now).run()
      into.close()
      of.database.close()
      for (const ending of endings) fs.rmSync(`${file}${ending}`, { force: true })
      for (const ending of endings) fs.rmSync(`${fresh}${ending}`, { force: true })
      fs.renameSync(fresh, file)
      for (const side of [indexFileOf(file), actorFileOf(file), anchorFileOf(file)]) emptied(side)
      syncFolder(dirname(file))
      return { plan, beside }
    } finally {
      if (into.isOpen) into.close()
      if (of.database.isOpen) of.database.close()
      emptied(mendingOf(file))
    }
  })
})
