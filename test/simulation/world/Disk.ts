/**
 * Disk: what survives a life of the daemon: the real store in files, on a disk that takes
 * its time, is full, fails, and keeps after a crash what it had refused before.
 *
 * SQLite's promise is taken for granted here (a group is there whole or not at all);
 * whether SQLite keeps it over torn pages is the business of the storage simulation.
 */
import { Effect } from "effect"
import { copyFileSync, readdirSync, rmSync } from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import type { Outcome } from "../../../src/core/event-log/GroupCommit.ts"
import { LogStore } from "../../../src/core/event-log/LogStore.ts"
import type { Rune } from "../../../src/core/event-log/Rune.ts"
import type { Row } from "../../../src/core/event-log/Row.ts"
import type { Order } from "../../../src/core/event-log/LogStore.ts"
import type { InlineDisk } from "../../../src/core/event-log/SqliteLog.ts"
import type { StoreOptions } from "../../../src/core/event-log/SqliteStore.ts"
import type { SnapshotOrder } from "../../../src/core/event-log/Snapshot.ts"
import * as Scratch from "../../support/Scratch.ts"
import { type Touch, untouched } from "../Boundaries.ts"
import type { Chance } from "../Chance.ts"
import type { Life, Universe } from "../Universe.ts"

export type DiskState = "full" | "io" | "locked" | "well"

/** SQLite's result codes. */
const CODES = { full: 13, io: 10, locked: 5 }

type Appends = ReadonlyArray<ReadonlyArray<Row>>

/** Connections that are open while worlds run: a process that is killed closes them without a word. */
const open = new Set<DatabaseSync>()
/** The boundaries of the daemon that has them open. */
const at: { touch: Touch } = { touch: untouched }

/** Writes of the store beside its groups: the index of streams has transactions of its own. */
const BOUNDARIES: { readonly [sql: string]: "checkpoint" | "index" } = {
  COMMIT: "index",
  "PRAGMA wal_checkpoint": "checkpoint"
}

/** Worlds run in between. */
export const watched = <A>(run: () => A): A => {
  const { exec } = DatabaseSync.prototype
  DatabaseSync.prototype.exec = function (this: DatabaseSync, sql: string) {
    open.add(this)
    const boundary = BOUNDARIES[sql.split("(")[0]!]
    // what is under way when a process is killed is rolled back
    if (boundary !== undefined && !at.touch(`${boundary}: before`)) throw new Error("killed")
    exec.call(this, sql)
    if (boundary !== undefined) at.touch(`${boundary}: after`)
  }
  try {
    return run()
  } finally {
    DatabaseSync.prototype.exec = exec
  }
}

class Store extends LogStore {
  private readonly disk: Disk

  constructor(disk: Disk, options: StoreOptions) {
    super(options)
    this.disk = disk
  }

  override *commit(appends: Appends): Generator<void, Outcome, boolean> {
    for (;;) {
      const trouble = this.disk.refuses(appends)
      if (trouble === undefined) break
      if (!(yield))
        return { done: 0, failure: { code: CODES[trouble], message: `the disk is ${trouble}`, isFatal: true } }
    }
    const outcome = yield* super.commit(appends)
    this.disk.written(appends.slice(0, outcome.done))
    return outcome
  }

  override carryOut(order: Order): void {
    const { touch } = this.disk
    const names = { Snapshot: "snapshot", Position: "position", Erase: "erasure", Rewrite: "erasure" } as const
    const { _tag: tag } = order
    if (!(tag in names)) return super.carryOut(order)
    const name = names[tag as keyof typeof names]
    if (!touch(`${name}: before`)) return
    super.carryOut(order)
    if (order._tag === "Snapshot") this.disk.kept(order.order)
    touch(`${name}: after`)
  }

  override rest(): void {
    if (this.disk.touch("rest: before")) super.rest()
  }

  override close(): void {
    if (this.disk.touch("close: before")) super.close()
  }
}

const runeOf = (row: Row): Rune => ({
  format: 2,
  eventId: row.eventId,
  seq: row.seq,
  stream: row.stream,
  at: row.at,
  kind: row.kind,
  actor: row.actor,
  from: row.from,
  to: row.to,
  trigger: row.trigger,
  cause: row.causeSeq === null ? null : { stream: row.causeStream ?? row.stream, seq: row.causeSeq },
  moves: row.moves === null ? [] : (JSON.parse(row.moves) as ReadonlyArray<string>),
  visibility: row.visibility as Rune["visibility"],
  payload: JSON.parse(row.text) as Rune["payload"]
})

