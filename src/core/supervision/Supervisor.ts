/**
 * Supervisor: starts children in order, restarts those that crash, and stops them in reverse order. When restarts do
 * not help, the supervisor ends itself. The rules are those of OTP.
 *
 * Guarantees: a supervisor handles one message at a time, in order of arrival. Therefore no caller sees a restart that
 * is only partly complete. A failed restart is retried after the messages that are already waiting, so that a stop is
 * not delayed. A child that was stopped, or that its owner closed, never counts as crashed. If the grace period is
 * finite, no child can block a stop: a child that does not end is abandoned, and the trace records this. If the
 * abandoned child is exclusive, its next incarnation starts only after its end. A handle can run under only one
 * supervisor at a time: another supervisor refuses it with a typed error.
 *
 * A child that fails again within the period waits before its next start (`backoff`). During the wait its status is
 * `restarting`, and the supervisor handles all calls. `terminateChild`, `stop` and a restart caused by a sibling's
 * crash end the wait immediately.
 *
 * A supervisor has a fiber only while it does work that takes time. A supervisor is itself a child. It ends with an
 * interruption when it is stopped, when there were too many restarts, or when it shuts itself down. It ends with a
 * defect only if it has a bug. Its mailbox has at most one message per child and one per waiting caller.
 *
 * Five differences from OTP:
 * - The period of restarts is measured in nanoseconds, not in whole seconds.
 * - Only the first restart is immediate (unless `backoff` is `none`).
 * - `initTimeout` limits the duration of a start.
 * - A stop of the supervisor cancels a start in progress.
 * - The children of a dynamic supervisor have ids and their own specifications, and these are counted.
 */
import { Cause, Clock, Context, Duration, Effect, Exit, type Fiber, type Scope } from "effect"
import type { ChildHandle, ChildSpec, ExitObserver, Hold } from "./Child.ts"
import { Children, type Listener } from "./Children.ts"
import type { Incarnation, Status } from "./Incarnation.ts"
import { type History, type Inspection, MAX_SHOWN } from "./Observation.ts"
import { addRestart, emptyWindow, ending, type Ending, exceeded, restarts, waitBefore, type Window } from "./Restart.ts"
import * as Refused from "./SupervisorError.ts"
import { type Options, problemOf, type Settings, settings } from "./SupervisorOptions.ts"
import { type EndReason, type TraceEvent, TraceRing } from "./SupervisorTrace.ts"

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

/** The reason why a supervisor ended, and the child that caused the end; undefined: no child caused it. */
export interface Ended {
  readonly reason: EndReason
  readonly child: string | undefined
}

export type StartChildError =
  | Refused.AlreadyStarted
  | Refused.AlreadyPresent
  | Refused.AlreadySupervised
  | Refused.InvalidSpec
  | Refused.TooManyChildren
  | Refused.StartFailed
export type RestartChildError =
  | Refused.NotFound
  | Refused.Running
  | Refused.Restarting
  | Refused.SimpleOneForOne
  | Refused.StartFailed
export type DeleteChildError = Refused.NotFound | Refused.Running | Refused.Restarting | Refused.SimpleOneForOne

export interface Supervisor<R = never> extends ChildHandle {
  readonly name: string
  /** Starts a new child. Undefined: its start returned `ignore`. If the start fails, the specification is not kept. */
  startChild(spec: ChildSpec<R>): Effect.Effect<ChildHandle | undefined, StartChildError | Refused.SupervisorEnded>
  /**
   * Stops a child or its restart attempts. Keeps the child's specification, unless the child is temporary or the
   * supervisor is dynamic.
   */
  terminateChild(id: string): Effect.Effect<void, Refused.NotFound | Refused.SupervisorEnded>
  /** Starts a child that is not running. If the start fails, the failure is neither counted nor retried. */
  restartChild(id: string): Effect.Effect<ChildHandle | undefined, RestartChildError | Refused.SupervisorEnded>
  /** Deletes the specification of a child that is not running. */
  deleteChild(id: string): Effect.Effect<void, DeleteChildError | Refused.SupervisorEnded>
  childSpec(id: string): Effect.Effect<ChildSpec<R>, Refused.NotFound | Refused.SupervisorEnded>
  /** The children, in start order. */
  readonly whichChildren: Effect.Effect<ReadonlyArray<ChildInfo>, Refused.SupervisorEnded>
  readonly countChildren: Effect.Effect<ChildCounts, Refused.SupervisorEnded>
  inspect(): Inspection & { readonly _tag: "Supervisor" }
  /** The newest trace events, oldest first. */
  readonly trace: Effect.Effect<ReadonlyArray<TraceEvent>>
  readonly ended: Effect.Effect<Ended>
  /** Waits for the end of the supervisor, and then ends in the same way: with an interruption or with its defect. */
  readonly join: Effect.Effect<never>
}

