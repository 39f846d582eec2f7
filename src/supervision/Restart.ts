/**
 * Restart: the two decisions of a supervisor, pure. Which ends of a child bring
 * it back (a table), and how many restarts are too many (a sliding window).
 */
import { Cause, Exit, Schema } from "effect"
import type { RestartType } from "./Child.ts"

/** How a child ended: `shutdown` is an interruption or a `Shutdown`, all else that failed is `abnormal`. */
export type Ending = "normal" | "shutdown" | "abnormal"

/** A child's own end on purpose, with a reason (OTP's `{shutdown, Reason}`): no crash, transients stay down. */
export class Shutdown extends Schema.TaggedError<Shutdown>()("Shutdown", { reason: Schema.String }) {
  override get message() {
    return this.reason
  }
}

/** The single place that tells the ways to end apart. */
export const ending = (exit: Exit.Exit<unknown, unknown>): Ending =>
  Exit.isSuccess(exit) ? "normal" : exit.cause.reasons.every(onPurpose) ? "shutdown" : "abnormal"

const onPurpose = (reason: Cause.Reason<unknown>) =>
  Cause.isInterruptReason(reason) || (Cause.isFailReason(reason) && reason.error instanceof Shutdown)

/** Restart type × ending: is the child started again? */
export const restarts: { readonly [type in RestartType]: { readonly [end in Ending]: boolean } } = {
  permanent: { normal: true, shutdown: true, abnormal: true },
  transient: { normal: false, shutdown: false, abnormal: true },
  temporary: { normal: false, shutdown: false, abnormal: false }
}

/** The restarts that still count, oldest first, in nanoseconds of a monotonic clock. */
export type Window = ReadonlyArray<bigint>

export const emptyWindow: Window = []

/**
 * One restart more. A restart exactly `period` ago still counts (OTP compares
 * whole seconds, we compare nanoseconds). Never longer than `intensity` + 1.
 */
export const addRestart = (window: Window, now: bigint, period: bigint, intensity: number): Window => {
  const since = now - period
  let first = Math.max(0, window.length - intensity)
  while (first < window.length && window[first]! < since) first++
  const recent = window.slice(first)
  recent.push(now)
  return recent
}

/** Did the last restart go over the limit? */
export const exceeded = (window: Window, intensity: number): boolean => window.length > intensity
