/**
 * Restart: the three decisions of a supervisor, as pure functions.
 *
 * A table says which ends of a child lead to a restart. A sliding window says how many restarts are
 * too many. `waitBefore` says how long a child that fails again waits for its next start.
 */
import { Cause, Exit, Schema } from "effect"
import * as Backoff from "./Backoff.ts"
import type { RestartType } from "./Child.ts"

/**
 * How a child ended. `shutdown`: by an interruption or a `Shutdown` error. `closed`: its owner
 * closed it for good. `abnormal`: any other failure.
 */
export type Ending = "normal" | "shutdown" | "closed" | "abnormal"

/**
 * A child ends itself on purpose, with a reason (OTP's `{shutdown, Reason}`). No crash: a transient
 * child stays down.
 */
export class Shutdown extends Schema.TaggedError<Shutdown>()("Shutdown", { reason: Schema.String }) {
  override get message() {
    return this.reason
  }
}

/**
 * The end of a child that its owner has closed for good. No restart type restarts such a child, its
 * end does not count as a restart, and its supervisor forgets its specification.
 */
export class Closed extends Schema.TaggedError<Closed>()("Closed", { reason: Schema.String }) {
  override get message() {
    return this.reason
  }
}

/** The only place that classifies an exit. */
export const ending = (exit: Exit.Exit<unknown, unknown>): Ending => {
  if (Exit.isSuccess(exit)) return "normal"
  const { reasons } = exit.cause
  if (reasons.some((reason) => Cause.isFailReason(reason) && reason.error instanceof Closed)) return "closed"
  return reasons.every(onPurpose) ? "shutdown" : "abnormal"
}

const onPurpose = (reason: Cause.Reason<unknown>) =>
  Cause.isInterruptReason(reason) || (Cause.isFailReason(reason) && reason.error instanceof Shutdown)

/** For each restart type and ending: true if the child is started again. */
export const restarts: { readonly [type in RestartType]: { readonly [end in Ending]: boolean } } = {
  permanent: { normal: true, shutdown: true, closed: false, abnormal: true },
  transient: { normal: false, shutdown: false, closed: false, abnormal: true },
  temporary: { normal: false, shutdown: false, closed: false, abnormal: false }
}

/** A restart that counts against the intensity; `at` is in nanoseconds of a monotonic clock. */
export interface Counted {
  readonly at: bigint
  readonly child: string
}

/** The restarts that still count, oldest first. */
export type Window = ReadonlyArray<Counted>

export const emptyWindow: Window = []

/**
 * Adds a restart. A restart exactly `period` ago still counts. OTP compares whole seconds; this
 * compares nanoseconds. The result has at most `intensity` + 1 entries.
 */
export const addRestart = (window: Window, restart: Counted, period: bigint, intensity: number): Window => {
  const since = restart.at - period
  let first = Math.max(0, window.length - intensity)
  while (first < window.length && window[first]!.at < since) first++
  const recent = window.slice(first)
  recent.push(restart)
  return recent
}

/** True if the last restart exceeded the intensity. */
export const exceeded = (window: Window, intensity: number): boolean => window.length > intensity

/** How many of the restarts that still count belong to this child. */
export const restartsOf = (window: Window, child: string): number => {
  let count = 0
  for (const restart of window) if (restart.child === child) count++
  return count
}

/**
 * ms between the newest restart in the window and the start that follows it. As in OTP, a child's
 * first restart is immediate. Its later restarts wait as the policy says, but at most the period
 * divided by `intensity` + 1. So the waits of `intensity` restarts fit into the period, and a child
 * that fails immediately always exceeds the window.
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
