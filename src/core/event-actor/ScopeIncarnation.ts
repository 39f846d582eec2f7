/**
 * ScopeIncarnation: a commit scope from one start to its end, as its supervisor sees it.
 *
 * Guarantees: when the scope first runs an activity, or an action that is an Effect, the
 * incarnation becomes a fiber in its supervisor's context. Everything it runs is a fiber that it
 * owns. The supervisor receives its Exit, and interrupting it ends all of them. A scope that never
 * ran anything has no fiber. Each observer receives the end once. If something ignores its
 * interruption, the incarnation is abandoned: a warning is logged, and the next one begins while it
 * may still run.
 */
import { Context, Effect, Exit, Fiber, References, Scope } from "effect"
import type { ChildHandle, ExitObserver, Hold } from "../supervision/Child.ts"
import type { Inspection, Part } from "../supervision/Observation.ts"
import { type Ask, Asking, Performing } from "./Mail.ts"

export interface Incarnate {
  readonly id: string
  /** The supervisor wants the incarnation to end. */
  stopped(incarnation: ScopeIncarnation): void
  fiberEnded(incarnation: ScopeIncarnation, exit: Exit.Exit<void, unknown>): void
  /** The scope's actors in their current state. */
  readonly parts: ReadonlyArray<Part>
}

export class ScopeIncarnation implements ChildHandle {
  private readonly of: Incarnate
  private readonly by: Hold
  supervisedBy: Hold | undefined = undefined
  private life: Life | undefined = undefined
  ending: Exit.Exit<void, unknown> | undefined = undefined
  private observer: ExitObserver | undefined = undefined
  /** The supervisor's request: keep running, end, or end immediately even if work is unfinished. */
  wanted: "life" | "end" | "kill" = "life"
  /** The exit, after it was reported; undefined before. */
  exit: Exit.Exit<unknown, unknown> | undefined = undefined

  constructor(of: Incarnate, by: Hold) {
    this.of = of
    this.by = by
  }

  // --- implementation of ChildHandle

  stop(how: "shutdown" | "kill"): void {
    if (this.exit !== undefined) return
    if (this.wanted !== "kill") this.wanted = how === "kill" ? "kill" : "end"
    this.of.stopped(this)
  }

  onExit(observer: ExitObserver): void {
    if (this.exit !== undefined) observer.childExited(this.exit)
    else this.observer = this.observer === undefined ? observer : new Both(this.observer, observer)
  }

  inspect(): Inspection {
    return { _tag: "Parts", parts: this.of.parts }
  }

  // --- for the scope and ScopeLife

  /** Runs an activity, which ends with the incarnation at the latest. */
  run(effect: Effect.Effect<void, unknown>): Fiber.Fiber<void, unknown> {
    const life = this.begin()
    return life.fork(effect, life.context)
  }

  /** Runs an action. `ask` is the ask it works for, if that was put off. */
  perform(effect: Effect.Effect<void, unknown>, ask: Ask | undefined): Fiber.Fiber<void, unknown> {
    const life = this.begin()
    life.acting ??= Context.add(life.context, Performing, true)
    const context = ask === undefined ? life.acting : Context.add(life.acting, Asking, [ask, ...ask.chain])
    return life.fork(effect, context)
  }

  private begin(): Life {
    if (this.life === undefined) {
      const { context } = this.by
      const annotations = { ...Context.get(context, References.CurrentLogAnnotations), scope: this.of.id }
      this.life = new Life(Context.add(context, References.CurrentLogAnnotations, annotations))
      this.life.fiber.addObserver((exit) => this.of.fiberEnded(this, exit))
    }
    return this.life
  }

  /** Ends the incarnation. The first exit counts. Running fibers are interrupted and awaited. */
  finish(exit: Exit.Exit<void, unknown>): void {
    this.ending ??= exit
    this.life?.end(this.ending)
  }

  /** True if nothing is running any more. */
  get isQuiet(): boolean {
    return this.life === undefined || this.life.fiber.pollUnsafe() !== undefined
  }

  /** Reports the end to all observers, with the fiber's Exit if it had one. Anything that still runs is abandoned. */
  report(): void {
    if (this.exit !== undefined) return
    const exit = this.life?.fiber.pollUnsafe() ?? this.ending ?? Exit.interrupt()
    this.exit = exit
    const { observer } = this
    this.observer = undefined
    observer?.childExited(exit)
  }
}

/** Calls two observers: a second observer does not replace the first. */
class Both implements ExitObserver {
  private readonly first: ExitObserver
  private readonly second: ExitObserver

  constructor(first: ExitObserver, second: ExitObserver) {
    this.first = first
    this.second = second
  }

  childExited(exit: Exit.Exit<unknown, unknown>): void {
    this.first.childExited(exit)
    this.second.childExited(exit)
  }
}

/** The incarnation's fiber, and the fibers that it owns. */
class Life {
  readonly context: Context.Context<never>
  readonly fiber: Fiber.Fiber<void, unknown>
  acting: Context.Context<never> | undefined = undefined
  private readonly runs = Scope.makeUnsafe("parallel")
  private resume: ((effect: Effect.Effect<void, unknown>) => void) | undefined = undefined
  private ending: Exit.Exit<void, unknown> | undefined = undefined

  constructor(context: Context.Context<never>) {
    this.context = context
    const waiting = Effect.callback<void, unknown>((resume) => {
      if (this.ending !== undefined) resume(this.ending)
      else this.resume = resume
    })
    this.fiber = Effect.runForkWith(context)(Effect.onExit(waiting, (exit) => Scope.close(this.runs, exit)))
  }

  fork(effect: Effect.Effect<void, unknown>, context: Context.Context<never>): Fiber.Fiber<void, unknown> {
    return Fiber.runIn(Effect.runForkWith(context)(effect), this.runs)
  }

  end(exit: Exit.Exit<void, unknown>): void {
    if (this.ending !== undefined) return
    this.ending = exit
    this.resume?.(exit)
  }
}
