/**
 * StoreReads: counts the reads of stores on this thread: each rune whose payload a query returned, and the number of
 * rows.
 */
import { Effect, type Scope } from "effect"
import { StatementSync } from "node:sqlite"

export interface StoreReads {
  /** Event ids of the runes whose payload was read, in order of reading. */
  readonly runes: Array<number>
  /** Length of the payloads that each query returned, in characters. */
  readonly bytes: Array<number>
  /** Number of rune rows that queries returned, with or without a payload. */
  rows: number
}

/** A row as an object by column names, even if the query returned an array. */
const objectOf = (statement: StatementSync, row: object): { readonly [column: string]: unknown } =>
  Array.isArray(row)
    ? Object.fromEntries(statement.columns().map(({ name }, index) => [name, row[index]]))
    : (row as { readonly [column: string]: unknown })

/** Counts until the scope closes. */
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
