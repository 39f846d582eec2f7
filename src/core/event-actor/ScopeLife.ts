/**
 * ScopeLife: a commit scope's life, from one incarnation to the next.
 *
 *     unstarted → running → stopping → restarting → running …
 *                                    → stopped → gone, closed
 *
 * Guarantees: one incarnation runs at a time, and a second supervisor is refused; an end is
 * reported when what was on its way to the log is durable and what ran has ended; mail
 * waits `DOWN_AT_MOST` ms for a scope that is down, then askers and tellers hear that it
 * is gone; so long, too, askers wait for one that is not started yet, and its mail stays; what ignores its interruption is left behind after the grace, and said; to
 * close is no crash and counts as no restart.
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

/** Mail waits so long (ms) for a scope that is down. */
export const DOWN_AT_MOST = 10_000

/** Read with each start and each end: text would be parsed each time. */
const GRACE = Duration.seconds(5)

/** A scope has one supervisor: it was started while it runs. */
export class ScopeTaken extends Schema.TaggedError<ScopeTaken>()("ScopeTaken", {
  scope: Schema.String,
  message: Schema.String,
  remedy: Schema.String
}) {}

export type Status =
  | "unstarted"
  | "running"
  /** The scope ends: appends on their way become durable, and all that runs is interrupted. */
  | "stopping"
  /** The scope crashed; its supervisor brings it back. */
  | "restarting"
  /** Stopped by its supervisor, or of itself. */
  | "stopped"
  /** The scope was down for too long: takes no mail until it is started again. */
  | "gone"
  /** For good. */
  | "closed"

export interface ScopeOptions {
  /** The scope's name among the children of its supervisor. */
  readonly id: string
  /** The log stream of its runes; scopes may share one. */
  readonly stream: string
  /** Default `permanent`. */
  readonly restart?: RestartType
  /** Grace after the request to stop; default 5 s. */
  readonly shutdown?: ChildSpec["shutdown"]
}

/** How a scope starts: without a fiber. Where its actors need services, only a supervisor that has them takes it. */
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
  /** Cancels what bounds a wait: of what ran, while it stops; of mail, while it is down. */
  private alarm: (() => void) | undefined = undefined

  constructor(system: System, { id, restart = "permanent", shutdown = GRACE, stream }: ScopeOptions) {
    this.system = system
    this.id = id
    this.stream = stream
    this.restart = restart
    this.shutdown = shutdown
  }

  protected abstract begun(): void
  /** The incarnation ends: nothing new is begun. */
  protected abstract leave(): void
  /** Asks fail: the scope stays down unless it is started anew, or was not started in time. */
  protected abstract failAsks(reason: "unstarted" | "stopped"): void
  protected abstract giveUpMail(reason: "restarting" | "stopped"): void
  /** Macrosteps are on their way to the log. */
  protected abstract get isOnTheWay(): boolean
  /** Mail, or tellers, wait. */
  protected abstract get hasMail(): boolean

  /** The scope's actors, as they stand. */
  abstract get parts(): ReadonlyArray<Part>

  get isRunning(): boolean {
    return this.status === "running"
  }

  /** Takes mail. */
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

  /** Begins an incarnation, without a fiber: the states are as committed, mail and askers have waited. */
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

  /** A message, an action or an activity broke: the incarnation ends, and its supervisor hears of it. */
  crashed(cause: Cause.Cause<unknown>): void {
    if (this.status !== "running") return
    this.system.metrics.crashes += 1
    this.finish(Exit.failCause(cause))
  }

  /** The incarnation's supervisor wants its end. */
  stopped(incarnation: ScopeIncarnation): void {
    if (incarnation !== this.incarnation) return
    if (this.status === "running") this.finish(Exit.interrupt())
    else this.endIfQuiet()
  }

  /** The incarnation's fiber has ended: it was told to, or it was interrupted. */
  fiberEnded(incarnation: ScopeIncarnation, exit: Exit.Exit<void, unknown>): void {
    if (incarnation !== this.incarnation) return incarnation.report()
    if (this.status === "running") this.finish(exit)
    else if (this.status === "stopping") this.endIfQuiet()
    else incarnation.report()
  }

  /** The incarnation ends; the first reason counts. */
  protected finish(exit: Exit.Exit<void, unknown>): void {
    const incarnation = this.incarnation!
    this.status = "stopping"
    this.leave()
    incarnation.finish(exit)
    this.endIfQuiet()
    // of a scope that ends by itself, the supervisor counts no grace
    if (this.isEnding(incarnation) && incarnation.wanted === "life" && this.shutdown !== "infinity") {
      const grace = this.shutdown === "brutal" ? 0 : Duration.toMillis(Duration.fromInputUnsafe(this.shutdown))
      this.alarm = this.system.after(grace, () => this.abandon(incarnation))
    }
  }

  /** A restart may have come meanwhile. */
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

  /** Where nothing is on its way and nothing runs, the end is reported. */
  endIfQuiet(): void {
    const { incarnation } = this
    if (this.status !== "stopping" || incarnation === undefined) return
    if (incarnation.wanted !== "kill" && (this.isOnTheWay || !incarnation.isQuiet)) return
    this.beDown(incarnation)
    if (incarnation.isQuiet) incarnation.report()
    // a supervisor that brings it back at once leaves nothing to wait for
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
    // it has ended of itself, and stays down
    if (!comesBack && !isAsked) this.beGone()
  }

  /** Mail waits for a scope that is down, but not for ever. */
  protected wait(): void {
    const { status } = this
    if (status !== "unstarted" && status !== "restarting" && status !== "stopped") return
    if (this.alarm !== undefined || !this.hasMail) return
    this.alarm = this.system.after(DOWN_AT_MOST, () => (status === "unstarted" ? this.beLate() : this.beGone()))
  }

  /** Nobody has started it yet: askers wait no longer, told mail does. */
  private beLate(): void {
    this.disarm()
    this.failAsks("unstarted")
  }

  private beGone(): void {
    this.disarm()
    this.giveUpMail(this.downReason)
    this.status = "gone"
  }

  /** For good: stops it if it runs; its mail is dead-lettered, its asks fail, its supervisor restarts nothing. */
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
