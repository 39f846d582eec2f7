/**
 * StorageStory: one seed of the storage simulation: a store, lived with by one process after
 * the other on a disk that tears and forgets, and what its log promises after each of them.
 *
 * Promises: the store opens; what a commit acknowledged is there, as it was; a group is there
 * whole or not at all; `verify` is clean; the heads of the streams are those of the runes,
 * whatever became of the file beside the store; a fold from a snapshot is the fold of the
 * runes; a subscriber's position is a rune that is there.
 */
import { Duration, Effect } from "effect"
import { rules } from "../../../src/app/DaemonLog.ts"
import type { Outcome } from "../../../src/core/event-log/GroupCommit.ts"
import { none } from "../../../src/core/event-log/InvariantGuard.ts"
import { LogStore } from "../../../src/core/event-log/LogStore.ts"
import * as Migrations from "../../../src/core/event-log/Migrations.ts"
import { type Row, rowOf } from "../../../src/core/event-log/Row.ts"
import { FORMAT, type Rune } from "../../../src/core/event-log/Rune.ts"
import type { SnapshotRow } from "../../../src/core/event-log/Snapshot.ts"
import { type Database, openStore, type Sqlite } from "../../../src/core/event-log/Sqlite.ts"
import * as SqlReader from "../../../src/core/event-log/SqlReader.ts"
import type { Head } from "../../../src/core/event-log/SegmentFile.ts"
import { snapshotOf, type StreamFold } from "../../../src/core/event-log/StreamFold.ts"
import { sideFileOf } from "../../../src/core/event-log/SideFile.ts"
import { nothingRecent, recover } from "../../../src/core/event-log/StreamReader.ts"
import { toRunes } from "../../../src/core/event-log/StoredRune.ts"
import { verify, walkHere } from "../../../src/core/event-log/Verify.ts"
import { Chance } from "../Chance.ts"
import { TornDisk } from "./TornDisk.ts"
import { tapped } from "./Tap.ts"
import type { WasmSqlite } from "./WasmSqlite.ts"

const FILE = "/state/runes.db"
const SEAL = "sealed"
const GUARDED = "guarded"
const OPTIONS = { file: FILE, home: "daemon", seals: [SEAL], guarded: [GUARDED] }
const MAX_LIVES = 5

/** A promise that did not hold. */
export class Broken extends Error {}

export interface Options {
  readonly seed: number
  /** Syncs do nothing. */
  readonly lies?: boolean
  /** SQLite with a mistake planted between it and the store. */
  readonly plant?: (sqlite: Sqlite) => Sqlite
}

/** The events of a story. */
export interface Report {
  lives: number
  cuts: number
  kills: number
  commits: number
  runes: number
  /** Groups that were there though nobody had heard of them. */
  ghosts: number
  refused: number
  faults: number
  backups: number
  snapshots: number
  checkpoints: number
  /** Of the disk. */
  operations: number
}

interface Kept {
  readonly row: Row
}

interface Tally {
  readonly n: number
  readonly sum: number
}

/** Tells runes apart by where they lie and when they were written. */
const tally: StreamFold<Tally> = {
  name: "tally",
  version: 1,
  initial: { n: 0, sum: 0 },
  apply: ({ n, sum }, { at, eventId }) => ({ n: n + 1, sum: (sum * 31 + eventId * 7 + at) % 1_000_003 })
}

type Appends = ReadonlyArray<ReadonlyArray<Row>>

export class StorageStory {
  private readonly chance: Chance
  private readonly disk: TornDisk
  private readonly wasm: WasmSqlite
  private readonly sqlite: Sqlite
  private readonly faulty: boolean
  readonly report: Report = {
    lives: 0,
    cuts: 0,
    kills: 0,
    commits: 0,
    runes: 0,
    ghosts: 0,
    refused: 0,
    faults: 0,
    backups: 0,
    snapshots: 0,
    checkpoints: 0,
    operations: 0
  }
  /** Acknowledged appends. */
  private kept: Array<Kept> = []
  /** Runes that may follow: what was tried last, and nobody heard of. */
  private maybe: Appends = []
  private aside: { readonly bytes: Uint8Array; readonly kept: ReadonlyArray<Kept> } | undefined = undefined
  private at = 1_000
  private streams = 1

