/**
 * Actor: mail in, one thing at a time, and nothing held while there is none.
 *
 * An actor without mail is a few fields: no fiber, no queue, no timer. The first
 * message schedules a turn, which works off the mail in batches: a synchronous
 * step for each message, then at most one Effect for the whole batch, the only
 * part that runs in a fiber.
 *
 * Guarantees: a turn ends after `TURN` messages, so that a busy actor delays no
 * other; stop comes before work; an end reaches the supervisor once, when the
 * actor's fibers have ended; the mailbox outlives the incarnation; a message that
 * crashes its actor three times is dead-lettered and the actor lives.
 *
 * An actor is its own `ChildSpec` and, while it runs, its own `ChildHandle`:
 * `supervisor.startChild(actor)`.
 */
import { Cause, Clock, Context, Effect, Exit, Fiber, Scheduler, type Scope } from "effect"
import { type ActorRef, type ActorStopped, actorStopped, type MailboxFull, mailboxFull } from "./ActorRef.ts"
import {
  type ChildHandle,
  type ChildSpec,
  type ExitObserver,
  type Hold,
  ignore,
  type Ignore,
  type RestartType
} from "../supervision/Child.ts"
import type { DeadLetters, Reason } from "./DeadLetters.ts"
import { Closed, ending } from "../supervision/Restart.ts"
import { Ask, Envelope, type Item, Mailbox } from "./Mailbox.ts"
import type { Cause as RuneCause } from "../event-log/Rune.ts"

/** Messages that an actor works off before it lets others have their turn. */
export const TURN = 256

/** Crashes on one message before it is given up. */
export const POISON_AFTER = 3

export interface ActorOptions {
  readonly deadLetters: DeadLetters["Service"]
  /** Messages that may wait, postponed ones included; default 1024. */
  readonly capacity?: number
  /** Default `permanent`. */
  readonly restart?: RestartType
  readonly shutdown?: ChildSpec["shutdown"]
}

/** What all actors of one kind share, so that each of them need not hold it. */
export class Kind {
  readonly deadLetters: DeadLetters["Service"]
  readonly capacity: number
  readonly restart: RestartType
  readonly shutdown: Exclude<ChildSpec["shutdown"], undefined>
  readonly clock: Clock.Clock
  readonly dispatcher: Scheduler.SchedulerDispatcher
  /** Those that are not closed; the end of the kind's scope closes them. */
  readonly open = new Set<{ close(): void }>()
  private readonly context: Context.Context<never>

  constructor(options: ActorOptions, context: Context.Context<never>) {
    this.deadLetters = options.deadLetters
    this.capacity = options.capacity ?? 1_024
    this.restart = options.restart ?? "permanent"
    this.shutdown = options.shutdown ?? "5 seconds"
    this.clock = Context.get(context, Clock.Clock)
    this.dispatcher = Context.get(context, Scheduler.Scheduler).makeDispatcher()
    this.context = context
  }

  fork<A, E>(effect: Effect.Effect<A, E>): Fiber.Fiber<A, E> {
    return Effect.runForkWith(this.context)(effect)
  }
}

const nobody: ReadonlyArray<ExitObserver> = []

type Down = "unstarted" | "stopping" | "stopped" | "restarting"

export abstract class Actor<M, A, E> implements ActorRef<M, A, E>, ChildSpec, ChildHandle {
  readonly address: string
  protected readonly kind: Kind
  protected readonly mailbox: Mailbox<M>
  private status: Down | "running" = "unstarted"
  /** A turn is scheduled or under way. */
  private awake = false
  /** Turns under way on this very stack: two at most, see `settleAsks`. */
  private depth = 0
  /** Askers are being answered, so an asker that asks again may be served at once. */
  private lending = false
  /** The batch's Effect, while it waits for something. */
  private working: Fiber.Fiber<void, unknown> | undefined = undefined
  /** What runs beside the mail: timers, activities. */
  private beside: Set<Fiber.Fiber<unknown, unknown>> | undefined = undefined
  supervisedBy: Hold | undefined = undefined
  private observers: ReadonlyArray<ExitObserver> = nobody
  private end: Exit.Exit<void, unknown> | undefined = undefined

  constructor(address: string, kind: Kind) {
    this.address = address
    this.kind = kind
    this.mailbox = new Mailbox(kind.capacity)
    kind.open.add(this)
  }

  /**
   * Works off the first `limit` messages, or fewer: steps them, and answers the
   * Effect that commits them and acts on it, if it takes one. Settles them with
   * the mailbox once they are committed.
   */
  protected abstract batch(limit: number): Effect.Effect<void, unknown> | undefined

  /** An incarnation begins; what it has to do before its first message. */
  protected begin(): Effect.Effect<void, unknown> | undefined {
    return undefined
  }

  // --- ActorRef

  tellNow(message: M, cause?: RuneCause): boolean {
    const item = cause === undefined ? message : new Envelope(message, cause)
    if (this.mailbox.push(item)) {
      if (!this.awake) this.wake()
      return true
    }
    this.bury(item, this.isClosed ? "closed" : "full")
    return false
  }

