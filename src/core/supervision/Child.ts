/**
 * Child: the interface between a supervisor and the things that it supervises.
 *
 * A child is anything that can be asked to stop and that reports its end. Usually it is a fiber. It
 * can also be another supervisor, or an actor that has a fiber only while it has work.
 *
 * Guarantees of a child: it reports its end exactly once to each observer, however it ended. An
 * `exclusive` child reports its end only when no part of it runs any more.
 */
import type { Context, Duration, Effect, Exit, Scope } from "effect"
import type { Inspection } from "./Observation.ts"

/** Receives the end of a child. The supervisor's record of the child (`Incarnation`) implements it. */
export interface ExitObserver {
  childExited(exit: Exit.Exit<unknown, unknown>): void
}

/** The claim of a supervisor on a handle, from the start of an incarnation to its end. */
export interface Hold {
  readonly supervisor: string
  /** The supervisor's context; all its children share this one object. */
  readonly context: Context.Context<never>
  /** The incarnation has ended and its resources are released. */
  readonly isOver: boolean
  /** The incarnation ignored its kill, and its supervisor has stopped waiting for it. */
  readonly isAbandoned: boolean
  /** Calls `then` once when the incarnation is over; immediately if it is over already. */
  onOver(then: () => void): void
}

/**
 * A running incarnation of a child. Its methods are synchronous and must not throw. Write them as
 * methods of a class, so that an idle child costs no closures.
 */
export interface ChildHandle {
  /**
   * Requests the end and returns immediately. The observers receive the end later, or during the
   * call if the child is idle. After `shutdown` the child can take the time that its finalizers
   * need. `kill` follows after the grace period: end now, even if work is unfinished. A repeated
   * request, or one after the end, does nothing.
   */
  stop(how: "shutdown" | "kill"): void
  /**
   * Adds an observer. Any number of observers can be added, and each receives the end. If the
   * handle has already ended, the observer is called immediately.
   */
  onExit(observer: ExitObserver): void
  /**
   * True if two incarnations of this child must never run at once. If such a child ignores its
   * kill, the supervisor records `Abandoned` and starts the next incarnation only when the
   * abandoned one has reported its end. Default false: the next one starts although the old one may
   * still run.
   */
  readonly exclusive?: boolean
  /** Describes the child for someone who inspects the supervision tree. Must not change or wait for anything. */
  inspect?(): Inspection
  /** Written only by the supervisor that runs the handle. While it is set, other supervisors refuse the handle. */
  supervisedBy?: Hold | undefined
}

/** Result of a start that wants no child: the specification stays, nothing runs. */
export const ignore: unique symbol = Symbol.for("agentd/supervision/Child/ignore")
export type Ignore = typeof ignore

/** Result of a start: a loop to run in a fiber, a handle, or `ignore`. */
export type Started<R = never> = Effect.Effect<unknown, unknown, R> | ChildHandle | Ignore

export type RestartType = "permanent" | "transient" | "temporary"

export interface ChildSpec<R = never> {
  /** The child's name, unique within its supervisor. */
  readonly id: string
  /**
   * Like OTP's `init`. Resources are acquired into the child's Scope, which is closed after the
   * child's end and before its restart. The supervisor waits for the start. A start that takes too
   * long is interrupted, so everything that it acquires must be in the Scope.
   *
   * If a start takes no time and needs no Scope, it can be a function. The child then starts, and
   * restarts after a crash, without a fiber. A throw is a failed start.
   */
  readonly start: Effect.Effect<Started<R>, unknown, R | Scope.Scope> | ((by: Hold) => ChildHandle | Ignore)
  /** Default `permanent`. */
  readonly restart?: RestartType
  /** Grace period after the request to stop. Default: 5 s for a worker, `infinity` for a supervisor. */
  readonly shutdown?: Duration.Input | "infinity" | "brutal"
  /** Default `worker`. */
  readonly type?: "worker" | "supervisor"
  /**
   * If true, the child's own end counts for `autoShutdown`. Only transient or temporary children
   * can be significant.
   */
  readonly significant?: boolean
  /** Timeout of `start`. Default: 30 s for a worker, none for a supervisor. A start that exceeds it has failed. */
  readonly initTimeout?: Duration.Input
}
