/**
 * Retry: what becomes of a mail that could not be sent. Pure.
 *
 * Every failure has a class and the class picks the policy. The count of
 * attempts is in the log, so that a restart neither resets nor repeats a wait.
 */
import { Schema } from "effect"
import * as Backoff from "../core/supervision/Backoff.ts"

export const FailureClass = Schema.Literals([
  /** The server is away, slow or busy: soon again. */
  "transient",
  /** Password, certificate, a file that is not there: only a person can mend it. */
  "setup",
  /** The server will not take this mail. */
  "permanent"
])
export type FailureClass = typeof FailureClass.Type

/** The longest wait between two attempts, ms. */
export const SLOWEST = 15 * 60_000

/** `attempts`: after so many it is given up. With transient ones that is after three days of asking. */
const policies: { readonly [failure in FailureClass]: Backoff.Policy & { readonly attempts: number } } = {
  transient: { base: 5_000, factor: 2, cap: SLOWEST, jitter: 0, attempts: 300 },
  setup: { base: SLOWEST, factor: 1, cap: SLOWEST, jitter: 0, attempts: 300 },
  permanent: { base: 60_000, factor: 2, cap: SLOWEST, jitter: 0, attempts: 5 }
}

/** After so many failed attempts of a channel the others tell of it. */
export const TELLS_AT = 8

/** ms until the next attempt after the `attempt`-th failed in this way; undefined: given up. */
export const delayAfter = (failure: FailureClass, attempt: number): number | undefined => {
  const policy = policies[failure]
  const limits = { maxConsecutiveErrors: policy.attempts, maxTotalErrors: policy.attempts }
  return Backoff.delay(policy, limits, { consecutiveErrors: attempt, totalErrors: attempt })
}

/** A recipient that a server did not take, with its code: 4xx for now. */
export interface Refused {
  readonly to: string
  readonly code: number | null
}

/** The recipients that are to be asked again. */
export const later = (refused: ReadonlyArray<Refused>): ReadonlyArray<string> =>
  refused.filter(({ code }) => code !== null && code < 500).map(({ to }) => to)
