/**
 * Backoff: how long to wait before the next try, and when to try no more.
 *
 * The Schedule is the policy: `min([exponential(base, factor), spaced(cap)])`, with
 * jitter where the policy names some. Every wait-and-try-again is driven by one: a
 * retry of the moment by `waits`, a durable one by `schedule`, which two counters
 * end. A durable counter resumes its Schedule at step n, so that a restart of the
 * program neither resets nor repeats a wait: `delay` is that one step, and pure.
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
  /** Where it is the larger, it picks the wait in place of the errors in a row; it ends nothing. */
  readonly failures?: number
}

export const defaultPolicy: Policy = { base: 2_000, factor: 2, cap: 60_000, jitter: 0 }
export const defaultLimits: Limits = { maxConsecutiveErrors: 5, maxTotalErrors: 20 }

/** The policy that waits the same time before each try. */
export const constant = (wait: Duration.Input): Policy => {
  const millis = Duration.toMillis(Duration.fromInputUnsafe(wait))
  return { base: millis, factor: 1, cap: millis, jitter: 0 }
}

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

/** The waits of a policy, without an end; `key` picks the jitter. */
export const waits = (policy: Policy, key = ""): Schedule.Schedule<Duration.Duration> => {
  const capped = Schedule.min([Schedule.exponential(policy.base, policy.factor), Schedule.spaced(policy.cap)])
  if (policy.jitter === 0) return capped
  return Schedule.modifyDelay(capped, ({ attempt, duration }) =>
    Effect.succeed(Duration.times(duration, 1 - policy.jitter * chance(`${key}#${attempt}`)))
  )
}

/** The same waits, ended as soon as one of the counters that are fed to it has reached its threshold. */
export const schedule = (policy: Policy, limits: Limits, key = ""): Schedule.Schedule<Duration.Duration, Counters> =>
  waits(policy, key).pipe(
    Schedule.setInputType<Counters>(),
    Schedule.while(({ input }) => !exhausted(limits, input))
  )

/** The Schedule as it stands after `steps` steps: the next one is number `steps` + 1. */
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

/** The schedule's step at a durable counter: ms to wait after the n-th error in a row, or undefined when it has ended. */
export const delay = (policy: Policy, limits: Limits, counters: Counters, key = ""): number | undefined => {
  // the same without a step: no wait is longer than none
  if (policy.cap === 0) return exhausted(limits, counters) ? undefined : 0
  const n = Math.max(counters.consecutiveErrors, counters.failures ?? 0)
  return nextOf(resumed(schedule(policy, limits, key), Math.max(0, n - 1)), counters)
}

/** ms that the policy waits before its n-th repetition, the first being number 1. */
export const wait = (policy: Policy, n: number): number =>
  nextOf(resumed(waits(policy), Math.max(0, n - 1)), undefined) ?? 0

/** The first wait of a schedule that needs no clock. */
const nextOf = <Input>(schedule: Schedule.Schedule<unknown, Input>, input: Input): number | undefined =>
  Schedule.toStep(schedule).pipe(
    Effect.flatMap((step) => step(0, input)),
    Effect.map(([, duration]) => Option.some(Duration.toMillis(duration))),
    Pull.catchDone(() => Effect.succeedNone),
    Effect.runSync,
    Option.getOrUndefined
  )
