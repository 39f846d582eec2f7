/**
 * ScopeLife: the life cycle of a commit scope, across its incarnations.
 *
 *     unstarted → running → stopping → restarting → running …
 *                                    → stopped → gone, closed
 *
 * Guarantees: one incarnation runs at a time, and a second supervisor is refused. An end is
 * reported when appends in progress are durable and all running work has ended. Mail waits
 * `DOWN_AT_MOST` ms for a scope that is down; then it is dead-lettered, and asks fail. For a scope
 * that is not started yet, asks wait equally long, and tells stay in the mailbox. Work that ignores
 * its interruption is abandoned after the grace period, with a warning. Closing is not a crash, and
 * does not count as a restart.
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

/** Maximum time in ms that mail waits for a scope that is down. */
export const DOWN_AT_MOST = 10_000

/** A constant, because a duration as text would be parsed at each start and each end. */
const GRACE = Duration.seconds(5)

/** The scope was started while it runs: a scope has one supervisor. */
export class ScopeTaken extends Schema.TaggedError<ScopeTaken>()("ScopeTaken", {
  scope: Schema.String,
  message: Schema.String,
  remedy: Schema.String
}) {}

export type Status =
  | "unstarted"
  | "running"
  /** The scope is ending: appends in progress become durable, and all running work is interrupted. */
  | "stopping"
  /** The scope crashed; its supervisor restarts it. */
  | "restarting"
  /** The scope ended by itself, or its supervisor stopped it. */
  | "stopped"
  /** The scope was down for too long: it takes no mail until it is started again. */
  | "gone"
  /** Closed for good. */
  | "closed"

export interface ScopeOptions {
  /** The scope's name among the children of its supervisor. */
  readonly id: string
  /** The log stream of its runes. Scopes can share one. */
  readonly stream: string
  /** Default `permanent`. */
  readonly restart?: RestartType
  /** Grace period after the request to stop; default 5 s. */
  readonly shutdown?: ChildSpec["shutdown"]
}

/** How a scope starts: without a fiber. If its actors need services, only a supervisor that has them accepts it. */
export type ScopeStart<R> = [R] extends [never] ? (by: Hold) => ChildHandle | Ignore : ChildSpec<R>["start"]

export abstract class ScopeLife<R> {
  readonly system: System
  readonly id: string
  readonly stream: string
  readonly restart: RestartType
  readonly shutdown: NonNullable<ChildSpec["shutdown"]>
  status: Status = "unstarted"
  incarnation: ScopeIncarnation | undefined = undefined
  private isClosing = false
  /** Cancels the current timeout: the grace period while the scope stops, or the wait of mail while it is down. */
  private alarm: (() => void) | undefined = undefined

  constructor(system: System, { id, restart = "permanent", shutdown = GRACE, stream }: ScopeOptions) {
    this.system = system
    this.id = id
    this.stream = stream
    this.restart = restart
    this.shutdown = shutdown
  }

  protected abstract begun(): void
  /** The incarnation ends: no new timers or activities are started. */
  protected abstract leave(): void
  /** Fails the waiting asks, because the scope stays down, or was not started in time. */
  protected abstract failAsks(reason: "unstarted" | "stopped"): void
  protected abstract giveUpMail(reason: "restarting" | "stopped"): void
  /** True if macrosteps are on their way to the log. */
  protected abstract get isOnTheWay(): boolean
  /** True if mail, or senders that wait for room, are waiting. */
  protected abstract get hasMail(): boolean

  /** The scope's actors in their current state. */
  abstract get parts(): ReadonlyArray<Part>

  get isRunning(): boolean {
    return this.status === "running"
  }

  /** True if the scope takes mail. */
  get isOpen(): boolean {
    return this.status !== "gone" && this.status !== "closed" && !this.isClosing
  }

  /** Why mail waits or is given up. */
  protected get downReason(): "restarting" | "stopped" {
    return this.status === "restarting" ? "restarting" : "stopped"
  }

  get start(): ScopeStart<R> {
    return this.begin as ScopeStart<R>
  }

