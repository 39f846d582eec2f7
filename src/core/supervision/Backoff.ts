/**
 * Backoff: how long to wait before the next attempt, and when to stop trying.
 *
 * A Policy becomes an Effect Schedule: `min([exponential(base, factor), spaced(cap)])`, with jitter
 * if the policy sets it. `waits` drives retries that live in memory. `schedule` drives durable
 * retries; two error counters end it. A durable counter resumes its Schedule at step n, so that a
 * restart of the program neither resets nor repeats a wait. `delay` computes that one step and is
 * pure.
 */
import { Duration, Effect, Option, Pull, Schedule } from "effect"

export interface Policy {
  /** Delay before the second attempt, in ms. */
  readonly base: number
  readonly factor: number
  /** Upper limit of each delay, in ms. */
  readonly cap: number
  /** 0 to 1: the share of a delay that jitter can take off, so that many agents do not retry at the same moment. */
  readonly jitter: number
}

export interface Limits {
  readonly maxConsecutiveErrors: number
  readonly maxTotalErrors: number
}

export interface Counters {
  readonly consecutiveErrors: number
  readonly totalErrors: number
  /** If it exceeds `consecutiveErrors`, it selects the delay instead. It never ends the retries. */
  readonly failures?: number
}

export const defaultPolicy: Policy = { base: 2_000, factor: 2, cap: 60_000, jitter: 0 }
export const defaultLimits: Limits = { maxConsecutiveErrors: 5, maxTotalErrors: 20 }

/** A policy that waits the same time before each attempt. */
export const constant = (wait: Duration.Input): Policy => {
  const millis = Duration.toMillis(Duration.fromInputUnsafe(wait))
  return { base: millis, factor: 1, cap: millis, jitter: 0 }
}

/** True when a counter has reached its threshold. */
export const exhausted = (limits: Limits, counters: Counters): boolean =>
  counters.consecutiveErrors >= limits.maxConsecutiveErrors || counters.totalErrors >= limits.maxTotalErrors

/** A number in [0, 1) that depends only on the key (FNV-1a), so that a replayed fold waits the same time. */
const chance = (key: string): number => {
  let hash = 0x811c9dc5
  for (let i = 0; i < key.length; i++) hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x45d9f3b)
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32
}

/** The delays of a policy, without an end. `key` selects the jitter. */
export const waits = (policy: Policy, key = ""): Schedule.Schedule<Duration.Duration> => {
  const capped = Schedule.min([Schedule.exponential(policy.base, policy.factor), Schedule.spaced(policy.cap)])
  if (policy.jitter === 0) return capped
  return Schedule.modifyDelay(capped, ({ attempt, duration }) =>
    Effect.succeed(Duration.times(duration, 1 - policy.jitter * chance(`${key}#${attempt}`)))
  )
}

/** The delays of `waits`, until one of the counters passed in reaches its limit. */
export const schedule = (policy: Policy, limits: Limits, key = ""): Schedule.Schedule<Duration.Duration, Counters> =>
  waits(policy, key).pipe(
    Schedule.setInputType<Counters>(),
    Schedule.while(({ input }) => !exhausted(limits, input))
  )

/** The Schedule after it has made `steps` steps: its next step is number `steps` + 1. */
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

/** ms to wait after the n-th consecutive error, or undefined if a counter has reached its limit. */
export const delay = (policy: Policy, limits: Limits, counters: Counters, key = ""): number | undefined => {
  // With a cap of 0, every delay is 0: no step is needed.
  if (policy.cap === 0) return exhausted(limits, counters) ? undefined : 0
  const n = Math.max(counters.consecutiveErrors, counters.failures ?? 0)
  return nextOf(resumed(schedule(policy, limits, key), Math.max(0, n - 1)), counters)
}

/** ms that the policy waits before repetition `n`; the first repetition is number 1. */
export const wait = (policy: Policy, n: number): number =>
  nextOf(resumed(waits(policy), Math.max(0, n - 1)), undefined) ?? 0

/** The first delay of a schedule that does not depend on the clock; undefined if the schedule has ended. */
const nextOf = <Input>(schedule: Schedule.Schedule<unknown, Input>, input: Input): number | undefined =>
  Schedule.toStep(schedule).pipe(
    Effect.flatMap((step) => step(0, input)),
    Effect.map(([, duration]) => Option.some(Duration.toMillis(duration))),
    Pull.catchDone(() => Effect.succeedNone),
    Effect.runSync,
    Option.getOrUndefined
  )
