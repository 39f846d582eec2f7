/**
 * SupervisorTrace: what a supervisor did, in order.
 *
 * Guarantees: an event is recorded when the thing happens, before anything that
 * follows from it; only the newest `capacity` events are kept.
 */
import type { Cause, Exit } from "effect"
import type { Ending } from "./Restart.ts"

export type EndReason =
  /** Asked to, by its parent or by the closing of its Scope. */
  | "stopped"
  /** More restarts than its intensity allows. */
  | "escalated"
  /** The supervisor's significant children have ended. */
  | "auto_shutdown"
  /** A child did not start while the supervisor itself was starting. */
  | "failed_to_start"
  /** A defect of the supervisor itself. */
  | "crashed"

export type TraceEvent =
  | { readonly _tag: "Started"; readonly child: string }
  | { readonly _tag: "Ignored"; readonly child: string }
  | { readonly _tag: "StartFailed"; readonly child: string; readonly cause: Cause.Cause<unknown> }
  /** A child's own end, without a request. */
  | {
      readonly _tag: "Exited"
      readonly child: string
      readonly ending: Ending
      readonly exit: Exit.Exit<unknown, unknown>
    }
  /** Counted against the intensity; `attempt` is the number of restarts in the window, `wait` the ms until the start. */
  | { readonly _tag: "Restarting"; readonly child: string; readonly attempt: number; readonly wait: number }
  /** An exclusive child starts when its incarnation that was left behind has ended. */
  | { readonly _tag: "AwaitsEnd"; readonly child: string }
  | { readonly _tag: "Stopping"; readonly child: string; readonly how: "shutdown" | "kill" }
  | { readonly _tag: "Stopped"; readonly child: string; readonly exit: Exit.Exit<unknown, unknown> }
  /** Killed after its grace and still not ended: left behind. */
  | { readonly _tag: "Abandoned"; readonly child: string }
  /** An abandoned child has ended after all. */
  | { readonly _tag: "EndedLate"; readonly child: string }
  /** The supervisor itself begins to end; `child` is the one that gave the reason. */
  | { readonly _tag: "Ending"; readonly reason: EndReason; readonly child: string | undefined }
  | { readonly _tag: "Ended"; readonly reason: EndReason }

/** The newest events; older ones make room. */
export class TraceRing {
  private readonly capacity: number
  private events: Array<TraceEvent> = []
  private next = 0

  constructor(capacity: number) {
    this.capacity = capacity
  }

  push(event: TraceEvent): void {
    if (this.events.length < this.capacity) this.events.push(event)
    else if (this.capacity > 0) {
      this.events[this.next] = event
      this.next = (this.next + 1) % this.capacity
    }
  }

  /** Oldest first. */
  toArray(): ReadonlyArray<TraceEvent> {
    return [...this.events.slice(this.next), ...this.events.slice(0, this.next)]
  }
}