export class Disk {
  readonly folder = Scratch.make("agentd-simulation-")
  state: DiskState = "well"
  /** Since when it has refused every commit, ms; undefined: it takes them. */
  refusing: number | undefined = undefined
  private troubles = 0
  /** The slowest commit, ms. */
  slowest = 5
  commits = 0
  ghosts = 0
  /** Told of each commit before the daemon is. */
  committed: (number: number) => void = () => {}
  /** Told of each snapshot. */
  kept: (order: SnapshotOrder) => void = () => {}
  touch: Touch = untouched
  /** A group whose commit failed, and that may be on the disk nevertheless. */
  private ghost: Appends | undefined = undefined
  private options: StoreOptions | undefined = undefined
  private readonly universe: Universe
  private readonly chance: Chance
  private readonly durable: (rune: Rune) => void

  constructor(universe: Universe, chance: Chance, durable: (rune: Rune) => void) {
    this.universe = universe
    this.chance = chance
    this.durable = durable
  }

  get file(): string {
    return join(this.folder, "runes.db")
  }

  /** For so long, or until another trouble is over. */
  worsen(state: DiskState, ms: number): void {
    this.state = state
    const mine = ++this.troubles
    this.universe.later(ms, () => {
      if (mine === this.troubles) this.state = "well"
    })
  }

  get trouble(): Exclude<DiskState, "well"> | undefined {
    return this.state === "well" ? undefined : this.state
  }

  refuses(appends: Appends): Exclude<DiskState, "well"> | undefined {
    const { trouble } = this
    if (trouble === undefined) return undefined
    this.refusing ??= this.universe.now
    if (trouble === "io" && this.chance.is(0.5)) this.ghost = appends
    return trouble
  }

  written(appends: Appends): void {
    this.ghost = undefined
    this.refusing = undefined
    if (appends.length === 0) return
    this.commits += 1
    for (const row of appends.flat()) {
      this.universe.note(`rune ${row.eventId} ${row.kind} ${row.actor} ${row.trigger ?? ""}`, row.header + row.text)
      this.durable(runeOf(row))
    }
    this.committed(this.commits)
  }

  /** As one life of the daemon sees it. */
  readonly of = (life: Life): InlineDisk => ({
    open: (options) => {
      this.options = options
      at.touch = this.touch
      return new Store(this, options)
    },
    seek: Effect.andThen(
      Effect.suspend(() => Effect.sleep(this.chance.skewed(0.05, this.slowest))),
      Effect.suspend(() => (this.touch("commit: before") ? Effect.void : Effect.never))
    ),
    // durable, and nobody has heard of it
    settle: Effect.suspend(() =>
      this.touch("commit: after") && !life.isDead ? Effect.sleep(this.chance.skewed(0.01, 1)) : Effect.never
    )
  })

  /** The daemon is gone: what was half on the disk is there, or is not. */
  crash(): void {
    at.touch = untouched
    this.leave()
    this.refusing = undefined
    const { ghost, options } = this
    this.ghost = undefined
    if (ghost === undefined || options === undefined || !this.chance.is(0.5)) return
    this.ghosts += 1
    const store = new Store(this, options)
    const { state } = this
    this.state = "well"
    const writing = store.commit(ghost)
    while (writing.next(false).done !== true);
    this.state = state
    this.release()
  }

  /** Leaves the files: a closed connection folds its write-ahead log into the file, a killed one leaves both as they are. */
  private leave(): void {
    const files = open.size === 0 ? [] : readdirSync(this.folder).filter((name) => /\.db(-wal)?$/.test(name))
    for (const name of files) copyFileSync(join(this.folder, name), join(this.folder, `${name}.left`))
    this.release()
    // into the same files: a kill leaves those, and no copies of them
    for (const name of files) {
      copyFileSync(join(this.folder, `${name}.left`), join(this.folder, name))
      rmSync(join(this.folder, `${name}.left`))
    }
  }

  /** Closes what a dead life had open. */
  release(): void {
    for (const database of open) if (database.isOpen) database.close()
    open.clear()
  }

  remove(): void {
    at.touch = untouched
    this.release()
    rmSync(this.folder, { recursive: true, force: true })
  }
}
