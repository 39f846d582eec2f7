/**
 * ChainCheck: checks the hash chains of an open store in the background. The opening itself checks only the newest
 * runes.
 *
 * Guarantees: every rune that was in the store when it was opened is read once, with its payload. Each damaged stream
 * is reported once, with its first damaged rune. A store that cannot be read is reported, too. If the actor index lacks
 * one of these runes, the index is rebuilt.
 */
import type { ActorIndex } from "./ActorIndex.ts"
import { ChainWalk } from "./ChainWalk.ts"
import { type BackgroundTask, STEP } from "./BackgroundTask.ts"
import type { Problem } from "./EventLog.ts"
import { fromRow, type RuneRow } from "./RuneRow.ts"
import type { Statement } from "./Sqlite.ts"
import type { SqliteStore } from "./SqliteStore.ts"

export class ChainCheck implements BackgroundTask {
  readonly chore = "the check of the chains"
  private readonly store: SqliteStore
  private readonly told: (problem: Problem) => void
  private readonly actors: Pick<ActorIndex, "holds" | "discard">
  private readonly streams = new Set<string>()
  private walk: ChainWalk
  private page: Statement | undefined
  private seen = 0
  isDone: boolean

  /** `told`: called with the first problem of each stream. */
  constructor(store: SqliteStore, told: (problem: Problem) => void, actors: Pick<ActorIndex, "holds" | "discard">) {
    this.store = store
    this.actors = actors
    this.told = told
    this.isDone = store.lastCommitted === 0
    this.walk = this.begin()
  }

  /** Starts after the runes that were moved to segments, because only `verify` checks segments. */
  private begin(): ChainWalk {
    return new ChainWalk({ after: this.store.left, before: (rune) => this.store.linkBefore(rune) })
  }

  step(): void {
    try {
      this.page ??= this.store.database.prepare(
        `SELECT * FROM runes WHERE event_id > ? ORDER BY event_id LIMIT ${STEP}`
      )
      // runes that were moved to a segment since the last step are not a gap
      if (this.walk.head < this.store.left) this.restart()
      const rows = this.page.all(this.walk.head) as unknown as ReadonlyArray<RuneRow>
      for (const row of rows) this.walk.next(fromRow(row))
      if (!this.isFiled(rows)) this.actors.discard()
      if (rows.length === 0) this.end()
    } catch (error) {
      this.isDone = true
      const message = `the store cannot be read after it: ${error instanceof Error ? error.message : String(error)}`
      this.told({ eventId: this.walk.head, stream: "", rule: "INV-HASH-VALID", message })
    }
    this.tell()
  }

  private isFiled(rows: ReadonlyArray<RuneRow>): boolean {
    try {
      return rows.every((row) => this.actors.holds(row))
    } catch {
      return false
    }
  }

  private restart(): void {
    this.walk = this.begin()
    this.seen = 0
  }

  private end(): void {
    this.walk.end()
    this.isDone = true
  }

  private tell(): void {
    for (const problem of this.walk.problems.slice(this.seen)) {
      if (this.streams.has(problem.stream)) continue
      this.streams.add(problem.stream)
      this.told(problem)
    }
    this.seen = this.walk.problems.length
  }
}