  constructor(wasm: WasmSqlite, { lies = false, plant = (sqlite) => sqlite, seed }: Options) {
    this.chance = new Chance(seed, "story")
    this.disk = new TornDisk(new Chance(seed, "disk"))
    this.disk.rates = { read: 0, write: 0, sync: 0, lies }
    this.faulty = this.chance.is(0.5)
    this.wasm = wasm
    this.sqlite = plant(this.counting(wasm))
    wasm.mount(this.disk)
  }

  async run(): Promise<Report> {
    try {
      for (let life = 0; life < MAX_LIVES; life++) {
        this.report.lives += 1
        await this.life()
        this.wasm.die()
        if (this.chance.is(0.75)) {
          this.report.cuts += 1
          this.disk.powerCut()
        } else {
          this.report.kills += 1
          this.disk.restart()
        }
        await this.check()
        if (this.chance.is(0.15)) this.putBack()
      }
    } finally {
      this.wasm.die()
    }
    this.report.faults = this.disk.faults
    this.report.operations = this.disk.operations
    return this.report
  }

  private counting(sqlite: Sqlite): Sqlite {
    return tapped(sqlite, {
      exec: (sql, exec) => {
        if (sql.includes("wal_checkpoint")) this.report.checkpoints += 1
        exec(sql)
      }
    })
  }

  // --- a life

  private async life(): Promise<void> {
    this.disk.cutAfter(1 + Math.floor(this.chance.skewed(4, 800)), this.chance.is(0.4))
    if (this.faulty) {
      const rate = () => (this.chance.is(0.4) ? this.chance.skewed(0.002, 0.1) : 0)
      this.disk.rates = { ...this.disk.rates, read: rate(), write: rate(), sync: rate() }
    }
    const store = await this.opened()
    if (store === undefined) return
    while (!this.disk.isDead) {
      if (this.faulty) this.disk.isFull = this.chance.is(this.disk.isFull ? 0.7 : 0.02)
      const what = this.chance.weighed({ commit: 80, rest: 6, snapshot: 6, position: 4, end: 1 })
      if (what === "commit") {
        if (!this.commit(store)) return
        this.quietly(() => store.keepUp())
      } else if (what === "rest") this.quietly(() => store.rest())
      else if (what === "snapshot") this.snapshot(store)
      else if (what === "position") this.position(store)
      else return this.end(store)
    }
  }

  /** As the daemon does: the schema, then the store; an error may pass. Undefined once it is dead. */
  private async opened(): Promise<LogStore | undefined> {
    for (let tries = 0; ; tries++) {
      if (tries === 3) this.disk.calm()
      const faults = this.disk.faults
      try {
        await this.migrate()
        const store = new LogStore(OPTIONS, this.sqlite)
        this.expectHeads(store)
        return store
      } catch (error) {
        if (error instanceof Broken) throw error
        if (this.disk.isDead) return undefined
        if (this.disk.faults === faults) throw this.broken("the store does not open", error)
        if (this.wasm.connections > 0) throw this.broken(`${this.wasm.connections} connections are left open`, error)
      }
    }
  }

  private migrate(): Promise<void> {
    return this.withStore(false, (database) => Effect.sync(() => Migrations.migrate(database, FILE)))
  }

  private withStore<A, E>(readOnly: boolean, use: (database: Database) => Effect.Effect<A, E>): Promise<A> {
    return Effect.runPromise(
      Effect.acquireUseRelease(
        Effect.sync(() => openStore({ file: FILE, readOnly }, this.sqlite)),
        use,
        (database) => Effect.sync(() => database.close())
      )
    )
  }

