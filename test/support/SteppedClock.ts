/**
 * SteppedClock: a clock whose wall time can be set ahead or back, as a person or NTP sets the machine's clock. Its
 * monotonic time and its sleeps continue.
 */
import { Clock, type Duration, Effect } from "effect"

export const DAY = 86_400_000

/** `step` moves the wall clock by `ms`; `within` runs an effect with this clock. */
export const make = Effect.map(Clock.Clock, (base) => {
  let offset = 0
  const millis = () => base.currentTimeMillisUnsafe() + offset
  const nanos = () => base.currentTimeNanosUnsafe() + BigInt(offset) * 1_000_000n
  // inherits from the test's clock, so that its other methods keep working
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
