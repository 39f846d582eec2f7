/**
 * SupervisorProcess: the mailbox of one supervisor and what it does with each
 * message. The guarantees are Supervisor's.
 */
import { Cause, Clock, Context, Effect, Exit } from "effect"
import { type ChildHandle, type ChildSpec, type ExitObserver, Surroundings } from "./Child.ts"
import { Children, type Listener } from "./Children.ts"
import type { Incarnation } from "./Incarnation.ts"
import { addRestart, emptyWindow, ending, exceeded, restarts, type Window } from "./Restart.ts"
import type { ChildCounts, ChildInfo, DeleteChildError, Ended, StartChildError, Supervisor } from "./Supervisor.ts"
import * as Refused from "./SupervisorError.ts"
import { type Options, problemOf, type Settings } from "./SupervisorOptions.ts"
import { type EndReason, type TraceEvent, TraceRing } from "./SupervisorTrace.ts"

type Message<R> =
  | { readonly _tag: "Exited"; readonly child: Incarnation<R>; readonly exit: Exit.Exit<unknown, unknown> }
  | { readonly _tag: "Retry"; readonly id: string }
  | { readonly _tag: "Call"; readonly run: Effect.Effect<void>; readonly refuse: () => void }
  | { readonly _tag: "Stop" }

const refuse = <R>(message: Message<R>): void => {
  if (message._tag === "Call") message.refuse()
}

export class SupervisorProcess<R> implements Supervisor<R>, Listener<R> {
  readonly context: Context.Context<R>
  private readonly options: Options<R>
  private readonly settings: Settings
  private readonly children: Children<R> = new Children<R>(this)
  private readonly ring: TraceRing
  private window: Window = emptyWindow
  private mailbox: Array<Message<R>> = []
  private draining = false
  private stopAsked = false
  private end: (Ended & { readonly exit: Exit.Exit<never> }) | undefined = undefined
  private observers: ReadonlyArray<ExitObserver> = []

  constructor(options: Options<R>, decided: Settings, context: Context.Context<R>) {
    this.options = options
    this.settings = decided
    this.context = Context.add(context, Surroundings, context as Context.Context<never>)
    this.ring = new TraceRing(options.traceCapacity ?? 64)
  }

  get name(): string {
    return this.options.name
  }

  // As a child.

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

  // The mailbox.

  exited(child: Incarnation<R>, exit: Exit.Exit<unknown, unknown>): void {
    this.post({ _tag: "Exited", child, exit })
  }

  private post(message: Message<R>): void {
    if (this.end !== undefined) return refuse(message)
    this.mailbox.push(message)
    if (this.draining) return
    this.draining = true
    Effect.runForkWith(this.context)(Effect.catchCause(this.drain(), (cause) => this.crash(cause)))
  }

  /** Lives from the first message to the empty mailbox. Begins a turn later: whoever posted goes on first. */
  private drain(): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      yield* Effect.yieldNow
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
        return this.childEnded(message.child, message.exit)
      case "Retry":
        // A turn for everybody else: a child that fails at once must not keep the whole process busy.
        return Effect.andThen(
          Effect.yieldNow,
          Effect.suspend(() => {
            const child = this.children.byId.get(message.id)
            return child?.status === "restarting" ? this.restart(child) : Effect.void
          })
        )
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

  // A child's own end.

