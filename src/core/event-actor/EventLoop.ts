/**
 * EventLoop: schedules the turns of actors and measures how long a turn has lasted.
 *
 * `live` uses Node's event loop. `Manual` is for a simulation and for tests: a thread without a
 * loop. Nothing runs until the owner calls it, and the owner sets the time.
 */
import { Clock, Context, Effect, Layer } from "effect"

export interface EventLoopShape {
  /** Runs the task when the stack is free, before the event loop goes on. */
  soon(task: () => void): void
  /** Runs the task after the event loop had its turn: sockets and timers come first. */
  later(task: () => void): void
  /** Monotonic time in ms, with fractions; measures the time of a turn. */
  now(): number
}

export class EventLoop extends Context.Service<EventLoop, EventLoopShape>()("agentd/event-actor/EventLoop") {}

/** Node's event loop, with the monotonic part of the clock. */
export const live = (clock: Clock.Clock): EventLoopShape => ({
  soon: (task) => queueMicrotask(task),
  later: (task) => void setImmediate(task),
  now: () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6
})

export const layer: Layer.Layer<EventLoop> = Layer.effect(EventLoop, Effect.map(Clock.Clock, live))

/** An event loop that its owner drives. */
export class Manual implements EventLoopShape {
  /** The result of `now`; the owner changes it. */
  time = 0
  private tasks: Array<() => void> = []

  soon(task: () => void): void {
    this.tasks.push(task)
  }

  later(task: () => void): void {
    this.tasks.push(task)
  }

  now(): number {
    return this.time
  }

  get waiting(): number {
    return this.tasks.length
  }

  /** Runs the waiting tasks. Returns true if there were any. */
  turn(): boolean {
    const { tasks } = this
    this.tasks = []
    for (const task of tasks) task()
    return tasks.length > 0
  }

  /** Runs tasks until none is waiting. */
  run(): void {
    while (this.turn());
  }
}
