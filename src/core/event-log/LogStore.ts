/**
 * LogStore: the store and the side file next to it. Used by a single owner: the log's thread, or the fiber that
 * replaces the thread. All calls are synchronous.
 */
import { ActorIndex } from "./ActorIndex.ts"
import { ChainCheck } from "./ChainCheck.ts"
import { type BackgroundTask, Chores } from "./BackgroundTask.ts"
import type { Erasing } from "./Erasure.ts"
import type { Problem, Sealing } from "./EventLog.ts"
import * as GroupCommit from "./GroupCommit.ts"
import { anchorIn, behind, HeadFile } from "./HeadFile.ts"
import type { Row } from "./Row.ts"
import type { SnapshotOrder } from "./Snapshot.ts"
import { nodeSqlite } from "./Sqlite.ts"
import { type Sealed, Sealer } from "./Sealer.ts"
import { type Head, type Made, SEGMENTS } from "./SegmentFile.ts"
import { moved, StorePlace } from "./StorePlace.ts"
import { dirname, join } from "node:path"
import { MUCH_BYTES, type PutBack, SOME_BYTES, SqliteStore, type StoreOptions } from "./SqliteStore.ts"
import { SideFile, sideFileOf } from "./SideFile.ts"
import { StreamIndex } from "./StreamIndex.ts"

export interface Opened {
  /** The last assigned position. */
  readonly head: number
  readonly heads: ReadonlyArray<readonly [stream: string, head: Head]>
  /** Problems found in the newest runes, which are checked at the start. */
  readonly problems: ReadonlyArray<Problem>
  /** Message about missing acknowledged runes; undefined if none are missing. */
  readonly behind?: string | undefined
}

/** A change to the store. The caller waits until the change is durable. */
export type Change =
  /** Restores payloads that an older agentd has moved out of the store. */
  | { readonly _tag: "PutBack"; readonly payloads: PutBack }
  /** Deletes the rows of a segment in the background. Requested when the rune that records the segment is durable. */
  | { readonly _tag: "Leave"; readonly made: Made }
  /** Lists one file in place of all segments up to it. Requested when the rune that records the deletion is durable. */
  | { readonly _tag: "Forget"; readonly made: Made }
  /** Erases text in a payload, and the snapshots that can contain this text. */
  | { readonly _tag: "Rewrite"; readonly erasing: Erasing }

/** Work that the store does between appends. */
export type Order =
  | Change
  | { readonly _tag: "Snapshot"; readonly order: SnapshotOrder }
  /** Saves the position of a subscriber. */
  | { readonly _tag: "Position"; readonly name: string; readonly eventId: number }
  /** Rebuilds the side file next to the store, because it is damaged. */
  | { readonly _tag: "Reindex" }

/** Shrinks the write-ahead log. Retried until the reader that caused it to grow has ended. */
const shrinking = (store: SqliteStore): BackgroundTask => ({
  chore: "giving back the room of the write-ahead log",
  get isDone() {
    return !store.isSwollen
  },
  step: () => store.shrink()
})

export class LogStore {
  private readonly store: SqliteStore
  private readonly side: SideFile
  private readonly index: StreamIndex
  private readonly actors: ActorIndex
  private readonly sealer: Sealer
  private readonly chores: Chores
  private readonly anchor: HeadFile | undefined
  private readonly place: StorePlace | undefined
  readonly opened: Opened
  /** Called with each problem that is found in an older rune. */
  onDamage: (problem: Problem) => void = () => {}

