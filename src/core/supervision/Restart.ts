/**
 * Restart: the three decisions of a supervisor about restarts, as pure functions.
 *
 * The table `restarts` says after which kinds of end a child is restarted. A sliding time window (`addRestart`,
 * `exceeded`) says when there were too many restarts. `waitBefore` says how long a child that fails repeatedly waits
 * before its next start.
 */
import { Cause, Exit, Schema } from "effect"
import * as Backoff from "./Backoff.ts"
import type { RestartType } from "./Child.ts"

/**
 * How a child ended. `shutdown`: by an interruption or a `Shutdown` error. `closed`: its owner closed it permanently.
 * `abnormal`: by any other failure.
 */
export type Ending = "normal" | "shutdown" | "closed" | "abnormal"

/**
 * Error with which a child ends itself on purpose, with a reason (OTP's `{shutdown, Reason}`). This is not a crash: a
 * transient child is not restarted.
 */
export class Shutdown extends Schema.TaggedError<Shutdown>()("Shutdown", { reason: Schema.String }) {
  override get message() {
    return this.reason
  }
}

/**
 * Error with which a child ends because its owner has closed it permanently. The child is never restarted, whatever its
 * restart type. The end does not count as a restart, and the supervisor deletes the child's specification.
 */
export class Closed extends Schema.TaggedError<Closed>()("Closed", { reason: Schema.String }) {
  override get message() {
    return this.reason
  }
}

/** Classifies how a child ended. All code that classifies exits uses this function. */
export const ending = (exit: Exit.Exit<unknown, unknown>): Ending => {
  if (Exit.isSuccess(exit)) return "normal"
  const { reasons } = exit.cause
  if (reasons.some((reason) => Cause.isFailReason(reason) && reason.error instanceof Closed)) return "closed"
  return reasons.every(onPurpose) ? "shutdown" : "abnormal"
}

const onPurpose = (reason: Cause.Reason<unknown>) =>
  Cause.isInterruptReason(reason) || (Cause.isFailReason(reason) && reason.error instanceof Shutdown)

export const restarts: { readonly [type in RestartType]: { readonly [end in Ending]: boolean } } = {
  permanent: { normal: true, shutdown: true, closed: false, abnormal: true },
  transient: { normal: false, shutdown: false, closed: false, abnormal: true },
  temporary: { normal: false, shutdown: false, closed: false, abnormal: false }
}

/** A restart within the window. `at`: on the monotonic clock, in nanoseconds. */
export interface Counted {
  readonly at: bigint
  readonly child: string
}

/** The restarts within the current period, oldest first. */
export type Window = ReadonlyArray<Counted>

export const emptyWindow: Window = []

/**
 * Adds a restart to the window and removes those that are older than `period` (in nanoseconds). A restart that happened
 * exactly `period` ago still counts. Times are compared in nanoseconds; OTP compares whole seconds. The result has at
 * most `intensity` + 1 entries.
 */
export const addRestart = (window: Window, restart: Counted, period: bigint, intensity: number): Window => {
  const since = restart.at - period
  let first = Math.max(0, window.length - intensity)
  while (first < window.length && window[first]!.at < since) first++
  const recent = window.slice(first)
  recent.push(restart)
  return recent
}

export const exceeded = (window: Window, intensity: number): boolean => window.length > intensity

export const restartsOf = (window: Window, child: string): number => {
  let count = 0
  for (const restart of window) if (restart.child === child) count++
  return count
}

/**
 * Returns the time in ms for which a restarted child waits before its start. As in OTP, a child's first restart is
 * immediate. Later restarts wait for the policy's delay, but at most for the period divided by `intensity` + 1.
 * Therefore the waits of `intensity` restarts fit into the period, and a child that always fails immediately still
 * exceeds the allowed number of restarts.
 */
export const waitBefore = (
  window: Window,
  child: string,
  policy: Backoff.Policy,
  period: bigint,
  intensity: number
) => {
  const before = restartsOf(window, child) - 1
  return before < 1 ? 0 : Math.min(Backoff.wait(policy, before), Number(period / 1_000_000n) / (intensity + 1))
}