  /** False where the log has given up, and its process ends. */
  private commit(store: LogStore): boolean {
    const appends = Array.from({ length: 1 + Math.floor(this.chance.skewed(1, 12)) }, () => 1)
    const rows: Array<Array<Row>> = []
    const before = this.heads()
    let eventId = this.kept.length
    for (const _ of appends) {
      const append: Array<Row> = []
      for (let n = 1 + this.chance.below(4); n > 0; n--) append.push(this.row(++eventId, before))
      rows.push(append)
    }
    const bad = this.chance.is(0.03) ? this.chance.below(rows.length) : undefined
    // a rune without a kind: the store refuses its append alone
    if (bad !== undefined) rows[bad] = [{ ...rows[bad]![0]!, kind: null as unknown as string }, ...rows[bad]!.slice(1)]
    this.maybe = rows
    const faults = this.disk.faults
    const { done, failure } = this.committed(store, rows)
    for (const row of rows.slice(0, done).flat()) this.kept.push({ row })
    this.report.commits += Math.min(done, 1)
    this.report.runes += rows.slice(0, done).flat().length
    // a group with a refused append is written one by one: only the next append may be there
    this.maybe = failure === undefined ? [] : bad === undefined ? rows : [rows[done]!]
    if (failure === undefined) return true
    if (failure.isFatal) {
      if (this.disk.faults === faults && !this.disk.isDead) throw this.broken(`a commit failed: ${failure.message}`)
      return false
    }
    if (bad !== done) throw this.broken(`append ${done} was refused, not append ${bad}: ${failure.message}`)
    this.report.refused += 1
    this.maybe = []
    return true
  }

  private committed(store: LogStore, rows: Appends): Outcome {
    const writing = store.commit(rows)
    let step = writing.next(true)
    while (step.done !== true) step = writing.next(!this.disk.isDead && this.chance.is(0.9))
    return step.value
  }

  private row(eventId: number, heads: Map<string, Head>): Row {
    const open = [...heads].filter(([, { isSealed }]) => !isSealed).map(([stream]) => stream)
    const isNew = open.length === 0 || this.chance.is(0.05)
    const stream = isNew ? `s${this.streams++}` : this.chance.pick(open)
    const head = heads.get(stream)
    const seq = (head?.seq ?? 0) + 1
    const kind = seq > 5 && this.chance.is(0.02) ? SEAL : this.chance.is(0.1) ? GUARDED : "note"
    this.at += 1 + this.chance.below(50)
    const rune: Rune = {
      format: FORMAT,
      eventId,
      seq,
      stream,
      at: this.at,
      kind,
      actor: "worker/ada",
      from: null,
      to: null,
      trigger: "Réceived ✓",
      cause: this.chance.is(0.3) ? { stream: "s1", seq: 1 } : null,
      moves: this.chance.is(0.2) ? ["agent/ada"] : [],
      visibility: "internal",
      payload: { n: eventId, text: "é".repeat(Math.floor(this.chance.skewed(1, 4_000))) }
    }
    heads.set(stream, { eventId, seq, hash: "", isSealed: kind === SEAL, guarded: 0 })
    return rowOf(rune, JSON.stringify(rune.payload))
  }

  private snapshot(store: LogStore): void {
    const last = this.kept.at(-1 - this.chance.below(20))
    if (last === undefined) return
    const { eventId, stream } = last.row
    this.report.snapshots += 1
    const order = snapshotOf(stream, tally, this.tallyOf(stream, eventId), eventId)
    this.quietly(() => store.carryOut({ _tag: "Snapshot", order }))
  }

  private position(store: LogStore): void {
    const eventId = this.chance.below(this.kept.length + 3)
    this.quietly(() => store.carryOut({ _tag: "Position", name: "mail", eventId }))
  }

  /** In order; what is on the disk is a backup then. */
  private end(store: LogStore): void {
    this.quietly(() => store.close())
    if (this.disk.isDead || this.wasm.connections > 0 || this.disk.exists(`${FILE}-wal`)) return
    const bytes = this.disk.backup(FILE)
    if (bytes !== undefined && this.chance.is(0.7)) this.aside = { bytes, kept: this.kept.map((one) => ({ ...one })) }
  }

