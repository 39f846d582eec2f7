/**
 * Supervisor: starts children in order, restarts those that crash, stops them in
 * reverse, and ends itself when restarting does not help. OTP's rules.
 *
 * Guarantees: one message at a time, in order of arrival, so nobody sees half a
 * restart; a failed restart is tried again behind the messages that wait, so a
 * stop gets through; a child that was stopped never counts as crashed; with a
 * finite grace no child can hang a stop: it is abandoned and the trace says so.
 * A supervisor has a fiber only while it has something to do, and is itself a
 * child: it ends by shutdown (an interruption) when stopped, when it escalates
 * and when it shuts itself down, by a defect only if it has a bug. Its mailbox
 * holds one message per child and one per waiting caller.
 *
 * It differs from OTP in four things: the window counts nanoseconds, not whole
 * seconds; a start is bounded by `initTimeout`; a stop of the supervisor cancels
 * a start that is under way; a dynamic supervisor knows its children by id, each
 * with a specification of its own, and counts those.
 */
import { Effect, type Scope } from "effect"
import type { ChildHandle, ChildSpec } from "./Child.ts"
import type { Status } from "./Incarnation.ts"
import {
  type AlreadyPresent,
  type AlreadyStarted,
  InvalidSpec,
  type NotFound,
  type Restarting,
  type Running,
  type SimpleOneForOne,
  type StartFailed,
  type SupervisorEnded,
  type TooManyChildren
} from "./SupervisorError.ts"
import { type Options, settings } from "./SupervisorOptions.ts"
import { SupervisorProcess } from "./SupervisorProcess.ts"
import type { EndReason, TraceEvent } from "./SupervisorTrace.ts"

/** A row of `whichChildren`. */
export interface ChildInfo {
  readonly id: string
  readonly status: Status
  readonly type: "worker" | "supervisor"
  readonly handle: ChildHandle | undefined
}

export interface ChildCounts {
  readonly specs: number
  readonly active: number
  readonly supervisors: number
  readonly workers: number
}

/** How a supervisor ended, and the child that gave the reason. */
export interface Ended {
  readonly reason: EndReason
  readonly child: string | undefined
}

export type StartChildError = AlreadyStarted | AlreadyPresent | InvalidSpec | TooManyChildren | StartFailed
export type RestartChildError = NotFound | Running | Restarting | SimpleOneForOne | StartFailed
export type DeleteChildError = NotFound | Running | Restarting | SimpleOneForOne

export interface Supervisor<R = never> extends ChildHandle {
  readonly name: string
  /** Answers its handle, or undefined if it answered ignore. A start that fails leaves no specification. */
  startChild(spec: ChildSpec<R>): Effect.Effect<ChildHandle | undefined, StartChildError | SupervisorEnded>
  /** Stops it, or ends the attempts to restart it. Its specification stays unless it is temporary or dynamic. */
  terminateChild(id: string): Effect.Effect<void, NotFound | SupervisorEnded>
  /** Starts a child that is down. A failure is neither counted nor tried again. */
  restartChild(id: string): Effect.Effect<ChildHandle | undefined, RestartChildError | SupervisorEnded>
  /** Forgets a child that is down. */
  deleteChild(id: string): Effect.Effect<void, DeleteChildError | SupervisorEnded>
  childSpec(id: string): Effect.Effect<ChildSpec<R>, NotFound | SupervisorEnded>
  /** In start order. */
  readonly whichChildren: Effect.Effect<ReadonlyArray<ChildInfo>, SupervisorEnded>
  readonly countChildren: Effect.Effect<ChildCounts, SupervisorEnded>
  /** The newest events, oldest first. */
  readonly trace: Effect.Effect<ReadonlyArray<TraceEvent>>
  /** Waits for its end. */
  readonly ended: Effect.Effect<Ended>
  /** Ends as it does: by interruption, or by its defect. */
  readonly join: Effect.Effect<never>
}

/** Start a supervisor and its children. It is stopped, and waited for, when the Scope closes. */
export const make = Effect.fnUntraced(function* <R = never>(
  options: Options<R>
): Effect.fn.Return<Supervisor<R>, InvalidSpec | StartFailed, R | Scope.Scope> {
  const decided = settings(options)
  if (decided instanceof InvalidSpec) return yield* decided
  const supervisor = new SupervisorProcess(options, decided, yield* Effect.context<R>())
  yield* Effect.addFinalizer(() => {
    supervisor.stop("shutdown")
    return supervisor.ended
  })
  yield* supervisor.startAll(options.children ?? [])
  return supervisor
})

/** The specification of a supervisor under another one: a restart makes it anew, with the children given here. */
export const child = <R = never>(
  options: Options<R>,
  spec: Partial<Omit<ChildSpec<R>, "start" | "type">> = {}
): ChildSpec<R> => ({ id: options.name, ...spec, type: "supervisor", start: make(options) })
