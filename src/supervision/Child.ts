/**
 * Child: what a supervisor asks of the things it supervises.
 *
 * A child is anything that can be asked to stop and that reports its end once:
 * a fiber (the usual case), an actor that has a fiber only while it has mail, or
 * another supervisor. Guarantees: `childExited` is called exactly once per
 * `ChildHandle`, however the child ended; its resources are released by then.
 */
import { Context, type Duration, type Effect, type Exit, type Scope } from "effect"

/** Who wants to know of an end; the supervisor's record of the child implements it itself. */
export interface ExitObserver {
  childExited(exit: Exit.Exit<unknown, unknown>): void
}

/**
 * One running incarnation of a child. Both methods are synchronous and must not
 * throw; write them as methods of a class, so that an idle child costs no closures.
 */
export interface ChildHandle {
  /**
   * Ask for the end and return at once; the end is reported to the observer
   * (during the call, if the child is idle). `shutdown` may take the time of its
   * finalizers, `kill` comes after the grace: end now, whatever is left undone.
   * Asking again, or after the end, does nothing.
   */
  stop(how: "shutdown" | "kill"): void
  /** Called once by the supervisor. A handle that has ended already reports it at once. */
  onExit(observer: ExitObserver): void
}

/** The answer of a start that wants no child: the specification stays, nothing runs. */
export const ignore: unique symbol = Symbol.for("agentd/actors/Child/ignore")
export type Ignore = typeof ignore

/**
 * The context of the supervisor, without the child's Scope: one object for all its
 * children, so that a child which keeps it for later keeps nothing of its own.
 */
export const Surroundings = Context.Reference<Context.Context<never> | undefined>("agentd/supervision/Surroundings", {
  defaultValue: () => undefined
})

/** What a start answers: a loop to be run in a fiber, a handle, or `ignore`. */
export type Started<R = never> = Effect.Effect<unknown, unknown, R> | ChildHandle | Ignore

export type RestartType = "permanent" | "transient" | "temporary"

export interface ChildSpec<R = never> {
  /** Its name, unique within its supervisor. */
  readonly id: string
  /**
   * OTP's `init`: acquires into the child's Scope, which is closed after the
   * child's end and before its restart. The supervisor waits for it. A start that
   * takes too long is interrupted: what it acquired must be in the Scope by then.
   */
  readonly start: Effect.Effect<Started<R>, unknown, R | Scope.Scope>
  /** Default `permanent`. */
  readonly restart?: RestartType
  /** Grace after the request to stop; default 5 s for a worker, `infinity` for a supervisor. */
  readonly shutdown?: Duration.Input | "infinity" | "brutal"
  /** Default `worker`. */
  readonly type?: "worker" | "supervisor"
  /** Its own end counts for `autoShutdown`; only transient or temporary children can be significant. */
  readonly significant?: boolean
  /** Bound on `start`; default 30 s for a worker, none for a supervisor. A start that takes longer has failed. */
  readonly initTimeout?: Duration.Input
}
