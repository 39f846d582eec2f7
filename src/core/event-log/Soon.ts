/**
 * Soon: how the log comes back to what it put off until the stack is free. A reference: a
 * simulation without an event loop has its own.
 */
import { Context } from "effect"

export type Soon = (task: () => void) => void

export const Soon = Context.Reference<Soon>("agentd/event-log/Soon", {
  defaultValue: () => (task) => queueMicrotask(task)
})
