/**
 * Soon: how the log schedules work for when the stack is free. A reference, because a simulation without an event loop
 * has its own implementation.
 */
import { Context } from "effect"

export type Soon = (task: () => void) => void

export const Soon = Context.Reference<Soon>("agentd/event-log/Soon", {
  defaultValue: () => (task) => queueMicrotask(task)
})
