/**
 * NextTick: schedules a task of the log to run when the current call stack has ended. NextTick is an Effect reference,
 * so that a simulation without an event loop can replace it.
 */
import { Context } from "effect"

export type NextTick = (task: () => void) => void

export const NextTick = Context.Reference<NextTick>("agentd/event-log/Soon", {
  defaultValue: () => (task) => queueMicrotask(task)
})