  /** Somebody puts an older copy of the store in its place, and leaves the file beside it. */
  private putBack(): void {
    if (this.aside === undefined) return
    const { bytes, kept } = this.aside
    this.aside = undefined
    this.report.backups += 1
    this.disk.putBack(FILE, bytes, [`${FILE}-wal`])
    this.kept = [...kept]
    this.maybe = []
  }

  /** Does the thread's work that has no answer: an error of the disk is nobody's business. */
  private quietly(work: () => void): void {
    const faults = this.disk.faults
    try {
      work()
    } catch (error) {
      if (this.disk.faults === faults && !this.disk.isDead)
        throw this.broken("the store failed on a disk in order", error)
    }
  }

  // --- what is promised

  /** On a disk in order, by a process of its own, before the next life. */
  private async check(): Promise<void> {
    this.disk.calm()
    const store = await this.opened()
    const database = this.sqlite.open(FILE, { readOnly: true })
    try {
      this.expectRunes(database)
      // what is there was never to be lost again
      this.expectHeads(store!)
      await this.expectVerified()
      await this.expectFolds()
      this.expectPositions(database)
    } catch (error) {
      throw error instanceof Broken ? error : this.broken("the store cannot be read", error)
    } finally {
      database.close()
    }
    this.wasm.die()
    this.disk.restart()
  }

  private expectRunes(database: Database): void {
    const rows = database.prepare("SELECT event_id, stream, seq, at, kind, payload FROM runes ORDER BY event_id").all()
    if (rows.length < this.kept.length) {
      throw this.broken(`${this.kept.length} runes were acknowledged, and ${rows.length} are there`)
    }
    const more = rows.length - this.kept.length
    if (more > 0) this.expectWhole(more)
    for (const [index, { row }] of this.kept.entries()) {
      const there = rows[index]!
      const { at, event_id, kind, seq, stream } = there
      const isSame = event_id === row.eventId && stream === row.stream && seq === row.seq
      if (!isSame || at !== row.at || kind !== row.kind) {
        throw this.broken(`rune ${row.eventId} is another: ${JSON.stringify({ ...there, payload: "" })}`)
      }
    }
    for (const { row } of this.kept) {
      if (rows[row.eventId - 1]!["payload"] !== row.text)
        throw this.broken(`the payload of rune ${row.eventId} is not there`)
    }
    const { event_id } = database.prepare("SELECT event_id FROM head").get()!
    if (event_id !== this.kept.length) throw this.broken(`the head says ${event_id} and not ${this.kept.length}`)
  }

  /** Expects that runes which nobody heard of are one group. */
  private expectWhole(more: number): void {
    const rows = this.maybe.flat()
    if (rows.length !== more) {
      throw this.broken(`a group is torn: ${more} runes of ${rows.length} that were not acknowledged are there`)
    }
    for (const row of rows) this.kept.push({ row })
    this.maybe = []
    this.report.ghosts += 1
  }

  /** Also before the runes were looked at: then what nobody heard of may be among them. */
  private expectHeads(store: LogStore): void {
    const { head, heads, problems } = store.opened
    if (problems.length > 0) throw this.broken(`a start finds ${JSON.stringify(problems[0])}`)
    const maybe = this.maybe.flat()
    const more = head - this.kept.length
    if (more !== 0 && more !== maybe.length) {
      throw this.broken(`the store ends with ${head}, not ${this.kept.length} (or ${maybe.length} more)`)
    }
    const expected = this.heads(more === 0 ? [] : maybe)
    const there = new Map(heads)
    for (const stream of new Set([...expected.keys(), ...there.keys()])) {
      const [one, other] = [there.get(stream), expected.get(stream)]
      const same = one?.eventId === other?.eventId && one?.seq === other?.seq && one?.guarded === other?.guarded
      if (!same || one?.isSealed !== other?.isSealed) {
        throw this.broken(`${stream} is ${JSON.stringify(one)} to the store, and is ${JSON.stringify(other)}`)
      }
    }
  }

