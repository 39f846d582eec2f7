/**
 * VirtualTime: a scheduler and a clock under which a program of fibers runs on the
 * stack of its test, as fast as it can: tasks in the order in which they were given,
 * and when none is left the earliest sleeper wakes.
 *
 * The monotonic clock stands still meanwhile and moves by whole seconds, when told:
 * OTP counts restarts in whole seconds, so that a grace of some ms counts as none.
 */
import { Clock, Context, Duration, Effect, type Fiber, Logger, Scheduler } from "effect"

interface Sleeper {
  readonly due: number
  readonly wake: () => void
}

export class VirtualTime {
  readonly context: Context.Context<never>
  /** The time of the monotonic clock. */
  seconds = 0
  private now = 0
  private tasks: Array<() => void> = []
  private readonly sleepers = new Set<Sleeper>()

  constructor() {
    const scheduler: Scheduler.Scheduler = {
      executionMode: "sync",
      shouldYield: () => false,
      makeDispatcher: () => ({ scheduleTask: (task) => void this.tasks.push(task), flush: () => undefined })
    }
    this.context = Context.empty().pipe(
      Context.add(Clock.Clock, this.clock()),
      Context.add(Scheduler.Scheduler, scheduler),
      Context.add(Logger.CurrentLoggers, new Set())
    )
  }

  private clock(): Clock.Clock {
    const millis = () => this.seconds * 1_000
    const nanos = () => BigInt(this.seconds) * 1_000_000_000n
    return {
      currentTimeMillisUnsafe: millis,
      currentTimeMillis: Effect.sync(millis),
      currentTimeNanosUnsafe: nanos,
      currentTimeNanos: Effect.sync(nanos),
      monotonicTimeNanosUnsafe: nanos,
      monotonicTimeNanos: Effect.sync(nanos),
      sleep: (duration) =>
        Effect.callback<void>((resume) => {
          const sleeper = { due: this.now + Duration.toMillis(duration), wake: () => resume(Effect.void) }
          this.sleepers.add(sleeper)
          return Effect.sync(() => void this.sleepers.delete(sleeper))
        })
    }
  }

  fork<A, E>(effect: Effect.Effect<A, E>): Fiber.Fiber<A, E> {
    return Effect.runForkWith(this.context)(effect)
  }

  /** Runs an effect to its end, and all that follows from it. */
  run<A, E>(effect: Effect.Effect<A, E>): A {
    const fiber = this.fork(effect)
    this.settle()
    const exit = fiber.pollUnsafe()
    if (exit === undefined) throw new Error("a fiber waits for something that never comes")
    return Effect.runSync(exit)
  }

  /** Until nothing is left to be done but to wait. */
  turns(): void {
    while (this.tasks.length > 0) {
      const { tasks } = this
      this.tasks = []
      for (const task of tasks) task()
    }
  }

  /** Until nothing is left to be done, the sleepers' part included. */
  settle(): void {
    for (;;) {
      this.turns()
      const next = [...this.sleepers].toSorted((a, b) => a.due - b.due)[0]
      if (next === undefined) return
      this.sleepers.delete(next)
      this.now = Math.max(this.now, next.due)
      next.wake()
    }
  }
}
