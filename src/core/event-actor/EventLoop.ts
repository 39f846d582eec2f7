/**
 * EventLoop: schedules the turns of actors and measures the duration of a turn.
 *
 * `live` uses Node's event loop. `Manual` is for simulations and tests: its owner sets the time and decides when tasks
 * run.
 */
import { Clock, Context, Effect, Layer } from "effect"

export interface EventLoopShape {
  /** Runs the task when the current call stack has ended, before the event loop continues. */
  soon(task: () => void): void
  /** Runs the task in a later round of the event loop, after pending sockets and timers. */
  later(task: () => void): void
  /** Monotonic time in ms, with fractions, to measure the duration of turns. */
  now(): number
}

export class EventLoop extends Context.Service<EventLoop, EventLoopShape>()("agentd/event-actor/EventLoop") {}

export const live = (clock: Clock.Clock): EventLoopShape => ({
  soon: (task) => queueMicrotask(task),
  later: (task) => void setImmediate(task),
  now: () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6
})

export const layer: Layer.Layer<EventLoop> = Layer.effect(EventLoop, Effect.map(Clock.Clock, live))

/** An event loop that runs tasks only when its owner calls `turn` or `run`. */
export class Manual implements EventLoopShape {
  /** The time that `now` returns, in ms. The owner changes it. */
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

  /** Runs the tasks that are queued now. Returns true if there were any. */
  turn(): boolean {
    const { tasks } = this
    this.tasks = []
    for (const task of tasks) task()
    return tasks.length > 0
  }

  /** Runs queued tasks, and the tasks that they queue, until no task is left. */
  run(): void {
    while (this.turn());
  }
}
