/**
 * SteppedClock: a clock whose wall time is set ahead or back while its monotonic time and its sleeps go on, as the
 * machine's is by a person or by NTP.
 */
import { Clock, type Duration, Effect } from "effect"

export const DAY = 86_400_000

/** `step`: sets the wall clock by so many ms, from now on. */
export const make = Effect.map(Clock.Clock, (base) => {
  let offset = 0
  const millis = () => base.currentTimeMillisUnsafe() + offset
  const nanos = () => base.currentTimeNanosUnsafe() + BigInt(offset) * 1_000_000n
  // what a test does with its clock goes on
  const clock: Clock.Clock = Object.assign(Object.create(base) as Clock.Clock, {
    currentTimeMillisUnsafe: millis,
    currentTimeNanosUnsafe: nanos,
    monotonicTimeNanosUnsafe: () => base.monotonicTimeNanosUnsafe(),
    currentTimeMillis: Effect.sync(millis),
    currentTimeNanos: Effect.sync(nanos),
    monotonicTimeNanos: base.monotonicTimeNanos,
    sleep: (duration: Duration.Duration) => base.sleep(duration)
  })
  return {
    step: (ms: number) => Effect.sync(() => void (offset += ms)),
    within: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.provideService(effect, Clock.Clock, clock)
  }
})
