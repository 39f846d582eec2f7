/**
 * StoreReads: what is read of stores on this thread: each rune whose payload a query gave,
 * and how many rows queries gave at all.
 */
import { Effect, type Scope } from "effect"
import { StatementSync } from "node:sqlite"

export interface StoreReads {
  /** Payloads by the position of their runes, in the order in which they were read. */
  readonly runes: Array<number>
  /** The bytes of payload that each query gave. */
  readonly bytes: Array<number>
  /** Rows of runes that queries gave, payload or not. */
  rows: number
}

/** A row by the names of its columns, whether it was asked for as an array or as an object. */
const objectOf = (statement: StatementSync, row: object): { readonly [column: string]: unknown } =>
  Array.isArray(row)
    ? Object.fromEntries(statement.columns().map(({ name }, index) => [name, row[index]]))
    : (row as { readonly [column: string]: unknown })

/** Counts for as long as the scope is open. */
export const count: Effect.Effect<StoreReads, never, Scope.Scope> = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => {
      const { all } = StatementSync.prototype
      const reads: StoreReads = { runes: [], bytes: [], rows: 0 }
      StatementSync.prototype.all = function (this: StatementSync, ...parameters: Parameters<typeof all>) {
        const rows = all.apply(this, parameters)
        const named = rows.map((row) => objectOf(this, row))
        reads.rows += named.filter((row) => typeof row["event_id"] === "number").length
        const runes = named.filter((row) => typeof row["event_id"] === "number" && typeof row["payload"] === "string")
        reads.runes.push(...runes.map((row) => Number(row["event_id"])))
        if (runes.length > 0) reads.bytes.push(runes.reduce((all, row) => all + String(row["payload"]).length, 0))
        return rows
      } as typeof all
      return { reads, all }
    }),
    ({ all }) => Effect.sync(() => void (StatementSync.prototype.all = all))
  ),
  ({ reads }) => reads
)
