/**
 * GroupCommit: writes several appends in one transaction, with one sync.
 *
 * Guarantees: each append becomes durable as a whole, in the order of the appends. Temporary errors are retried. If the
 * store refuses the transaction, the appends are committed one by one until the refused append is found. The appends
 * before it are durable; the refused append and later ones are not.
 */
import type { Row } from "./Row.ts"
import type { SqliteStore } from "./SqliteStore.ts"

/**
 * Number of rows at which a group accepts no more appends. If groups were larger, no appends could gather for the next
 * group while one is written.
 */
export const MAX_GROUP = 128

export interface Failure {
  /** SQLite's extended result code; undefined if there is none. */
  readonly code: number | undefined
  readonly message: string
  /** True if the store accepts no more appends. */
  readonly isFatal: boolean
}

export interface Outcome {
  /** Number of appends, counted from the first, that are durable. */
  readonly done: number
  readonly failure: Failure | undefined
}

/** SQLite's extended result code of an error; undefined if there is none. */
export const codeOf = (error: unknown): number | undefined =>
  error instanceof Error && "errcode" in error && typeof error.errcode === "number" ? error.errcode : undefined

/** SQLite result codes after which a retry can succeed: busy, locked, I/O error, full. */
const PASSING = new Set([5, 6, 10, 13])
/** SQLite result codes for errors that the append itself causes: too big, constraint, mismatch, range. */
const REFUSED = new Set([18, 19, 20, 25])
/** SQLite result codes for a key, unique value or rowid that already exists: another program writes to the store. */
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

/** Converts a failure from another thread into an error. */
export const errorOf = ({ code, message }: Failure): Error =>
  Object.assign(new Error(message), code === undefined ? {} : { errcode: code })

/**
 * Commits rows. After a temporary error, yields for a pause: `next(true)` retries, `next(false)` gives up. Returns
 * undefined after success, else the error.
 */
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

/** Commits appends. After a temporary error, yields for a pause: `next(true)` retries, `next(false)` gives up. */
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