type Message<R> =
  | { readonly _tag: "Exited"; readonly child: Incarnation<R>; readonly exit: Exit.Exit<unknown, unknown> }
  /** The start of a child failed. Its retry counts as another restart. */
  | { readonly _tag: "Retry"; readonly child: Incarnation<R> }
  /** The wait before a restart is over: the backoff has ended, or the abandoned incarnation has ended. */
  | { readonly _tag: "GoOn"; readonly child: Incarnation<R> }
  | { readonly _tag: "Call"; readonly run: Effect.Effect<void>; readonly refuse: () => void }
  | { readonly _tag: "Stop" }

const refuse = <R>(message: Message<R>): void => {
  if (message._tag === "Call") message.refuse()
}

class Process<R> implements Supervisor<R>, Listener<R> {
  readonly context: Context.Context<R>
  supervisedBy: Hold | undefined = undefined
  private readonly options: Options<R>
  private readonly settings: Settings
  private readonly clock: Clock.Clock
  private readonly children: Children<R> = new Children<R>(this)
  private readonly ring: TraceRing
  /** Restarts and last crash of each child that has crashed or was restarted, by child id. */
  private readonly histories = new Map<string, History>()
  private window: Window = emptyWindow
  /** Fibers that wait for the end of a child's backoff, by child id. */
  private readonly waits = new Map<string, Fiber.Fiber<void>>()
  private mailbox: Array<Message<R>> = []
  private draining = false
  private stopAsked = false
  private end: (Ended & { readonly exit: Exit.Exit<never> }) | undefined = undefined
  private observers: ReadonlyArray<ExitObserver> = []

  constructor(options: Options<R>, decided: Settings, context: Context.Context<R>) {
    this.options = options
    this.settings = decided
    this.context = context
    this.clock = Context.get(context, Clock.Clock)
    this.ring = new TraceRing(options.traceCapacity ?? 64)
  }

  get name(): string {
    return this.options.name
  }

  stop(how: "shutdown" | "kill"): void {
    if (this.end !== undefined) return
    this.children.cancelled = true
    if (how === "kill") this.children.killed = true
    if (!this.stopAsked) this.post({ _tag: "Stop" })
    this.stopAsked = true
    this.children.wake()
  }

  onExit(observer: ExitObserver): void {
    if (this.end === undefined) this.observers = [...this.observers, observer]
    else observer.childExited(this.end.exit)
  }

  private get exit(): Effect.Effect<Ended & { readonly exit: Exit.Exit<never> }> {
    return Effect.callback((resume) => {
      const observer: ExitObserver = { childExited: () => resume(Effect.succeed(this.end!)) }
      this.onExit(observer)
      return Effect.sync(() => {
        this.observers = this.observers.filter((other) => other !== observer)
      })
    })
  }

  get ended(): Effect.Effect<Ended> {
    return Effect.map(this.exit, ({ reason, child }) => ({ reason, child }))
  }

  get join(): Effect.Effect<never> {
    return Effect.flatMap(this.exit, ({ exit }) => exit)
  }

