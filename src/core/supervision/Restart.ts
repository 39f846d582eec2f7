/**
 * Restart: the three decisions of a supervisor, pure. Which ends of a child bring
 * it back (a table), how many restarts are too many (a sliding window), and how long
 * a child that fails again waits for its next start.
 */
import { Cause, Exit, Schema } from "effect"
import * as Backoff from "./Backoff.ts"
import type { RestartType } from "./Child.ts"

/**
 * How a child ended: `shutdown` is an interruption or a `Shutdown`, `closed` an end for
 * good by the child's owner, all else that failed is `abnormal`.
 */
export type Ending = "normal" | "shutdown" | "closed" | "abnormal"

/** A child's own end on purpose, with a reason (OTP's `{shutdown, Reason}`): no crash, transients stay down. */
export class Shutdown extends Schema.TaggedError<Shutdown>()("Shutdown", { reason: Schema.String }) {
  override get message() {
    return this.reason
  }
}

/**
 * The end of a child that its owner has closed for good. No restart type brings such a
 * child back, its end is no restart, and its supervisor forgets its specification.
 */
export class Closed extends Schema.TaggedError<Closed>()("Closed", { reason: Schema.String }) {
  override get message() {
    return this.reason
  }
}

/** The single place that tells the ways to end apart. */
export const ending = (exit: Exit.Exit<unknown, unknown>): Ending => {
  if (Exit.isSuccess(exit)) return "normal"
  const { reasons } = exit.cause
  if (reasons.some((reason) => Cause.isFailReason(reason) && reason.error instanceof Closed)) return "closed"
  return reasons.every(onPurpose) ? "shutdown" : "abnormal"
}

const onPurpose = (reason: Cause.Reason<unknown>) =>
  Cause.isInterruptReason(reason) || (Cause.isFailReason(reason) && reason.error instanceof Shutdown)

/** Restart type × ending: is the child started again? */
export const restarts: { readonly [type in RestartType]: { readonly [end in Ending]: boolean } } = {
  permanent: { normal: true, shutdown: true, closed: false, abnormal: true },
  transient: { normal: false, shutdown: false, closed: false, abnormal: true },
  temporary: { normal: false, shutdown: false, closed: false, abnormal: false }
}

/** A counted restart, in nanoseconds of a monotonic clock. */
export interface Counted {
  readonly at: bigint
  readonly child: string
}

/** The restarts that still count, oldest first. */
export type Window = ReadonlyArray<Counted>

export const emptyWindow: Window = []

/**
 * Adds a restart. A restart exactly `period` ago still counts (OTP compares
 * whole seconds, we compare nanoseconds). Never longer than `intensity` + 1.
 */
export const addRestart = (window: Window, restart: Counted, period: bigint, intensity: number): Window => {
  const since = restart.at - period
  let first = Math.max(0, window.length - intensity)
  while (first < window.length && window[first]!.at < since) first++
  const recent = window.slice(first)
  recent.push(restart)
  return recent
}

/** Did the last restart go over the limit? */
export const exceeded = (window: Window, intensity: number): boolean => window.length > intensity

/** How many of the restarts that still count were this child's. */
export const restartsOf = (window: Window, child: string): number => {
  let count = 0
  for (const restart of window) if (restart.child === child) count++
  return count
}

/**
 * ms between the newest restart in the window and the start that follows it. A child's
 * first restart is at once, as OTP's; its further ones wait by the policy, but no
 * longer than its share of the period: the waits of `intensity` restarts fit into the
 * period, so that a child which fails at once always trips the window.
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
