/**
 * ScopeLife: a commit scope's life, from one incarnation to the next.
 *
 *     unstarted → running → stopping → restarting → running …
 *                                    → stopped → gone, closed
 *
 * Guarantees: one incarnation runs at a time, and a second supervisor is refused; an end is
 * reported when what was on its way to the log is durable and what ran has ended; mail
 * waits `DOWN_AT_MOST` ms for a scope that is down, then askers and tellers hear that it
 * is gone; what ignores its interruption is left behind after the grace, and said; to
 * close is no crash and counts as no restart.
 */
import { Cause, Duration, Effect, Exit, Schema } from "effect"
import { type ChildHandle, type ChildSpec, ignore, type Ignore, type RestartType } from "../supervision/Child.ts"
import { ending, restarts } from "../supervision/Restart.ts"
import type { System } from "./ActorSystem.ts"
import { ScopeIncarnation } from "./ScopeIncarnation.ts"

/** Mail waits so long (ms) for a scope that is down. */
export const DOWN_AT_MOST = 10_000

/** A scope has one supervisor: it was started while it runs. */
export class ScopeTaken extends Schema.TaggedError<ScopeTaken>()("ScopeTaken", {
  scope: Schema.String,
  message: Schema.String,
  remedy: Schema.String
}) {}

export type Status =
  | "unstarted"
  | "running"
  /** It ends: what is on its way becomes durable, what runs is interrupted. */
  | "stopping"
  /** It crashed; its supervisor brings it back. */
  | "restarting"
  /** Stopped by its supervisor, or of itself. */
  | "stopped"
  /** It was down for too long: takes no mail until it is started again. */
  | "gone"
  /** For good. */
  | "closed"

/** What a life needs of its scope. */
export interface Living {
  readonly id: string
  readonly system: System
  readonly restart: RestartType
  readonly shutdown: NonNullable<ChildSpec["shutdown"]>
  /** Macrosteps are on their way to the log. */
  readonly isOnTheWay: boolean
  /** Mail, or tellers, wait. */
  readonly hasMail: boolean
  /** An incarnation has begun. */
  begun(): void
  /** The incarnation ends: nothing new is begun. */
  leave(): void
  /** The scope stays down, unless it is started anew: asks fail. */
  stayDown(): void
  /** All mail is given up. */
  giveUpMail(reason: "restarting" | "stopped"): void
}

export class ScopeLife {
  status: Status = "unstarted"
  incarnation: ScopeIncarnation | undefined = undefined
  isClosing = false
  readonly scope: Living
  /** Ends the wait of mail for a scope that is down. */
  private patience: (() => void) | undefined = undefined
  /** Ends the wait for what ignores its interruption. */
  private grace: (() => void) | undefined = undefined

  constructor(scope: Living) {
    this.scope = scope
  }

  /** Takes mail. */
  get isOpen(): boolean {
    return this.status !== "gone" && this.status !== "closed" && !this.isClosing
  }

  /** Why mail waits or is given up. */
  get downReason(): "restarting" | "stopped" {
    return this.status === "restarting" ? "restarting" : "stopped"
  }

  /** Begins an incarnation in the context of the fiber that asks for it. */
  get start(): Effect.Effect<ChildHandle | Ignore, ScopeTaken> {
    return Effect.withFiber((fiber): Effect.Effect<ChildHandle | Ignore, ScopeTaken> => {
      if (this.isClosing) return Effect.succeed(ignore)
      const before = this.incarnation
      if (before !== undefined && before.exit === undefined && !before.isKilled) return Effect.fail(this.taken)
      const incarnation = new ScopeIncarnation(this, fiber.context)
      this.incarnation = incarnation
      this.status = "running"
      this.patience?.()
      this.scope.begun()
      return Effect.succeed(incarnation)
    })
  }

  private get taken(): ScopeTaken {
    const { id } = this.scope
    return new ScopeTaken({
      scope: id,
      message: `${id} runs already`,
      remedy: "a scope has one supervisor: stop it there first, or make another one"
    })
  }

  crash(cause: Cause.Cause<unknown>): void {
    if (this.status !== "running") return
    this.scope.system.metrics.crashes += 1
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
  finish(exit: Exit.Exit<void, unknown>): void {
    const incarnation = this.incarnation!
    this.status = "stopping"
    this.scope.leave()
    incarnation.finish(exit)
    this.endIfQuiet()
    // of a scope that ends by itself, the supervisor counts no grace
    if (this.status !== "stopping" || incarnation.isAsked) return
    const { shutdown, system } = this.scope
    if (shutdown === "infinity") return
    const grace = shutdown === "brutal" ? 0 : Duration.toMillis(Duration.fromInputUnsafe(shutdown))
    this.grace = system.after(grace, () => this.abandon(incarnation))
  }

  private abandon(incarnation: ScopeIncarnation): void {
    if (incarnation !== this.incarnation || this.status !== "stopping" || incarnation.isQuiet) return
    const { id, system } = this.scope
    system.warn(`${id}: what it ran ignores its interruption and is left behind; make it interruptible`, Cause.empty)
    incarnation.isKilled = true
    this.beDown(incarnation)
    incarnation.report()
  }

  /** Where nothing is on its way and nothing runs, the end is reported. */
  endIfQuiet(): void {
    const { incarnation } = this
    if (this.status !== "stopping" || incarnation === undefined) return
    if (!incarnation.isKilled && (this.scope.isOnTheWay || !incarnation.isQuiet)) return
    this.beDown(incarnation)
    if (incarnation.isQuiet) incarnation.report()
  }

  private beDown({ ending: end, isAsked }: ScopeIncarnation): void {
    this.grace?.()
    this.grace = undefined
    const { restart } = this.scope
    if (restart === "temporary") return this.beClosed()
    const comesBack = !isAsked && end !== undefined && restarts[restart][ending(end)]
    this.status = comesBack ? "restarting" : "stopped"
    if (!comesBack) this.scope.stayDown()
    // it has ended of itself, and stays down
    if (!comesBack && !isAsked) this.beGone()
    else this.wait()
  }

  /** Mail waits for a scope that is down, but not for ever. */
  wait(): void {
    if (this.status !== "restarting" && this.status !== "stopped") return
    if (this.patience !== undefined || !this.scope.hasMail) return
    const cancel = this.scope.system.after(DOWN_AT_MOST, () => this.beGone())
    this.patience = () => {
      this.patience = undefined
      cancel()
    }
  }

  private beGone(): void {
    this.patience?.()
    this.scope.giveUpMail(this.downReason)
    this.status = "gone"
  }

  /** For good. */
  close(): void {
    if (this.isClosing) return
    this.isClosing = true
    if (this.status === "running") this.finish(Exit.interrupt())
    else if (this.status !== "stopping") this.beClosed()
  }

  private beClosed(): void {
    this.isClosing = true
    this.patience?.()
    this.status = "closed"
    this.scope.stayDown()
    this.scope.giveUpMail("stopped")
  }
}