  exited(child: Incarnation<R>, exit: Exit.Exit<unknown, unknown>): void {
    // a child that starts without a fiber is also restarted without a fiber
    if (this.draining || this.end !== undefined || typeof child.spec.start !== "function") {
      return this.post({ _tag: "Exited", child, exit })
    }
    this.draining = true
    let rest: Effect.Effect<void> | undefined
    try {
      rest = this.childEnded(child, exit)
    } catch (defect) {
      rest = Effect.die(defect)
    }
    if (rest !== undefined) return this.run(Effect.andThen(rest, this.drain()))
    this.draining = false
    if (this.mailbox.length > 0) this.wake()
  }

  private post(message: Message<R>): void {
    if (this.end !== undefined) return refuse(message)
    this.mailbox.push(message)
    if (!this.draining) this.wake()
  }

  /** Handles the mailbox in the next turn, so that the code that posted the message can continue first. */
  private wake(): void {
    this.draining = true
    this.run(Effect.andThen(Effect.yieldNow, this.drain()))
  }

  private run(work: Effect.Effect<void>): void {
    Effect.runForkWith(this.context)(Effect.catchCause(work, (cause) => this.crash(cause)))
  }

  private drain(): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      while (this.mailbox.length > 0) {
        const batch = this.mailbox
        this.mailbox = []
        for (const message of batch) {
          if (this.end === undefined) yield* this.handle(message)
          else refuse(message)
        }
      }
      this.draining = false
    })
  }

  private handle(message: Message<R>): Effect.Effect<void> {
    switch (message._tag) {
      case "Exited":
        return this.childEnded(message.child, message.exit) ?? Effect.void
      case "Retry":
        // yield to all other fibers first, so that a child that fails immediately does not block the process
        return Effect.andThen(
          Effect.yieldNow,
          Effect.suspend(() => this.ifRestarting(message.child, (spec) => this.restart(spec)))
        )
      case "GoOn":
        return this.ifRestarting(message.child, (spec) => this.comeBack(spec))
      case "Call":
        return message.run
      case "Stop":
        return this.terminate("stopped", undefined)
    }
  }

  private call<A, E>(body: () => Effect.Effect<A, E>): Effect.Effect<A, E | Refused.SupervisorEnded> {
    return Effect.callback<A, E | Refused.SupervisorEnded>((resume) => {
      this.post({
        _tag: "Call",
        run: Effect.map(Effect.exit(Effect.suspend(body)), resume),
        refuse: () =>
          resume(
            Effect.fail(new Refused.SupervisorEnded({ supervisor: this.name, reason: this.end?.reason ?? "stopped" }))
          )
      })
    })
  }

  // these functions return an Effect only if work that takes time is left

  private childEnded(child: Incarnation<R>, exit: Exit.Exit<unknown, unknown>): Effect.Effect<void> | undefined {
    const stale = this.children.byId.get(child.id) !== child || child.status !== "running"
    if (stale) return undefined
    const how = ending(exit)
    this.record({ _tag: "Exited", child: child.id, ending: how, exit })
    const again = restarts[child.spec.restart ?? "permanent"][how]
    this.release(child, how)
    const rest = again ? this.restart(child.spec) : this.significantEnd(child.spec, how)
    if (how === "abnormal" && Exit.isFailure(exit)) {
      this.log(Effect.logWarning(`${this.name}: child ${child.id} crashed`, exit.cause))
    }
    return rest
  }

  /** Keeps the ended child's specification, unless the child is temporary or closed, or the supervisor is dynamic. */
  private release({ spec }: Incarnation<R>, how?: Ending): void {
    this.endWait(spec.id)
    if (how === "closed" || this.forgets(spec)) this.children.byId.delete(spec.id)
    else this.children.setDown(spec)
  }

  private forgets(spec: ChildSpec<R>): boolean {
    return this.settings.strategy === "dynamic" || spec.restart === "temporary"
  }

  /**
   * Ends the supervisor if the end of a significant child requires it (`autoShutdown`). The end of a child that its
   * owner closed does not count.
   */
  private significantEnd(spec: ChildSpec<R>, how: Ending): Effect.Effect<void> | undefined {
    const { autoShutdown } = this.settings
    if (spec.significant !== true || how === "closed" || autoShutdown === "never") return undefined
    if (autoShutdown === "all_significant") {
      for (const other of this.children.byId.values()) {
        if (other.spec.significant === true && other.status !== "down") return undefined
      }
    }
    return this.terminate("auto_shutdown", spec.id)
  }

  private log(entry: Effect.Effect<void>): void {
    Effect.runForkWith(this.context)(entry)
  }

  private ifRestarting(
    child: Incarnation<R>,
    then: (spec: ChildSpec<R>) => Effect.Effect<void> | undefined
  ): Effect.Effect<void> {
    const isRestarting = this.children.byId.get(child.id) === child && child.status === "restarting"
    return (isRestarting ? then(child.spec) : undefined) ?? Effect.void
  }

  private restart(spec: ChildSpec<R>): Effect.Effect<void> | undefined {
    const { backoff, intensity, period } = this.settings
    const restart = { at: this.clock.monotonicTimeNanosUnsafe(), child: spec.id }
    this.window = addRestart(this.window, restart, period, intensity)
    if (exceeded(this.window, intensity)) {
      const limit = `${intensity} restarts in ${period / 1_000_000n} ms`
      const told = Effect.logError(`${this.name}: child ${spec.id} exceeded ${limit}; giving up`)
      return Effect.andThen(told, this.terminate("escalated", spec.id))
    }
    const wait = backoff === "none" ? 0 : waitBefore(this.window, spec.id, backoff, period, intensity)
    this.record({ _tag: "Restarting", child: spec.id, attempt: this.window.length, wait })
    return wait === 0 ? this.comeBack(spec) : this.takeDown(spec, () => this.startLater(spec, wait))
  }

  /** Restarts a child as the strategy requires: stops affected siblings, then starts the child and these siblings. */
  private comeBack(spec: ChildSpec<R>): Effect.Effect<void> | undefined {
    return this.takeDown(spec, (affected) =>
      this.startAgain(
        this.settings.strategy === "dynamic" ? [spec] : affected.filter(({ id }) => this.children.byId.has(id))
      )
    )
  }

  private takeDown(
    spec: ChildSpec<R>,
    then: (affected: ReadonlyArray<ChildSpec<R>>) => Effect.Effect<void> | undefined
  ): Effect.Effect<void> | undefined {
    const affected = this.affectedBy(spec.id)
    const goOn = () => {
      for (const sibling of affected) this.release(sibling)
      return then(affected.map((sibling) => sibling.spec))
    }
    if (affected.every(({ status }) => status !== "running")) return goOn()
    return Effect.flatMap(this.children.stop(affected.toReversed()), () => goOn() ?? Effect.void)
  }

  /** The children that the strategy restarts if this child ends, including this child, in start order. */
  private affectedBy(id: string): ReadonlyArray<Incarnation<R>> {
    const { byId } = this.children
    if (this.settings.strategy === "one_for_all") return [...byId.values()]
    if (this.settings.strategy === "rest_for_one") {
      const all = [...byId.values()]
      return all.slice(all.findIndex((child) => child.id === id))
    }
    const child = byId.get(id)
    return child === undefined ? [] : [child]
  }

  /** Starts children in order. If a start fails, that child becomes `restarting`, and later ones are not started. */
  private startAgain(specs: ReadonlyArray<ChildSpec<R>>, from = 0): Effect.Effect<void> | undefined {
    for (let at = from; at < specs.length; at++) {
      const spec = specs[at]!
      const left = this.children.leftBehind(spec)
      if (left !== undefined) return this.startAfter(spec, left)
      if (typeof spec.start !== "function") {
        return Effect.matchEffect(this.startOrIgnore(spec), {
          onFailure: (failed) => Effect.sync(() => this.tryAgain(spec, failed)),
          onSuccess: () => this.startAgain(specs, at + 1) ?? Effect.void
        })
      }
      const started = this.children.startDirect(spec, spec.start)
      if (started instanceof Refused.StartFailed) return this.tryAgain(spec, started)
      if (started === undefined) this.stayDown(spec)
    }
    return undefined
  }

  private setRestarting(spec: ChildSpec<R>): Incarnation<R> {
    const child = this.children.setDown(spec)
    child.status = "restarting"
    return child
  }

  /** Retries the start of a child, after the supervisor has handled the messages that are already in its mailbox. */
  private tryAgain(spec: ChildSpec<R>, failed: Refused.StartFailed): undefined {
    this.log(Effect.logWarning(`${failed.message}; trying again`))
    this.post({ _tag: "Retry", child: this.setRestarting(spec) })
  }

  /** Starts a child after a wait of `wait` ms. */
  private startLater(spec: ChildSpec<R>, wait: number): undefined {
    const child = this.setRestarting(spec)
    const waited = Effect.andThen(
      Effect.sleep(wait),
      Effect.sync(() => this.post({ _tag: "GoOn", child }))
    )
    this.waits.set(spec.id, Effect.runForkWith(this.context)(waited))
  }

  /** Starts a child as soon as its abandoned incarnation has ended. */
  private startAfter(spec: ChildSpec<R>, left: Hold): undefined {
    const child = this.setRestarting(spec)
    this.record({ _tag: "AwaitsEnd", child: spec.id })
    left.onOver(() => this.post({ _tag: "GoOn", child }))
  }

  private endWait(id: string): void {
    const wait = this.waits.get(id)
    if (wait === undefined) return
    this.waits.delete(id)
    wait.interruptUnsafe()
  }

  private startOrIgnore(spec: ChildSpec<R>): Effect.Effect<ChildHandle | undefined, Refused.StartFailed> {
    return Effect.map(this.children.start(spec), (handle) => {
      if (handle === undefined) this.stayDown(spec)
      return handle
    })
  }

  /** Keeps or deletes the specification of a child whose start returned `ignore`, by the same rules as `release`. */
  private stayDown(spec: ChildSpec<R>): void {
    if (this.forgets(spec)) this.children.byId.delete(spec.id)
    else this.children.setDown(spec)
  }

  private terminate(reason: EndReason, child: string | undefined): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      this.record({ _tag: "Ending", reason, child })
      const newestFirst = [...this.children.byId.values()].toReversed()
      const together = this.settings.strategy === "dynamic" || this.children.killed
      yield* together ? this.children.stopTogether(newestFirst) : this.children.stop(newestFirst)
      this.finish({ reason, child, exit: Exit.interrupt() })
    })
  }

  private finish(end: Ended & { readonly exit: Exit.Exit<never> }): void {
    this.record({ _tag: "Ended", reason: end.reason })
    this.end = end
    this.children.byId.clear()
    for (const id of this.waits.keys()) this.endWait(id)
    const { mailbox, observers } = this
    this.mailbox = []
    this.observers = []
    for (const message of mailbox) refuse(message)
    for (const observer of observers) observer.childExited(end.exit)
  }

  /** Called after a defect in the supervisor, whose state may be wrong: kills the children without a grace period. */
  private crash(cause: Cause.Cause<never>): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (this.end !== undefined) return Effect.logError(`${this.name}: the supervisor crashed after its end`, cause)
      this.children.killed = true
      return Effect.logError(`${this.name}: the supervisor crashed; its children are killed`, cause).pipe(
        Effect.andThen(this.children.stopTogether([...this.children.byId.values()])),
        Effect.catchCause((again) =>
          Effect.logError(`${this.name}: the supervisor crashed again while it killed its children`, again)
        ),
        Effect.ensuring(
          Effect.sync(() => this.finish({ reason: "crashed", child: undefined, exit: Exit.failCause(cause) }))
        )
      )
    })
  }

  /** Starts the initial children. If one start fails, stops all children. */
  startAll(specs: ReadonlyArray<ChildSpec<R>>): Effect.Effect<void, Refused.StartFailed> {
    const first = Effect.gen({ self: this }, function* () {
      for (const spec of specs) yield* Effect.andThen(this.children.awaitLeft(spec), this.startOrIgnore(spec))
    })
    return this.call(() => Effect.tapError(first, (failed) => this.terminate("failed_to_start", failed.child))).pipe(
      Effect.catchTag("SupervisorEnded", () => Effect.interrupt)
    )
  }

  startChild(spec: ChildSpec<R>): Effect.Effect<ChildHandle | undefined, StartChildError | Refused.SupervisorEnded> {
    return Effect.suspend(() => {
      const { start } = spec
      const isLeft = this.children.leftBehind(spec) !== undefined
      if (isLeft || typeof start !== "function" || this.draining || this.end !== undefined) {
        const admitted = this.call(() => this.admit(spec))
        return isLeft ? Effect.andThen(this.whenFree(spec), admitted) : admitted
      }
      // no message is waiting and the start takes no time, so start the child on the caller's fiber
      const refusal = this.refusal(spec)
      if (refusal !== undefined) return Effect.fail(refusal)
      this.draining = true
      const started = this.children.startDirect(spec, start)
      if (started === undefined) this.stayDown(spec)
      this.draining = false
      if (this.mailbox.length > 0) this.wake()
      return started instanceof Refused.StartFailed ? Effect.fail(named(started)) : Effect.succeed(started)
    })
  }

  private admit(spec: ChildSpec<R>): Effect.Effect<ChildHandle | undefined, StartChildError> {
    const refusal = this.refusal(spec)
    return refusal === undefined ? Effect.mapError(this.startOrIgnore(spec), named) : Effect.fail(refusal)
  }

  private refusal(spec: ChildSpec<R>): StartChildError | undefined {
    const problem = problemOf(spec, this.settings.autoShutdown)
    const known = this.children.byId.get(spec.id)
    const limit = this.settings.maxChildren
    if (problem === undefined && known === undefined && this.children.byId.size < limit) return undefined
    const refusal = { supervisor: this.name, child: String(spec.id) }
    if (problem !== undefined) return new Refused.InvalidSpec({ ...refusal, problem })
    if (known?.status === "running") return new Refused.AlreadyStarted(refusal)
    if (known !== undefined) return new Refused.AlreadyPresent(refusal)
    return new Refused.TooManyChildren({ ...refusal, limit })
  }

  /** Waits like `awaitLeft`, but in the caller's fiber, so that the supervisor handles messages during the wait. */
  private whenFree(spec: ChildSpec<R>): Effect.Effect<void, Refused.StartFailed> {
    return this.children.awaitLeft(spec, (left, limit) => {
      const over = Effect.callback<void>((resume) => left.onOver(() => resume(Effect.void)))
      return Duration.isFinite(limit) ? Effect.asVoid(Effect.timeoutOption(over, limit)) : over
    })
  }

  terminateChild(id: string) {
    return this.call(() =>
      Effect.flatMap(this.find(id), (child) => Effect.map(this.children.stop([child]), () => this.release(child)))
    )
  }

  restartChild(id: string) {
    const restart = this.call(() => Effect.flatMap(this.findDown(id), (child) => this.startOrIgnore(child.spec)))
    return Effect.suspend(() => {
      const known = this.children.byId.get(id)
      return known?.status === "down" ? Effect.andThen(this.whenFree(known.spec), restart) : restart
    })
  }

  deleteChild(id: string) {
    return this.call(() => Effect.map(this.findDown(id), () => void this.children.byId.delete(id)))
  }

  childSpec(id: string) {
    return this.call(() => Effect.map(this.find(id), (child) => child.spec))
  }

  private find(id: string): Effect.Effect<Incarnation<R>, Refused.NotFound> {
    const child = this.children.byId.get(id)
    return child === undefined
      ? Effect.fail(new Refused.NotFound({ supervisor: this.name, child: id }))
      : Effect.succeed(child)
  }

  private findDown(id: string) {
    return Effect.suspend((): Effect.Effect<Incarnation<R>, DeleteChildError> => {
      const refusal = { supervisor: this.name, child: id }
      if (this.settings.strategy === "dynamic") return Effect.fail(new Refused.SimpleOneForOne(refusal))
      const child = this.children.byId.get(id)
      if (child === undefined) return Effect.fail(new Refused.NotFound(refusal))
      if (child.status === "restarting") return Effect.fail(new Refused.Restarting(refusal))
      return child.status === "down" ? Effect.succeed(child) : Effect.fail(new Refused.Running(refusal))
    })
  }

  get whichChildren() {
    return this.call(() =>
      Effect.sync(() =>
        Array.from(this.children.byId.values(), ({ id, status, spec, handle }): ChildInfo => ({
          id,
          status,
          type: spec.type ?? "worker",
          handle
        }))
      )
    )
  }

  get countChildren() {
    return this.call(() =>
      Effect.sync((): ChildCounts => {
        const children = [...this.children.byId.values()]
        const supervisors = children.filter(({ spec }) => spec.type === "supervisor").length
        const active = children.filter((child) => child.status === "running" && child.exit === undefined).length
        return { specs: children.length, active, supervisors, workers: children.length - supervisors }
      })
    )
  }

  inspect(): Inspection & { readonly _tag: "Supervisor" } {
    const { byId } = this.children
    const shown = [...byId.values()].slice(0, MAX_SHOWN)
    return {
      _tag: "Supervisor",
      strategy: this.settings.strategy,
      count: byId.size,
      children: shown.map(({ handle, id, spec, status }) => ({
        id,
        type: spec.type ?? "worker",
        status,
        restart: spec.restart ?? "permanent",
        restarts: 0,
        crash: undefined,
        ...this.histories.get(id),
        inside: status === "running" ? handle?.inspect?.() : undefined
      }))
    }
  }

  /** Counts the restarts and records the last crash of a child. Deletes the records of children that are gone. */
  private remember(event: TraceEvent): void {
    if (event._tag !== "Restarting" && !(event._tag === "Exited" && event.ending === "abnormal")) return
    const { crash, restarts } = this.histories.get(event.child) ?? { restarts: 0, crash: undefined }
    if (event._tag === "Restarting") this.histories.set(event.child, { restarts: restarts + 1, crash })
    else {
      const message = Exit.isFailure(event.exit) ? Cause.pretty(event.exit.cause).split("\n", 1)[0]! : "ended"
      this.histories.set(event.child, { restarts, crash: { at: this.clock.currentTimeMillisUnsafe(), message } })
    }
    if (this.histories.size <= this.children.byId.size) return
    for (const id of this.histories.keys()) if (!this.children.byId.has(id)) this.histories.delete(id)
  }

  get trace(): Effect.Effect<ReadonlyArray<TraceEvent>> {
    return Effect.sync(() => this.ring.toArray())
  }

  record(event: TraceEvent): void {
    this.ring.push(event)
    this.remember(event)
    try {
      this.options.onTrace?.(event, this.name)
    } catch (defect) {
      Effect.runForkWith(this.context)(Effect.logError(`${this.name}: onTrace threw`, defect))
    }
  }
}

