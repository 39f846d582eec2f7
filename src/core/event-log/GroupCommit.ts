/**
 * GroupCommit: writes appends as one transaction, with one sync.
 *
 * Guarantees: appends become durable whole and in their order. An error that can pass is retried. An append that the
 * store refuses is found by committing the group's appends one by one. The appends before it are durable; it and those
 * behind it are not.
 */
import type { Row } from "./Row.ts"
import type { SqliteStore } from "./SqliteStore.ts"

/**
 * Number of rows after which a transaction takes no more appends. With more, nothing gathers while the group is
 * written.
 */
export const MAX_GROUP = 128

export interface Failure {
  /** SQLite's extended result code; undefined if there is none. */
  readonly code: number | undefined
  readonly message: string
  /** True if the store accepts nothing more. */
  readonly isFatal: boolean
}

export interface Outcome {
  /** Number of durable appends, counted from the first. */
  readonly done: number
  readonly failure: Failure | undefined
}

/** SQLite's extended result code of an error; undefined if there is none. */
export const codeOf = (error: unknown): number | undefined =>
  error instanceof Error && "errcode" in error && typeof error.errcode === "number" ? error.errcode : undefined

/** Busy, locked, I/O error, full: a later attempt can succeed. */
const PASSING = new Set([5, 6, 10, 13])
/** Too big, constraint, mismatch, range: the append's own fault. */
const REFUSED = new Set([18, 19, 20, 25])
/** A primary key, unique value or rowid already exists: another program writes to the store. */
export const TAKEN = new Set([1555, 2067, 2579])

export const isLocked = (error: unknown): boolean => [5, 6].includes((codeOf(error) ?? 0) & 0xff)

export const isPassing = (error: unknown): boolean => PASSING.has((codeOf(error) ?? 0) & 0xff)

export const failureOf = (error: unknown): Failure => {
  const code = codeOf(error)
  const isRefused =
    code === undefined
      ? error instanceof TypeError || error instanceof RangeError
      : REFUSED.has(code & 0xff) && !TAKEN.has(code)
  return { code, message: error instanceof Error ? error.message : String(error), isFatal: !isRefused }
}

/** Makes an error of a failure in another thread. */
export const errorOf = ({ code, message }: Failure): Error =>
  Object.assign(new Error(message), code === undefined ? {} : { errcode: code })

/** Yields if a pause can mend the error; `next(false)` gives up. Returns undefined, or the error. */
function* attempt(
  store: SqliteStore,
  rows: ReadonlyArray<Row>
): Generator<void, { readonly error: unknown } | undefined, boolean> {
  for (;;) {
    try {
      store.commit(rows)
      return undefined
    } catch (error) {
      if (!isPassing(error) || !(yield)) return { error }
    }
  }
}

/** Yields for a pause; `next(true)` tries again, `next(false)` gives up. */
export function* commit(
  store: SqliteStore,
  appends: ReadonlyArray<ReadonlyArray<Row>>
): Generator<void, Outcome, boolean> {
  const together = yield* attempt(store, appends.length === 1 ? appends[0]! : appends.flat())
  if (together === undefined) return { done: appends.length, failure: undefined }
  const failure = failureOf(together.error)
  if (failure.isFatal || appends.length === 1) return { done: 0, failure }
  for (const [index, rows] of appends.entries()) {
    const alone = yield* attempt(store, rows)
    if (alone !== undefined) return { done: index, failure: failureOf(alone.error) }
  }
  return { done: appends.length, failure: undefined }
}
