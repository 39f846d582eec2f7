/**
 * Child: the interface between a supervisor and its children.
 *
 * A child is an object that can be asked to stop, and that reports when it has ended. Usually it is a fiber. It can
 * also be another supervisor, or an actor that has a fiber only while it has work.
 *
 * Guarantees of a child: it reports its end exactly once to each observer, however it ends. An `exclusive` child
 * reports its end only when none of its code is running any more.
 */
import type { Context, Duration, Effect, Exit, Scope } from "effect"
import type { Inspection } from "./Observation.ts"

/** Receives the exit of a child. Implemented by the supervisor's record of the child (`Incarnation`). */
export interface ExitObserver {
  childExited(exit: Exit.Exit<unknown, unknown>): void
}

/**
 * A supervisor's claim to a handle, from the start of an incarnation to its end. While the claim exists, other
 * supervisors cannot run the handle.
 */
export interface Hold {
  readonly supervisor: string
  /** The supervisor's Effect context, an object that all its children share. */
  readonly context: Context.Context<never>
  /** True: the incarnation has ended, and its resources are released. */
  readonly isOver: boolean
  /** True: the incarnation ignored its kill, and the supervisor no longer waits for it. */
  readonly isAbandoned: boolean
  /** Calls `then` once when the incarnation has ended; immediately if it has already ended. */
  onOver(then: () => void): void
}

/**
 * A running incarnation of a child. The methods are synchronous and must not throw. Implement them as methods of a
 * class, so that an idle child needs no memory for closures.
 */
export interface ChildHandle {
  /**
   * Asks the child to end and returns immediately. The observers are called when the child has ended; if the child is
   * idle, they can be called during this call. After "shutdown", the child can run its finalizers. "kill" follows after
   * the grace period: the child must end immediately, even if work is unfinished. Repeated requests, and requests after
   * the end, do nothing.
   */
  stop(how: "shutdown" | "kill"): void
  /**
   * Adds an observer. Any number of observers can be added, and each is called at the child's end. If the child has
   * already ended, the observer is called immediately.
   */
  onExit(observer: ExitObserver): void
  /**
   * True: two incarnations of this child must never run at the same time. If the child ignores its kill, the supervisor
   * records `Abandoned`, and starts the next incarnation only when the abandoned one has reported its end. Default:
   * false. The next incarnation then starts although the old one may still be running.
   */
  readonly exclusive?: boolean
  /** Describes the child for a snapshot. The method must change nothing and must not wait. */
  inspect?(): Inspection
  /** Claim of the supervisor that runs this handle; only it sets the claim. Others then refuse the handle. */
  supervisedBy?: Hold | undefined
}

/** Result of a start that creates no child. The specification is kept, and nothing runs. */
export const ignore: unique symbol = Symbol.for("agentd/supervision/Child/ignore")
export type Ignore = typeof ignore

/** Result of a start: a handle, `ignore`, or an Effect that runs in a fiber until the child ends. */
export type Started<R = never> = Effect.Effect<unknown, unknown, R> | ChildHandle | Ignore

export type RestartType = "permanent" | "transient" | "temporary"

export interface ChildSpec<R = never> {
  /** Id of the child, unique within its supervisor. */
  readonly id: string
  /**
   * Starts the child, like OTP's `init`. The supervisor waits for the start. Resources belong to the child's Scope,
   * which is closed after the child's end and before its restart. A start that takes too long is interrupted, so
   * everything that it acquires must be in the Scope.
   *
   * If a start takes no time and needs no Scope, it can be a function. The child then starts, and restarts after a
   * crash, without a fiber. If the function throws, the start has failed.
   */
  readonly start: Effect.Effect<Started<R>, unknown, R | Scope.Scope> | ((by: Hold) => ChildHandle | Ignore)
  /** When the child is restarted. Default: `permanent`. */
  readonly restart?: RestartType
  /** Grace period between the request to stop and the kill. Default: 5 s for a worker, `infinity` for a supervisor. */
  readonly shutdown?: Duration.Input | "infinity" | "brutal"
  /** Kind of child. Default: `worker`. */
  readonly type?: "worker" | "supervisor"
  /**
   * True: if the child ends although the supervisor did not stop it, its end counts for `autoShutdown`. Only transient
   * and temporary children can be significant.
   */
  readonly significant?: boolean
  /** Timeout of `start`. A start that exceeds it has failed. Default: 30 s for a worker, none for a supervisor. */
  readonly initTimeout?: Duration.Input
}