  /**
   * `now`: returns the time of a monotonic clock in ms. If the clock does not advance, a failed chore is retried only
   * when the store is opened again.
   */
  constructor(options: StoreOptions, sqlite = nodeSqlite, now: () => number = () => 0) {
    this.store = new SqliteStore(options, sqlite)
    let side: SideFile | undefined
    try {
      side = new SideFile(sideFileOf(options.file), sqlite)
      this.side = side
      this.index = new StreamIndex(side)
      const problems = this.index.restore(this.store)
      let newest = this.store.lastCommitted
      for (const { eventId } of this.store.heads.values()) newest = Math.max(newest, eventId)
      // a simulated disk has no files other than the store
      const anchor = sqlite === nodeSqlite ? anchorIn(options.file) : undefined
      const gap = anchor === undefined ? undefined : behind(this.store.database, anchor)
      this.opened = { head: newest, heads: [...this.store.heads], problems, behind: gap }
      const folder = join(dirname(options.file), SEGMENTS)
      this.actors = new ActorIndex({ side, store: this.store, folder, newest })
      this.sealer = new Sealer(this.store, folder)
      const check = new ChainCheck(this.store, (problem) => this.onDamage(problem), this.actors)
      this.chores = new Chores([shrinking(this.store), this.sealer, this.actors, check], now)
      this.anchor = sqlite === nodeSqlite ? new HeadFile(options.file) : undefined
      this.place = sqlite === nodeSqlite ? new StorePlace(options.file) : undefined
    } catch (error) {
      // close all files, so that the store can be opened again when the disk works
      side?.close()
      this.store.close()
      throw error
    }
  }

  *commit(appends: ReadonlyArray<ReadonlyArray<Row>>): Generator<void, GroupCommit.Outcome, boolean> {
    const outcome = yield* GroupCommit.commit(this.store, appends)
    // check the path after the commit: acknowledged runes must be in the file that the next daemon opens
    if (outcome.done > 0 && this.place?.isLeft === true) return { done: 0, failure: moved }
    let rows = 0
    const streams = new Set<string>()
    for (let index = 0; index < outcome.done; index++) {
      rows += appends[index]!.length
      for (const { stream } of appends[index]!) streams.add(stream)
      this.actors.newest = appends[index]!.at(-1)!.eventId
    }
    this.index.committed(streams, rows)
    const last = outcome.done === 0 ? undefined : appends[outcome.done - 1]!.at(-1)!
    if (last !== undefined) {
      this.anchor?.write({ eventId: last.eventId, hash: this.store.heads.get(last.stream)!.hash })
    }
    return outcome
  }

  /** Does the background work that cannot wait until appends pause. */
  keepUp(): void {
    if (this.store.bytes > MUCH_BYTES) this.store.checkpoint()
    if (this.index.backlog === "much") this.index.flush(this.store)
    if (this.hasPressing && this.choresDue(true) === 0) this.chore()
  }

  private get hasPressing(): boolean {
    return this.actors.isFarBehind || this.sealer.isPressing
  }

  /** Writes the oldest runes to a segment in the background, and then calls `done`. */
  seal(sealing: Sealing, done: (sealed: Sealed) => void): void {
    this.sealer.begin(sealing, done)
  }

  /** True if `rest` has work to do. */
  get isUntidy(): boolean {
    return this.store.bytes > SOME_BYTES || this.index.backlog !== "none"
  }

  /** Time (ms) until a chore may continue; Infinity if no chore has work. `isBusy`: true while runes are appended. */
  choresDue(isBusy = false): number {
    return this.chores.due(isBusy)
  }

  set onTrouble(told: (message: string) => void) {
    this.chores.onTrouble = told
  }

  chore(): void {
    this.chores.step()
  }

  /** Does housekeeping. Called when nothing has been appended for a while. */
  rest(): void {
    if (this.store.bytes > SOME_BYTES) this.store.checkpoint()
    this.index.flush(this.store)
  }

  /** Executes an order. Throws if that fails. */
  carryOut(order: Order): void {
    if (order._tag === "Snapshot") this.index.keep(this.store, order.order)
    else if (order._tag === "Position") this.index.keepPosition(this.store, order.name, order.eventId)
    else if (order._tag === "Reindex") this.index.renew(this.store)
    else if (order._tag === "Leave") this.sealer.leave(order.made)
    else if (order._tag === "Forget") {
      this.store.forget(order.made)
      this.actors.forget()
    } else if (order._tag === "PutBack") this.store.putBack(order.payloads)
    else {
      this.store.rewrite(order.erasing)
      this.index.forget(this.store, order.erasing.stream)
    }
  }

  close(): void {
    this.index.flush(this.store)
    this.side.close()
    this.sealer.close()
    this.anchor?.close()
    this.store.close()
  }
}
