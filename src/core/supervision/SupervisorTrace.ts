/**
 * SupervisorTrace: records the actions of a supervisor, in order.
 *
 * Guarantees: an event is recorded when it happens, before its consequences. Only the newest `capacity` events are
 * kept.
 */
import type { Cause, Exit } from "effect"
import type { Ending } from "./Restart.ts"

export type EndReason =
  /** The parent asked the supervisor to stop, or its Scope was closed. */
  | "stopped"
  /** More restarts happened within the period than the option `intensity` allows. */
  | "escalated"
  /** The significant children have ended: any or all of them, depending on the option `autoShutdown`. */
  | "auto_shutdown"
  /** A child failed to start during the start of the supervisor. */
  | "failed_to_start"
  /** The supervisor has a bug and ended with a defect. */
  | "crashed"

export type TraceEvent =
  | { readonly _tag: "Started"; readonly child: string }
  | { readonly _tag: "Ignored"; readonly child: string }
  | { readonly _tag: "StartFailed"; readonly child: string; readonly cause: Cause.Cause<unknown> }
  /** A child ended although the supervisor had not stopped it. */
  | {
      readonly _tag: "Exited"
      readonly child: string
      readonly ending: Ending
      readonly exit: Exit.Exit<unknown, unknown>
    }
  /** A child restarts. `attempt`: number of restarts within the current period. `wait`: delay before it, in ms. */
  | { readonly _tag: "Restarting"; readonly child: string; readonly attempt: number; readonly wait: number }
  /** The start of an exclusive child is waiting until its abandoned incarnation has ended. */
  | { readonly _tag: "AwaitsEnd"; readonly child: string }
  | { readonly _tag: "Stopping"; readonly child: string; readonly how: "shutdown" | "kill" }
  | { readonly _tag: "Stopped"; readonly child: string; readonly exit: Exit.Exit<unknown, unknown> }
  /** A child is still running after it was killed, and the supervisor no longer waits for it. */
  | { readonly _tag: "Abandoned"; readonly child: string }
  /** An abandoned child has ended. */
  | { readonly _tag: "EndedLate"; readonly child: string }
  /** The supervisor begins to end. `child`: id of the child that caused the end; undefined: no child caused it. */
  | { readonly _tag: "Ending"; readonly reason: EndReason; readonly child: string | undefined }
  | { readonly _tag: "Ended"; readonly reason: EndReason }

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

  /** The kept trace events, oldest first. */
  toArray(): ReadonlyArray<TraceEvent> {
    return [...this.events.slice(this.next), ...this.events.slice(0, this.next)]
  }
}