  private childEnded(child: Incarnation<R>, exit: Exit.Exit<unknown, unknown>): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      const stale = this.children.byId.get(child.id) !== child || child.status !== "running"
      if (stale) return
      const how = ending(exit)
      this.record({ _tag: "Exited", child: child.id, ending: how, exit })
      if (how === "abnormal" && Exit.isFailure(exit)) {
        yield* Effect.logWarning(`${this.name}: child ${child.id} crashed`, exit.cause)
      }
      const again = restarts[child.spec.restart ?? "permanent"][how]
      this.release(child)
      if (again) return yield* this.restart(child)
      if (child.spec.significant === true && this.isSignificantEnd()) {
        yield* this.terminate("auto_shutdown", child.id)
      }
    })
  }

  /** A child that does not run keeps its specification, unless it is temporary or dynamic. */
  private release({ spec }: Incarnation<R>): void {
    if (this.forgets(spec)) this.children.byId.delete(spec.id)
    else this.children.setDown(spec)
  }

  private forgets(spec: ChildSpec<R>): boolean {
    return this.settings.strategy === "dynamic" || spec.restart === "temporary"
  }

  private isSignificantEnd(): boolean {
    const { autoShutdown } = this.settings
    if (autoShutdown !== "all_significant") return autoShutdown === "any_significant"
    for (const { spec, status } of this.children.byId.values()) {
      if (spec.significant === true && status !== "down") return false
    }
    return true
  }

  // Restarting.

  private restart({ spec }: Incarnation<R>): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      const { intensity, period } = this.settings
      this.window = addRestart(this.window, yield* Clock.monotonicTimeNanos, period, intensity)
      if (exceeded(this.window, intensity)) {
        yield* Effect.logError(
          `${this.name}: child ${spec.id} went over ${intensity} restarts in ${period / 1_000_000n} ms, giving up`
        )
        return yield* this.terminate("escalated", spec.id)
      }
      this.record({ _tag: "Restarting", child: spec.id, attempt: this.window.length })
      const affected = this.affectedBy(spec.id)
      yield* this.children.stop(affected.toReversed())
      for (const sibling of affected) this.release(sibling)
      const again = affected.filter(({ id }) => this.children.byId.has(id)).map((sibling) => sibling.spec)
      yield* this.startAgain(this.settings.strategy === "dynamic" ? [spec] : again)
    })
  }

  /** Who goes down with a child and comes up again, in start order; the child itself among them. */
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

  /** The first that fails becomes the one that is restarting; those behind it stay down. */
  private startAgain(specs: ReadonlyArray<ChildSpec<R>>): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      for (const spec of specs) {
        const failed = yield* this.startOrIgnore(spec).pipe(
          Effect.match({ onSuccess: () => undefined, onFailure: (error) => error })
        )
        if (failed === undefined) continue
        yield* Effect.logWarning(`${failed.message}; trying again`)
        this.children.setDown(spec)
        this.children.byId.get(spec.id)!.status = "restarting"
        return this.post({ _tag: "Retry", id: spec.id })
      }
    })
  }

  /** A start that answers ignore leaves the specification, as `release` does. */
  private startOrIgnore(spec: ChildSpec<R>): Effect.Effect<ChildHandle | undefined, Refused.StartFailed> {
    return Effect.map(this.children.start(spec), (handle) => {
      if (handle !== undefined) return handle
      if (this.forgets(spec)) this.children.byId.delete(spec.id)
      else this.children.setDown(spec)
      return undefined
    })
  }

  // The end of the supervisor.

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
    const { mailbox, observers } = this
    this.mailbox = []
    this.observers = []
    for (const message of mailbox) refuse(message)
    for (const observer of observers) observer.childExited(end.exit)
  }

  /** A defect of our own: nothing to be trusted any more, so no grace for the children. */
  private crash(cause: Cause.Cause<never>): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (this.end !== undefined) return Effect.logError(`${this.name}: the supervisor crashed after its end`, cause)
      this.children.killed = true
      return Effect.logError(`${this.name}: the supervisor crashed; its children are killed`, cause).pipe(
        Effect.andThen(this.children.stopTogether([...this.children.byId.values()])),
        Effect.catchCause((again) => Effect.logError(`${this.name}: and crashed again while killing them`, again)),
        Effect.ensuring(
          Effect.sync(() => this.finish({ reason: "crashed", child: undefined, exit: Exit.failCause(cause) }))
        )
      )
    })
  }

  // Administration.

  /** The first start: all of them, or none. */
  startAll(specs: ReadonlyArray<ChildSpec<R>>): Effect.Effect<void, Refused.StartFailed> {
    const first = Effect.gen({ self: this }, function* () {
      for (const spec of specs) yield* this.startOrIgnore(spec)
    })
    return this.call(() => Effect.tapError(first, (failed) => this.terminate("failed_to_start", failed.child))).pipe(
      Effect.catchTag("SupervisorEnded", () => Effect.interrupt)
    )
  }

  startChild(spec: ChildSpec<R>) {
    return this.call((): Effect.Effect<ChildHandle | undefined, StartChildError> => {
      const refusal = { supervisor: this.name, child: String(spec.id) }
      const problem = problemOf(spec, this.settings.autoShutdown)
      if (problem !== undefined) return Effect.fail(new Refused.InvalidSpec({ ...refusal, problem }))
      const known = this.children.byId.get(spec.id)
      if (known?.status === "running") return Effect.fail(new Refused.AlreadyStarted(refusal))
      if (known !== undefined) return Effect.fail(new Refused.AlreadyPresent(refusal))
      const limit = this.settings.maxChildren
      if (this.children.byId.size >= limit) return Effect.fail(new Refused.TooManyChildren({ ...refusal, limit }))
      return this.startOrIgnore(spec)
    })
  }

  terminateChild(id: string) {
    return this.call(() =>
      Effect.flatMap(this.find(id), (child) => Effect.map(this.children.stop([child]), () => this.release(child)))
    )
  }

  restartChild(id: string) {
    return this.call(() => Effect.flatMap(this.findDown(id), (child) => this.startOrIgnore(child.spec)))
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

  // The trace.

  get trace(): Effect.Effect<ReadonlyArray<TraceEvent>> {
    return Effect.sync(() => this.ring.toArray())
  }

  record(event: TraceEvent): void {
    this.ring.push(event)
    try {
      this.options.onTrace?.(event, this.name)
    } catch (defect) {
      Effect.runForkWith(this.context)(Effect.logError(`${this.name}: onTrace threw`, defect))
    }
  }
}
