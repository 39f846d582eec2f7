/**
 * Child: what a supervisor asks of the things that it supervises.
 *
 * A child is anything that can be asked to stop and that reports its end: a fiber
 * (the usual case), an actor that has a fiber only while it has something to do, or
 * another supervisor. Guarantees that a child gives: each observer hears once of the
 * end, however the child ended and however many listen; an `exclusive` child reports
 * its end only when nothing of it runs any more.
 */
import type { Context, Duration, Effect, Exit, Scope } from "effect"
import type { Inspection } from "./Observation.ts"

/** Hears of a child's end; the supervisor's record of the child implements it itself. */
export interface ExitObserver {
  childExited(exit: Exit.Exit<unknown, unknown>): void
}

/** A supervisor's hold on a handle, from the start of an incarnation to its end. */
export interface Hold {
  readonly supervisor: string
  /** The supervisor's context: one object for all its children. */
  readonly context: Context.Context<never>
  /** The incarnation has ended and its resources are released. */
  readonly isOver: boolean
  /** The incarnation ignored its kill: its supervisor has left it behind. */
  readonly isAbandoned: boolean
  /** Calls back once when the incarnation is over, at once if it is. */
  onOver(then: () => void): void
}

/**
 * A running incarnation of a child. Its methods are synchronous and must not
 * throw; write them as methods of a class, so that an idle child costs no closures.
 */
export interface ChildHandle {
  /**
   * Asks for the end and returns at once; the end is reported to the observers
   * (during the call, if the child is idle). `shutdown` may take the time of its
   * finalizers, `kill` comes after the grace: end now, whatever is left undone.
   * Asking again, or after the end, does nothing.
   */
  stop(how: "shutdown" | "kill"): void
  /**
   * Adds an observer. There may be several: none takes the end from another. A
   * handle that has ended already reports the end at once.
   */
  onExit(observer: ExitObserver): void
  /**
   * Two incarnations of this child must never run at once. Where a kill is ignored
   * the supervisor says so (`Abandoned`), leaves the incarnation behind, and starts
   * the next one when this one has reported its end. Default false: the next one
   * starts beside it.
   */
  readonly exclusive?: boolean
  /** Describes the child to somebody who looks at the tree; must not change or wait for anything. */
  inspect?(): Inspection
  /** Written by the supervisor that runs the handle, and by nothing else: another supervisor refuses it. */
  supervisedBy?: Hold | undefined
}

/** The answer of a start that wants no child: the specification stays, nothing runs. */
export const ignore: unique symbol = Symbol.for("agentd/supervision/Child/ignore")
export type Ignore = typeof ignore

/** The answer of a start: a loop to be run in a fiber, a handle, or `ignore`. */
export type Started<R = never> = Effect.Effect<unknown, unknown, R> | ChildHandle | Ignore

export type RestartType = "permanent" | "transient" | "temporary"

export interface ChildSpec<R = never> {
  /** The child's name, unique within its supervisor. */
  readonly id: string
  /**
   * OTP's `init`: acquires into the child's Scope, which is closed after the
   * child's end and before its restart. The supervisor waits for it. A start that
   * takes too long is interrupted: what it acquired must be in the Scope by then.
   *
   * A start that takes no time and needs no Scope may be a function: the child then
   * starts, and restarts after a crash, without a fiber. A throw is a failed start.
   */
  readonly start: Effect.Effect<Started<R>, unknown, R | Scope.Scope> | ((by: Hold) => ChildHandle | Ignore)
  /** Default `permanent`. */
  readonly restart?: RestartType
  /** Grace after the request to stop; default 5 s for a worker, `infinity` for a supervisor. */
  readonly shutdown?: Duration.Input | "infinity" | "brutal"
  /** Default `worker`. */
  readonly type?: "worker" | "supervisor"
  /** Counts the child's own end for `autoShutdown`; only transient or temporary children can be significant. */
  readonly significant?: boolean
  /** Bound on `start`; default 30 s for a worker, none for a supervisor. A start that takes longer has failed. */
  readonly initTimeout?: Duration.Input
}