/** Returns the `AlreadySupervised` error if it caused the failed start; otherwise the `StartFailed` error itself. */
const named = (failed: Refused.StartFailed): Refused.StartFailed | Refused.AlreadySupervised =>
  failed.cause instanceof Refused.AlreadySupervised ? failed.cause : failed

/** Starts a supervisor and its children. When the Scope closes, the supervisor is stopped, and its end is awaited. */
export const make = Effect.fnUntraced(function* <R = never>(
  options: Options<R>
): Effect.fn.Return<Supervisor<R>, Refused.InvalidSpec | Refused.StartFailed, R | Scope.Scope> {
  const decided = settings(options)
  if (decided instanceof Refused.InvalidSpec) return yield* decided
  const supervisor = new Process(options, decided, yield* Effect.context<R>())
  yield* Effect.addFinalizer(() => {
    supervisor.stop("shutdown")
    return supervisor.ended
  })
  yield* supervisor.startAll(options.children ?? [])
  return supervisor
})

/**
 * Creates the specification of a supervisor that is a child of another supervisor. A restart creates a new supervisor
 * with the children in `options`.
 */
export const child = <R = never>(
  options: Options<R>,
  spec: Partial<Omit<ChildSpec<R>, "start" | "type">> = {}
): ChildSpec<R> => ({ id: options.name, ...spec, type: "supervisor", start: make(options) })
