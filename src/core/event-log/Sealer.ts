/**
 * Sealer: moves the oldest runes out of the store into a segment file, as a chore of the log's thread. The file is
 * written in steps. When it is complete, the log is notified. The log then appends a rune about the segment, and the
 * store lists the segment. Only after that are the rows deleted, in steps, and their disk space is released.
 *
 * Guarantees: rows are deleted only if the store lists their segment. A damaged rune stays in the store, and so do all
 * runes after it. After a kill, an unfinished file is written again from its beginning, and an unfinished deletion of
 * rows or release of space continues.
 */
import { ChainWalk } from "./ChainWalk.ts"
import { type BackgroundTask, STEP } from "./BackgroundTask.ts"
import type { Sealing } from "./EventLog.ts"
import { type Failure, failureOf } from "./GroupCommit.ts"
import { fromRow, type RuneRow } from "./RuneRow.ts"
import { type Made, type SegmentHead, SegmentWriter } from "./SegmentFile.ts"
import type { Statement } from "./Sqlite.ts"
import type { SqliteStore } from "./SqliteStore.ts"

export type Sealed = { readonly made: Made | undefined } | { readonly failure: Failure }

/** Number of database pages that are released to the file system in one step. */
const PAGES = 64
/** Minimum number of free pages that are worth releasing. */
const WORTH = 256

interface Job extends Sealing {
  readonly writer: SegmentWriter
  readonly walk: ChainWalk
  readonly page: Statement
  readonly heads: Map<string, SegmentHead>
  readonly done: (sealed: Sealed) => void
}

export class Sealer implements BackgroundTask {
  readonly chore = "the moving of the oldest runes into a segment"
  private readonly store: SqliteStore
  private readonly folder: string
  private job: Job | undefined
  /** True if the store can still have rows that are also in a segment. */
  private drops: boolean
  /** True if the database file can have free pages. */
  private frees = true

  constructor(store: SqliteStore, folder: string) {
    this.store = store
    this.folder = folder
    this.drops = store.left > 0
  }

  get isDone(): boolean {
    return this.job === undefined && !this.drops && !this.frees
  }

  /** True if a caller is waiting for the segment, or the store still has rows that are also in a segment. */
  get isPressing(): boolean {
    return this.job !== undefined || this.drops
  }

  begin(sealing: Sealing, done: (sealed: Sealed) => void): void {
    if (this.job !== undefined) return done({ made: undefined })
    const { database, left } = this.store
    try {
      this.job = {
        ...sealing,
        done,
        writer: new SegmentWriter(this.folder),
        walk: new ChainWalk({ after: left, before: (rune) => this.store.linkBefore(rune) }),
        page: database.prepare(
          `SELECT * FROM runes WHERE event_id > ? AND event_id <= ? ORDER BY event_id LIMIT ${STEP}`
        ),
        heads: new Map()
      }
    } catch (error) {
      done({ failure: failureOf(error) })
    }
  }

  /** Call this when the rune about the segment is durable. Later steps delete the segment's rows from the store. */
  leave(made: Made): void {
    if (made.last <= this.store.left) return
    this.store.leave(made)
    this.drops = true
  }

  step(): void {
    // Delete rows first. Otherwise a sequence of new segments would leave no time for the deletion, and the store would
    // keep the runes of all these segments, too.
    if (this.drops) {
      this.drops = this.store.drop(STEP) > 0
      this.frees ||= !this.drops
    } else if (this.job !== undefined) this.write(this.job)
    else this.frees = this.store.giveBack(PAGES, WORTH)
  }

  close(): void {
    this.job?.writer.abandon()
    this.job = undefined
  }

  private write(job: Job): void {
    try {
      if (!this.add(job)) return
      this.job = undefined
      if (job.writer.runes < job.least) {
        job.writer.abandon()
        return job.done({ made: undefined })
      }
      job.done({ made: job.writer.finish([...job.heads.values()]) })
    } catch (error) {
      this.job = undefined
      try {
        job.writer.abandon()
      } catch {
        // the next segment overwrites the unfinished file
      }
      job.done({ failure: failureOf(error) })
    }
  }

  /** Adds a batch of runes to the segment. Returns true if the batch was the last one. */
  private add({ before, heads, page, upTo, walk, writer }: Job): boolean {
    const rows = page.all(walk.head, upTo) as unknown as ReadonlyArray<RuneRow>
    const taken: Array<RuneRow> = []
    for (const row of rows) {
      if (row.at >= before) break
      walk.next(fromRow(row))
      if (walk.problems.length > 0) break
      taken.push(row)
      const known = heads.get(row.stream) ?? this.store.leftHead(row.stream)
      heads.set(row.stream, { stream: row.stream, ...this.store.headAfter(row, known?.guarded ?? 0) })
    }
    writer.add(taken)
    return taken.length < rows.length || rows.length < STEP
  }
}