  private async expectVerified(): Promise<void> {
    const verdict = await this.withStore(true, (database) => {
      const reader = SqlReader.make(database, { file: FILE, giveUpAfter: Duration.seconds(1) })
      return verify({
        reader,
        rules: { ...rules, guard: none() },
        archives: { folder: undefined, streams: new Set(), kept: new Map() },
        walk: walkHere(reader)
      })
    })
    if (verdict.problems.length > 0) throw this.broken(`verify finds ${JSON.stringify(verdict.problems[0])}`)
    if (verdict.runes !== this.kept.length)
      throw this.broken(`verify saw ${verdict.runes} of ${this.kept.length} runes`)
  }

  /** Of each stream with a snapshot. */
  private async expectFolds(): Promise<void> {
    const index = this.sqlite.open(sideFileOf(FILE), { readOnly: true })
    const rows = new Map<string, SnapshotRow>()
    try {
      for (const row of index.prepare("SELECT * FROM snapshots").all()) {
        rows.set(row["stream"] as string, { ...row, eventId: row["event_id"] } as unknown as SnapshotRow)
      }
    } finally {
      index.close()
    }
    const heads = this.heads()
    await this.withStore(true, (database) =>
      Effect.gen({ self: this }, function* () {
        const reader = SqlReader.make(database, { file: FILE, giveUpAfter: Duration.seconds(1) })
        const snapshots = { get: (stream: string) => Effect.succeed(rows.get(stream)) }
        const source = { reader, snapshots, shown: toRunes, recent: nothingRecent }
        for (const [stream] of rows) {
          const newest = heads.get(stream)?.eventId ?? 0
          const { fold } = yield* recover(source, { stream, newest }, { fold: tally })
          const expected = this.tallyOf(stream, newest)
          if (fold.state.n !== expected.n || fold.state.sum !== expected.sum) {
            throw this.broken(`a snapshot of ${stream} is believed whose runes are others`)
          }
        }
      })
    )
  }

  /** A position that names the rune it was taken at, or is not believed. */
  private expectPositions(database: Database): void {
    const index = this.sqlite.open(sideFileOf(FILE), { readOnly: true })
    try {
      for (const { event_id, hash } of index.prepare("SELECT event_id, hash FROM subscribers").all()) {
        const there = database.prepare("SELECT hash FROM runes WHERE event_id = ?").get(event_id!)
        if (there?.["hash"] === hash && Number(event_id) > this.kept.length) {
          throw this.broken(`a subscriber has come to rune ${event_id} of ${this.kept.length}`)
        }
      }
    } finally {
      index.close()
    }
  }

  // --- the model

  private heads(more: ReadonlyArray<Row> = []): Map<string, Head> {
    const heads = new Map<string, Head>()
    for (const { eventId, kind, seq, stream } of [...this.kept.map(({ row }) => row), ...more]) {
      const guarded = kind === GUARDED ? eventId : (heads.get(stream)?.guarded ?? 0)
      heads.set(stream, { eventId, seq, hash: "", isSealed: kind === SEAL, guarded })
    }
    return heads
  }

  private tallyOf(stream: string, upTo: number): Tally {
    return this.kept
      .filter(({ row }) => row.stream === stream && row.eventId <= upTo)
      .reduce<Tally>((state, { row }) => tally.apply(state, row as unknown as Rune), tally.initial)
  }

  private broken(what: string, cause?: unknown): Broken {
    const { cuts, lives } = this.report
    const why =
      cause === undefined ? "" : `: ${cause instanceof Error ? (cause.stack ?? cause.message) : String(cause)}`
    return new Broken(`life ${lives}, ${cuts} power cuts, ${this.kept.length} runes: ${what}${why}`)
  }
}
