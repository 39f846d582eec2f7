/**
 * ChainCheck: the chains of a store that is open, checked behind the start, which has looked
 * at the newest runes alone.
 *
 * Guarantees: every rune that was there at the opening is read once, payload and all; each
 * stream that is not as it was written is told of, once, with its first such rune; so is a
 * file that cannot be read. A file of actors that does not know one of these runes is filled anew.
 */
import type { ActorIndex } from "./ActorIndex.ts"
import { ChainWalk } from "./ChainWalk.ts"
import { type Chore, STEP } from "./Chore.ts"
import type { Problem } from "./EventLog.ts"
import { fromRow, type RuneRow } from "./RuneRow.ts"
import type { Statement } from "./Sqlite.ts"
import type { SqliteStore } from "./SqliteStore.ts"

export class ChainCheck implements Chore {
  readonly chore = "the check of the chains"
  private readonly store: SqliteStore
  private readonly told: (problem: Problem) => void
  private readonly actors: Pick<ActorIndex, "holds" | "discard">
  private readonly streams = new Set<string>()
  private walk: ChainWalk
  private page: Statement | undefined
  private seen = 0
  isDone: boolean

  /** `told` hears of a stream's first problem. */
  constructor(store: SqliteStore, told: (problem: Problem) => void, actors: Pick<ActorIndex, "holds" | "discard">) {
    this.store = store
    this.actors = actors
    this.told = told
    this.isDone = store.lastCommitted === 0
    this.walk = this.begin()
  }

  /** Segments are checked by `verify`. */
  private begin(): ChainWalk {
    return new ChainWalk({ after: this.store.left, before: (rune) => this.store.linkBefore(rune) })
  }

  step(): void {
    try {
      this.page ??= this.store.database.prepare(
        `SELECT * FROM runes WHERE event_id > ? ORDER BY event_id LIMIT ${STEP}`
      )
      // what has left meanwhile is no gap
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

  /** Whether the file beside the store knows these runes. */
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