  tell(message: M, cause?: RuneCause): Effect.Effect<void> {
    return Effect.suspend(() => {
      const item = cause === undefined ? message : new Envelope(message, cause)
      if (this.mailbox.push(item)) {
        if (!this.awake) this.wake()
        return Effect.void
      }
      return this.tellLater(item)
    })
  }

  offer(message: M, cause?: RuneCause): Effect.Effect<void, MailboxFull | ActorStopped> {
    return Effect.suspend((): Effect.Effect<void, MailboxFull | ActorStopped> => {
      if (!this.mailbox.push(cause === undefined ? message : new Envelope(message, cause))) {
        return this.isClosed
          ? Effect.fail(actorStopped(this.address, "stopped"))
          : Effect.fail(mailboxFull(this.address, this.kind.capacity))
      }
      if (!this.awake) this.wake()
      return Effect.void
    })
  }

  ask(message: M, cause?: RuneCause): Effect.Effect<A, E | MailboxFull | ActorStopped> {
    return Effect.withFiber((fiber) => {
      if (this.status !== "running") return Effect.fail(actorStopped(this.address, this.status))
      if (this.working === fiber) return Effect.fail(actorStopped(this.address, "self"))
      const ask = new Ask<M, A, E | MailboxFull | ActorStopped>(message, cause)
      if (!this.mailbox.push(ask)) return Effect.fail(mailboxFull(this.address, this.kind.capacity))
      // The asker waits anyway, so it lends the actor its turn: no trip through the scheduler.
      if (this.depth === 0 || (this.depth === 1 && this.lending)) this.turn()
      return ask.answer()
    })
  }

  // --- ChildSpec

  get id(): string {
    return this.address
  }
  get restart(): RestartType {
    return this.kind.restart
  }
  get shutdown(): Exclude<ChildSpec["shutdown"], undefined> {
    return this.kind.shutdown
  }
  /** Begins an incarnation, once what a killed one left undone is done. One that is closed begins none. */
  get start(): Effect.Effect<ChildHandle | Ignore> {
    return Effect.suspend((): Effect.Effect<ChildHandle | Ignore> => {
      if (this.isClosed) return Effect.succeed(ignore)
      const open = Effect.sync(() => {
        this.open()
        return this
      })
      return this.working === undefined ? open : Effect.andThen(Fiber.await(this.working), open)
    })
  }

  // --- ChildHandle

  stop(how: "shutdown" | "kill"): void {
    this.finish(Exit.interrupt())
    if (how === "shutdown" || this.status !== "stopping") return
    // A kill from within the actor's own turn lets that stack unwind first.
    if (this.depth > 0) return this.kind.dispatcher.scheduleTask(() => this.stop("kill"), 0)
    this.beside = undefined
    this.ended()
  }

  onExit(observer: ExitObserver): void {
    this.observers = [...this.observers, observer]
    if (this.status !== "running" && this.status !== "stopping") this.report()
  }

  // --- the end for good

  /**
   * Stops it if it runs; its mail is dead-lettered, its asks fail, its supervisor
   * finds nothing to start. For who outlives it: an actor is closed with its kind's
   * scope at the latest, and a temporary one when it ends.
   */
  close(): void {
    this.finish(Exit.fail(new Closed({ reason: `${this.address} is closed` })))
    this.mailbox.failAsks(() => Exit.fail(actorStopped(this.address, "stopped")))
    for (const item of this.mailbox.close()) this.bury(item, "closed")
    this.kind.open.delete(this)
  }

  // --- for the kinds of actor

  private get isClosed(): boolean {
    return this.mailbox.capacity === 0
  }

  private tellLater(item: Item<M>): Effect.Effect<void> {
    if (this.status !== "running") {
      this.bury(item, this.isClosed ? "closed" : "full")
      return Effect.void
    }
    return Effect.map(this.mailbox.wait(item), (taken) => {
      if (!taken) this.bury(item, "closed")
      else if (!this.awake) this.wake()
    })
  }

  protected get running(): boolean {
    return this.status === "running"
  }

  /** The incarnation ends; the first reason counts. Reported when its fibers have ended. */
  protected finish(exit: Exit.Exit<void, unknown>): void {
    if (this.status !== "running") return
    this.status = "stopping"
    this.end = exit
    this.working?.interruptUnsafe()
    for (const fiber of this.beside ?? []) fiber.interruptUnsafe()
    this.endIfQuiet()
  }

  /** The first message broke the step. An asker hears of it; a teller's message is tried again, `POISON_AFTER` times in all. */
  protected poisoned(defect: unknown): void {
    const envelope = this.mailbox.at(0)
    envelope.crashes += 1
    if (envelope instanceof Ask) {
      this.mailbox.settle(1)
      envelope.settle(Exit.fail(actorStopped(this.address, "crashed")))
    } else if (envelope.crashes >= POISON_AFTER) {
      this.mailbox.settle(1)
      this.bury(envelope, "poison", defect)
    }
    this.finish(Exit.die(defect))
  }

