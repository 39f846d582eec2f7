/**
 * EventLoop: how actors come to their turns, and how long a turn has lasted.
 *
 * `live` is Node's own loop. `Manual` is one thread without a loop, for a simulation and
 * for tests: nothing runs until it is told to, and the time of a slice is what it is
 * told.
 */
import { Clock, Context, Effect, Layer } from "effect"

export interface EventLoopShape {
  /** Runs the task when the stack is free, before the event loop goes on. */
  soon(task: () => void): void
  /** Runs the task after the event loop had its turn: sockets and timers come first. */
  later(task: () => void): void
  /** Monotonic ms, with fractions: the time of a slice. */
  now(): number
}

export class EventLoop extends Context.Service<EventLoop, EventLoopShape>()("agentd/event-actor/EventLoop") {}

/** Node's loop, on the monotonic part of the clock. */
export const live = (clock: Clock.Clock): EventLoopShape => ({
  soon: (task) => queueMicrotask(task),
  later: (task) => void setImmediate(task),
  now: () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6
})

export const layer: Layer.Layer<EventLoop> = Layer.effect(EventLoop, Effect.map(Clock.Clock, live))

/** A thread that its owner drives. */
export class Manual implements EventLoopShape {
  /** The answer of `now`; the owner moves it. */
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

  /** Runs the tasks that wait; true if there were any. */
  turn(): boolean {
    const { tasks } = this
    this.tasks = []
    for (const task of tasks) task()
    return tasks.length > 0
  }

  /** Until nothing waits. */
  run(): void {
    while (this.turn());
  }
}
