/**
 * Backoff: computes the delay before the next attempt, and when to stop retrying.
 *
 * A policy is converted to an Effect Schedule: `min([exponential(base, factor), spaced(cap)])`, with jitter if the
 * policy has it. `waits` is for retries whose state is only in memory. `schedule` is for durable retries; it ends when
 * one of two error counters reaches its limit. For durable retries, `delay` computes only step n of the Schedule.
 * Therefore a restart of the program neither resets nor repeats a delay. `delay` is pure.
 */
import { Duration, Effect, Option, Pull, Schedule } from "effect"

export interface Policy {
  /** Delay before the second attempt, in ms. */
  readonly base: number
  readonly factor: number
  /** Upper limit of each delay, in ms. */
  readonly cap: number
  /**
   * Maximum fraction of a delay that jitter subtracts from it, from 0 to 1. Jitter prevents many agents from retrying
   * at the same time.
   */
  readonly jitter: number
}

export interface Limits {
  readonly maxConsecutiveErrors: number
  readonly maxTotalErrors: number
}

export interface Counters {
  readonly consecutiveErrors: number
  readonly totalErrors: number
  /**
   * Number of failures from which the delay is computed, if it is greater than `consecutiveErrors`. This number has no
   * limit and never ends the retries.
   */
  readonly failures?: number
}

export const defaultPolicy: Policy = { base: 2_000, factor: 2, cap: 60_000, jitter: 0 }
export const defaultLimits: Limits = { maxConsecutiveErrors: 5, maxTotalErrors: 20 }

export const constant = (wait: Duration.Input): Policy => {
  const millis = Duration.toMillis(Duration.fromInputUnsafe(wait))
  return { base: millis, factor: 1, cap: millis, jitter: 0 }
}

/** Returns true if one of the error counters has reached its limit. */
export const exhausted = (limits: Limits, counters: Counters): boolean =>
  counters.consecutiveErrors >= limits.maxConsecutiveErrors || counters.totalErrors >= limits.maxTotalErrors

/**
 * Returns a number in [0, 1) that depends only on the key (FNV-1a hash). A replay of the log therefore computes the
 * same delays.
 */
const chance = (key: string): number => {
  let hash = 0x811c9dc5
  for (let i = 0; i < key.length; i++) hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x45d9f3b)
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32
}

/** Returns the endless schedule of a policy's delays. The jitter is computed from `key`. */
export const waits = (policy: Policy, key = ""): Schedule.Schedule<Duration.Duration> => {
  const capped = Schedule.min([Schedule.exponential(policy.base, policy.factor), Schedule.spaced(policy.cap)])
  if (policy.jitter === 0) return capped
  return Schedule.modifyDelay(capped, ({ attempt, duration }) =>
    Effect.succeed(Duration.times(duration, 1 - policy.jitter * chance(`${key}#${attempt}`)))
  )
}

/** Returns the schedule of `waits`, but ends it when one of the error counters passed as input reaches its limit. */
export const schedule = (policy: Policy, limits: Limits, key = ""): Schedule.Schedule<Duration.Duration, Counters> =>
  waits(policy, key).pipe(
    Schedule.setInputType<Counters>(),
    Schedule.while(({ input }) => !exhausted(limits, input))
  )

/** Returns the rest of a schedule after its first `steps` steps. */
export const resumed = <Output, Input>(
  schedule: Schedule.Schedule<Output, Input>,
  steps: number
): Schedule.Schedule<Output, Input> =>
  Schedule.fromStep(
    Effect.map(Schedule.toStep(schedule), (step) => {
      let behind = steps
      return (now: number, input: Input) =>
        Effect.gen(function* () {
          for (; behind > 0; behind--) yield* step(now, input)
          return yield* step(now, input)
        })
    })
  )

/** Delay in ms before the next attempt; undefined if a counter has reached its limit. */
export const delay = (policy: Policy, limits: Limits, counters: Counters, key = ""): number | undefined => {
  // if the cap is 0, every delay is 0, and the schedule is not needed
  if (policy.cap === 0) return exhausted(limits, counters) ? undefined : 0
  const n = Math.max(counters.consecutiveErrors, counters.failures ?? 0)
  return nextOf(resumed(schedule(policy, limits, key), Math.max(0, n - 1)), counters)
}

/** Returns the policy's delay in ms before the `n`-th retry; the first retry is number 1. */
export const wait = (policy: Policy, n: number): number =>
  nextOf(resumed(waits(policy), Math.max(0, n - 1)), undefined) ?? 0

/** First delay of a schedule in ms; undefined if the schedule has ended. The schedule must not depend on the clock. */
const nextOf = <Input>(schedule: Schedule.Schedule<unknown, Input>, input: Input): number | undefined =>
  Schedule.toStep(schedule).pipe(
    Effect.flatMap((step) => step(0, input)),
    Effect.map(([, duration]) => Option.some(Duration.toMillis(duration))),
    Pull.catchDone(() => Effect.succeedNone),
    Effect.runSync,
    Option.getOrUndefined
  )