  /**
   * Answers, once the batch is settled. An asker goes on from here on this stack,
   * and may lend the actor a turn for what it asks next; within that turn nobody
   * lends another, so that the stack stays flat.
   */
  protected settleAsks<B>(asks: ReadonlyArray<Ask<M>>, answers: ReadonlyArray<B>): void {
    this.lending = this.depth === 1
    for (let index = 0; index < asks.length; index++) asks[index]!.settle(Exit.succeed(answers[index]))
    this.lending = false
  }

  protected bury(item: Item<M>, reason: Reason, why?: unknown): void {
    const isEnvelope = item instanceof Envelope
    // Asks fail typed, and a timeout is its own actor's: neither is a dead letter.
    if (isEnvelope && reason === "closed" && (item instanceof Ask || item.timer !== 0)) return
    const cause = isEnvelope ? item.cause : undefined
    this.kind.deadLetters.post({
      address: this.address,
      reason,
      message: isEnvelope ? item.message : item,
      ...(why === undefined ? {} : { why }),
      ...(cause === undefined ? {} : { cause })
    })
  }

  /** Runs beside the mail until it ends or the incarnation does. `onExit` is not called for what was killed. */
  protected fork<B, F>(effect: Effect.Effect<B, F>, onExit: (exit: Exit.Exit<B, F>) => void): Fiber.Fiber<B, F> {
    const fiber = this.kind.fork(effect)
    const beside = (this.beside ??= new Set())
    beside.add(fiber)
    if (this.status !== "running") fiber.interruptUnsafe()
    fiber.addObserver((exit) => {
      beside.delete(fiber)
      if (this.beside !== beside) return
      if (beside.size === 0) this.beside = undefined
      onExit(exit)
      this.endIfQuiet()
    })
    return fiber
  }

  /** There is mail: see to it that a turn comes. */
  protected wake(): void {
    if (this.awake || this.status !== "running") return
    this.awake = true
    this.kind.dispatcher.scheduleTask(() => this.turn(), 0)
  }

  // --- one turn

  private open(): void {
    this.status = "running"
    this.end = undefined
    this.observers = nobody
    this.depth += 1
    try {
      this.work(this.begin())
    } catch (defect) {
      this.finish(Exit.die(defect))
    }
    this.rest()
  }

  private turn(): void {
    if (this.working !== undefined) return
    this.depth += 1
    let budget = TURN
    while (budget > 0 && this.working === undefined && this.status === "running") {
      const ready = this.mailbox.ready
      if (ready === 0) break
      const limit = ready < budget ? ready : budget
      budget -= limit
      try {
        this.work(this.batch(limit))
      } catch (defect) {
        this.finish(Exit.die(defect))
      }
    }
    this.rest()
  }

  private rest(): void {
    this.depth -= 1
    if (this.depth > 0) return
    this.awake = this.working !== undefined
    if (this.awake) return
    if (this.status === "stopping") this.endIfQuiet()
    else if (this.mailbox.ready > 0) this.wake()
  }

  private work(effect: Effect.Effect<void, unknown> | undefined): void {
    if (effect === undefined) return
    const fiber = this.kind.fork(
      Effect.withFiber<void, unknown>((self) => {
        this.working = self as Fiber.Fiber<void, unknown>
        return effect
      })
    )
    const done = fiber.pollUnsafe()
    if (done !== undefined) return this.worked(done)
    fiber.addObserver((exit) => {
      this.worked(exit)
      this.turn()
    })
  }

  private worked(exit: Exit.Exit<void, unknown>): void {
    this.working = undefined
    if (Exit.isFailure(exit)) this.finish(exit)
    this.endIfQuiet()
  }

  private endIfQuiet(): void {
    if (this.status === "stopping" && this.depth === 0 && this.working === undefined && this.beside === undefined) {
      this.ended()
    }
  }

  private ended(): void {
    const down = comesBack(this.restart, this.end!) ? "restarting" : "stopped"
    this.status = down
    this.mailbox.failAsks(() => Exit.fail(actorStopped(this.address, down)))
    this.mailbox.admitAll()
    if (down === "stopped" && this.restart === "temporary") this.close()
    this.report()
  }

  private report(): void {
    const { end, observers } = this
    if (end === undefined) return
    this.observers = nobody
    for (const observer of observers) observer.childExited(end)
  }
}

/** Only for what an asker is told: the supervisor decides. */
const comesBack = (restart: RestartType, exit: Exit.Exit<unknown, unknown>): boolean =>
  restart !== "temporary" &&
  ending(exit) !== "closed" &&
  (Exit.isFailure(exit) ? !Cause.hasInterruptsOnly(exit.cause) : restart === "permanent")

/** Makes a kind in the context that its actors run in, and closes them all when the scope ends. */
export const makeKind = <K extends Kind, R>(
  make: (context: Context.Context<never>) => K
): Effect.Effect<K, never, R | Scope.Scope> =>
  Effect.acquireRelease(
    Effect.map(Effect.context<R>(), (context) => make(context)),
    (kind) =>
      Effect.sync(() => {
        for (const actor of kind.open) actor.close()
      })
  )
