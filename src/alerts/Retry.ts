/**
 * Retry: decides when a message that could not be sent is sent again, and when it is given up. Pure.
 *
 * Every failure has a class, and the class selects the policy. The number of attempts is in the log, so that a restart
 * neither resets nor repeats a wait.
 */
import { Schema } from "effect"
import * as Backoff from "../core/supervision/Backoff.ts"

export const FailureClass = Schema.Literals([
  /** The server is unreachable, slow or busy: a retry can help soon. */
  "transient",
  /** The password, the certificate or a missing file: only the user can fix it. */
  "setup",
  /** The server refuses this message. */
  "permanent"
])
export type FailureClass = typeof FailureClass.Type

/** The longest wait between two attempts, ms. */
export const SLOWEST = 15 * 60_000

/** `attempts` after which a message is given up: for transient and setup failures, after about three days. */
const policies: { readonly [failure in FailureClass]: Backoff.Policy & { readonly attempts: number } } = {
  transient: { base: 5_000, factor: 2, cap: SLOWEST, jitter: 0, attempts: 300 },
  setup: { base: SLOWEST, factor: 1, cap: SLOWEST, jitter: 0, attempts: 300 },
  permanent: { base: 60_000, factor: 2, cap: SLOWEST, jitter: 0, attempts: 5 }
}

/** Number of failed attempts after which other channels report the failure. A setup failure is reported at once. */
export const TELLS_AT = 8

/** Time until the next attempt, in ms, after attempt number `attempt` failed. Undefined if the message is given up. */
export const delayAfter = (failure: FailureClass, attempt: number): number | undefined => {
  const policy = policies[failure]
  const limits = { maxConsecutiveErrors: policy.attempts, maxTotalErrors: policy.attempts }
  return Backoff.delay(policy, limits, { consecutiveErrors: attempt, totalErrors: attempt })
}

/** A recipient that a server refused, with the server's code. A code below 500 means that the refusal is temporary. */
export interface Refused {
  readonly to: string
  readonly code: number | null
}

/** The recipients that were refused temporarily, for which the message is sent again. */
export const later = (refused: ReadonlyArray<Refused>): ReadonlyArray<string> =>
  refused.filter(({ code }) => code !== null && code < 500).map(({ to }) => to)
