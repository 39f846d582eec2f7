/**
 * ScopeLifecycle: the life cycle of a commit scope. An incarnation is the time from one start of the scope to its end.
 *
 *     unstarted → running → stopping → restarting → running …
 *                                    → stopped → gone, closed
 *
 * Guarantees: one incarnation runs at a time, and a second supervisor cannot start the scope. The end of an incarnation
 * is reported when appends in progress are durable and all running work has ended. Mail to a scope that is down waits
 * for `DOWN_AT_MOST` ms; then tells are dead-lettered, and asks fail. If the scope was never started, asks fail after
 * the same time, but tells stay in the mailbox. Work that ignores its interruption is abandoned after the grace period,
 * with a warning. Closing a scope is not a crash, and does not count as a restart.
 */
import { Cause, Duration, Exit, Schema } from "effect"
import {
  type ChildHandle,
  type ChildSpec,
  type Hold,
  ignore,
  type Ignore,
  type RestartType
} from "../supervision/Child.ts"
import type { Part } from "../supervision/Observation.ts"
import { Closed, ending, restarts } from "../supervision/Restart.ts"
import type { System } from "./ActorSystem.ts"
import { ScopeIncarnation } from "./ScopeIncarnation.ts"

/** Maximum time in ms for which mail waits while its scope is down. */
export const DOWN_AT_MOST = 10_000

/** Default grace period. A constant, because a duration in a string would be parsed at each start and each end. */
const GRACE = Duration.seconds(5)

/** Error: the scope already has a supervisor. A scope can have only one. */
export class ScopeTaken extends Schema.TaggedError<ScopeTaken>()("ScopeTaken", {
  scope: Schema.String,
  message: Schema.String,
  remedy: Schema.String
}) {}

export type Status =
  | "unstarted"
  | "running"
  /** The scope is ending. Its running work is interrupted, and it waits until appends in progress are durable. */
  | "stopping"
  /** The scope crashed, and its supervisor will restart it. */
  | "restarting"
  /** The scope ended normally, or its supervisor stopped it. Mail waits for a limited time. */
  | "stopped"
  /** The scope was down for too long. It accepts no mail until it is started again. */
  | "gone"
  /** The scope is permanently closed and cannot be started again. */
  | "closed"

export interface ScopeOptions {
  /** Id of the scope, unique among the children of its supervisor. */
  readonly id: string
  /** The scope appends to this stream of the log; several scopes can use the same stream. */
  readonly stream: string
  /** When the scope is restarted. Default: `permanent`. */
  readonly restart?: RestartType
  /** Maximum time for stopping the scope's running work. Default: 5 s. */
  readonly shutdown?: ChildSpec["shutdown"]
}

/**
 * Type of the function that starts a scope without creating a fiber. If the actors need services, the type requires a
 * supervisor that provides them.
 */
export type ScopeStart<R> = [R] extends [never] ? (by: Hold) => ChildHandle | Ignore : ChildSpec<R>["start"]

export abstract class ScopeLifecycle<R> {
  readonly system: System
  readonly id: string
  readonly stream: string
  readonly restart: RestartType
  readonly shutdown: NonNullable<ChildSpec["shutdown"]>
  status: Status = "unstarted"
  incarnation: ScopeIncarnation | undefined = undefined
  private isClosing = false
  /** Cancels the current timer: the grace period while the scope is stopping, or the timeout of waiting mail. */
  private alarm: (() => void) | undefined = undefined

  constructor(system: System, { id, restart = "permanent", shutdown = GRACE, stream }: ScopeOptions) {
    this.system = system
    this.id = id
    this.stream = stream
    this.restart = restart
    this.shutdown = shutdown
  }

  protected abstract begun(): void
  /** Called when the incarnation ends. Stops all timers and activities. */
  protected abstract leave(): void
  /** Fails all waiting asks, because the scope stays down or was not started in time. */
  protected abstract failAsks(reason: "unstarted" | "stopped"): void
  protected abstract giveUpMail(reason: "restarting" | "stopped"): void
  /** Returns true if some macrosteps of the scope are not durable yet. */
  protected abstract get isOnTheWay(): boolean
  /** Returns true if mail is waiting, or if senders are waiting for room in a mailbox. */
  protected abstract get hasMail(): boolean

  abstract get parts(): ReadonlyArray<Part>

  get isRunning(): boolean {
    return this.status === "running"
  }

  /** True if the scope accepts mail. */
  get isOpen(): boolean {
    return this.status !== "gone" && this.status !== "closed" && !this.isClosing
  }

  /** The reason why mail is not handled now, used in the error of an ask. */
  protected get downReason(): "restarting" | "stopped" {
    return this.status === "restarting" ? "restarting" : "stopped"
  }

  get start(): ScopeStart<R> {
    return this.begin as ScopeStart<R>
  }