  /** Begins an incarnation, without a fiber. The states are the committed ones; mail and asks have waited. */
  private begin(by: Hold): ChildHandle | Ignore {
    if (this.isClosing) return ignore
    const before = this.incarnation
    if (before !== undefined && before.exit === undefined && before.wanted !== "kill") throw this.taken
    const incarnation = new ScopeIncarnation(this as ScopeLife<unknown>, by)
    this.incarnation = incarnation
    this.status = "running"
    this.disarm()
    this.begun()
    return incarnation
  }

  private get taken(): ScopeTaken {
    return new ScopeTaken({
      scope: this.id,
      message: `${this.id} runs already`,
      remedy: "a scope has one supervisor: stop it there first, or make another one"
    })
  }

  /** A message, an action or an activity failed: the incarnation ends, and its supervisor gets the cause. */
  crashed(cause: Cause.Cause<unknown>): void {
    if (this.status !== "running") return
    this.system.metrics.crashes += 1
    this.finish(Exit.failCause(cause))
  }

  /** The incarnation's supervisor wants it to end. */
  stopped(incarnation: ScopeIncarnation): void {
    if (incarnation !== this.incarnation) return
    if (this.status === "running") this.finish(Exit.interrupt())
    else this.endIfQuiet()
  }

  /** The incarnation's fiber has ended, because it was asked to or because it was interrupted. */
  fiberEnded(incarnation: ScopeIncarnation, exit: Exit.Exit<void, unknown>): void {
    if (incarnation !== this.incarnation) return incarnation.report()
    if (this.status === "running") this.finish(exit)
    else if (this.status === "stopping") this.endIfQuiet()
    else incarnation.report()
  }

  /** Ends the incarnation; the first exit counts. */
  protected finish(exit: Exit.Exit<void, unknown>): void {
    const incarnation = this.incarnation!
    this.status = "stopping"
    this.leave()
    incarnation.finish(exit)
    this.endIfQuiet()
    // The supervisor has not asked for this end, so it measures no grace period.
    if (this.isEnding(incarnation) && incarnation.wanted === "life" && this.shutdown !== "infinity") {
      const grace = this.shutdown === "brutal" ? 0 : Duration.toMillis(Duration.fromInputUnsafe(this.shutdown))
      this.alarm = this.system.after(grace, () => this.abandon(incarnation))
    }
  }

  /** False if the scope has been restarted in the meantime. */
  private isEnding(incarnation: ScopeIncarnation): boolean {
    return this.status === "stopping" && this.incarnation === incarnation
  }

  private disarm(): void {
    this.alarm?.()
    this.alarm = undefined
  }

  private abandon(incarnation: ScopeIncarnation): void {
    if (!this.isEnding(incarnation) || incarnation.isQuiet) return
    const message = `${this.id}: what it ran ignores its interruption and is left behind; make it interruptible`
    this.system.warn(message, Cause.empty)
    this.beDown(incarnation)
    incarnation.report()
    this.wait()
  }

  /** Reports the end if no append is in progress and no work is running. */
  endIfQuiet(): void {
    const { incarnation } = this
    if (this.status !== "stopping" || incarnation === undefined) return
    if (incarnation.wanted !== "kill" && (this.isOnTheWay || !incarnation.isQuiet)) return
    this.beDown(incarnation)
    if (incarnation.isQuiet) incarnation.report()
    // If the supervisor restarted the scope during `report`, this does nothing.
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
    // The scope ended by itself and stays down.
    if (!comesBack && !isAsked) this.beGone()
  }

  /** Starts the timeout of mail that waits for a scope that is down. */
  protected wait(): void {
    const { status } = this
    if (status !== "unstarted" && status !== "restarting" && status !== "stopped") return
    if (this.alarm !== undefined || !this.hasMail) return
    this.alarm = this.system.after(DOWN_AT_MOST, () => (status === "unstarted" ? this.beLate() : this.beGone()))
  }

  /** The scope was not started in time: asks fail, tells stay. */
  private beLate(): void {
    this.disarm()
    this.failAsks("unstarted")
  }

  private beGone(): void {
    this.disarm()
    this.giveUpMail(this.downReason)
    this.status = "gone"
  }

  /** Closes the scope for good: it stops, its mail is dead-lettered, its asks fail, and it is never restarted. */
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
