/**
 * NextTick: schedules a task of the log to run when the current call stack has ended. A reference, because a simulation
 * without an event loop has its own implementation.
 */
import { Context } from "effect"

export type NextTick = (task: () => void) => void

export const NextTick = Context.Reference<NextTick>("agentd/event-log/Soon", {
  defaultValue: () => (task) => queueMicrotask(task)
})