  /** Starts the scope, without a fiber. The actors start with their committed states and handle the waiting mail. */
  private begin(by: Hold): ChildHandle | Ignore {
    if (this.isClosing) return ignore
    const before = this.incarnation
    if (before !== undefined && before.exit === undefined && before.wanted !== "kill") throw this.taken
    const incarnation = new ScopeIncarnation(this as ScopeLifecycle<unknown>, by)
    this.incarnation = incarnation
    this.status = "running"
    this.disarm()
    this.begun()
    return incarnation
  }

  private get taken(): ScopeTaken {
    return new ScopeTaken({
      scope: this.id,
      message: `${this.id} is already running`,
      remedy: "a scope can have only one supervisor: stop it there first, or create another scope"
    })
  }

  /** Called when a message, action or activity fails. The incarnation ends; its supervisor receives the cause. */
  crashed(cause: Cause.Cause<unknown>): void {
    if (this.status !== "running") return
    this.system.metrics.crashes += 1
    this.finish(Exit.failCause(cause))
  }

  stopped(incarnation: ScopeIncarnation): void {
    if (incarnation !== this.incarnation) return
    if (this.status === "running") this.finish(Exit.interrupt())
    else this.endIfQuiet()
  }

  /** Called when the incarnation's fiber has ended, either on request or because it was interrupted. */
  fiberEnded(incarnation: ScopeIncarnation, exit: Exit.Exit<void, unknown>): void {
    if (incarnation !== this.incarnation) return incarnation.report()
    if (this.status === "running") this.finish(exit)
    else if (this.status === "stopping") this.endIfQuiet()
    else incarnation.report()
  }

  /** Begins to end the incarnation. If this is called several times, the first exit counts. */
  protected finish(exit: Exit.Exit<void, unknown>): void {
    const incarnation = this.incarnation!
    this.status = "stopping"
    this.leave()
    incarnation.finish(exit)
    this.endIfQuiet()
    // the supervisor did not request this end, so the scope itself must enforce the grace period
    if (this.isEnding(incarnation) && incarnation.wanted === "life" && this.shutdown !== "infinity") {
      const grace = this.shutdown === "brutal" ? 0 : Duration.toMillis(Duration.fromInputUnsafe(this.shutdown))
      this.alarm = this.system.after(grace, () => this.abandon(incarnation))
    }
  }

  /** True if this incarnation is still ending; false if the scope was restarted in the meantime. */
  private isEnding(incarnation: ScopeIncarnation): boolean {
    return this.status === "stopping" && this.incarnation === incarnation
  }

  private disarm(): void {
    this.alarm?.()
    this.alarm = undefined
  }

  private abandon(incarnation: ScopeIncarnation): void {
    if (!this.isEnding(incarnation) || incarnation.isQuiet) return
    const message = `${this.id}: some work ignored its interruption and was abandoned; make it interruptible`
    this.system.warn(message, Cause.empty)
    this.beDown(incarnation)
    incarnation.report()
    this.wait()
  }

  /** Reports the end of the incarnation if no append is in progress and no work is running. */
  endIfQuiet(): void {
    const { incarnation } = this
    if (this.status !== "stopping" || incarnation === undefined) return
    if (incarnation.wanted !== "kill" && (this.isOnTheWay || !incarnation.isQuiet)) return
    this.beDown(incarnation)
    if (incarnation.isQuiet) incarnation.report()
    // has no effect if the supervisor has restarted the scope during `report`
    this.wait()
  }

  private beDown({ ending: end, wanted }: ScopeIncarnation): void {
    const isAsked = wanted !== "life"
    this.disarm()
    const { restart } = this
    if (this.isClosing || restart === "temporary") return this.beClosed()
    const comesBack = !isAsked && end !== undefined && restarts[restart][ending(end)]
    this.status = comesBack ? "restarting" : "stopped"
    if (!comesBack) this.failAsks("stopped")
    // the scope ended normally, and will not be restarted
    if (!comesBack && !isAsked) this.beGone()
  }

  /** Starts the timeout for waiting mail, if the scope is down and mail is waiting. */
  protected wait(): void {
    const { status } = this
    if (status !== "unstarted" && status !== "restarting" && status !== "stopped") return
    if (this.alarm !== undefined || !this.hasMail) return
    this.alarm = this.system.after(DOWN_AT_MOST, () => (status === "unstarted" ? this.beLate() : this.beGone()))
  }

  /** Called when the scope was not started in time: asks fail, but tells stay in the mailbox. */
  private beLate(): void {
    this.disarm()
    this.failAsks("unstarted")
  }

  private beGone(): void {
    this.disarm()
    this.giveUpMail(this.downReason)
    this.status = "gone"
  }

  /** Closes the scope permanently: it stops, its mail is dead-lettered, its asks fail, and it is never restarted. */
  close(): void {
    if (this.isClosing) return
    this.isClosing = true
    if (this.status === "running") this.finish(Exit.fail(new Closed({ reason: `${this.id} is closed` })))
    else if (this.status !== "stopping") this.beClosed()
  }

  private beClosed(): void {
    this.isClosing = true
    this.disarm()
    this.status = "closed"
    this.failAsks("stopped")
    this.giveUpMail("stopped")
  }
}
