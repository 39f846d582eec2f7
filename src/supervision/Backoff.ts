/**
 * Backoff: how long to wait before the next try, and when to try no more.
 *
 * The counters are the machine's, and durable; the Schedule only maps them to a
 * delay, so that a restart of the daemon neither resets nor repeats a wait. The
 * n-th error in a row waits min(base · factor^(n−1), cap); a counter at its
 * threshold ends the schedule.
 */
import { Duration, Effect, Option, Pull, Schedule } from "effect"

export interface Policy {
  /** ms before the second try */
  readonly base: number
  readonly factor: number
  /** ms; no delay is longer */
  readonly cap: number
  /** 0 to 1: the share of a delay that chance may take off, so that many agents do not come back at once. */
  readonly jitter: number
}

export interface Limits {
  readonly maxConsecutiveErrors: number
  readonly maxTotalErrors: number
}

export interface Counters {
  readonly consecutiveErrors: number
  readonly totalErrors: number
}

export const defaultPolicy: Policy = { base: 2_000, factor: 2, cap: 60_000, jitter: 0 }
export const defaultLimits: Limits = { maxConsecutiveErrors: 5, maxTotalErrors: 20 }

/** True when a counter has reached its threshold. */
export const exhausted = (limits: Limits, counters: Counters): boolean =>
  counters.consecutiveErrors >= limits.maxConsecutiveErrors || counters.totalErrors >= limits.maxTotalErrors

/** A number in [0, 1) that depends on the key alone (FNV-1a): the same fold waits the same time. */
const chance = (key: string): number => {
  let hash = 0x811c9dc5
  for (let i = 0; i < key.length; i++) hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x45d9f3b)
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32
}

/** The wait after the n-th error in a row, in ms; `key` picks the jitter. */
const millis = (policy: Policy, n: number, key: string): number =>
  Math.min(policy.base * policy.factor ** Math.max(0, n - 1), policy.cap) * (1 - policy.jitter * chance(`${key}#${n}`))

/** Counters in, delays out. It keeps no count of its own. */
export const schedule = (policy: Policy, limits: Limits, key = ""): Schedule.Schedule<number, Counters> =>
  Schedule.forever.pipe(
    Schedule.setInputType<Counters>(),
    Schedule.while(({ input }) => !exhausted(limits, input)),
    Schedule.modifyDelay(({ input }) => Effect.succeed(Duration.millis(millis(policy, input.consecutiveErrors, key))))
  )

/** One step of the schedule: ms to wait, or undefined when a threshold has ended it. */
export const delay = (policy: Policy, limits: Limits, counters: Counters, key = ""): number | undefined =>
  Schedule.toStep(schedule(policy, limits, key)).pipe(
    Effect.flatMap((step) => step(0, counters)),
    Effect.map(([, duration]) => Option.some(Duration.toMillis(duration))),
    Pull.catchDone(() => Effect.succeedNone),
    Effect.runSync,
    Option.getOrUndefined
  )
