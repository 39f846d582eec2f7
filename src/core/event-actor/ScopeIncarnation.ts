/**
 * ScopeIncarnation: a commit scope from one start to its end, as its supervisor sees it.
 *
 * Guarantees: as soon as the scope runs anything (an activity, an action that is an
 * Effect) the incarnation is a fiber in its supervisor's context, and holds what it runs
 * as fibers of its own: its Exit is what the supervisor hears, and interrupting it ends
 * them all. A scope that never ran anything has no fiber.
 * Every observer hears of the end, once. What ignores its interruption leaves the
 * incarnation behind: the supervisor says so, and the next one begins beside it.
 */
import { Context, Effect, Exit, Fiber, References, Scope } from "effect"
import type { ChildHandle, ExitObserver, Hold } from "../supervision/Child.ts"
import type { Inspection, Part } from "../supervision/Observation.ts"
import { type Ask, Asking, Performing } from "./Mail.ts"

export interface Incarnate {
  readonly id: string
  /** The supervisor wants the incarnation's end. */
  stopped(incarnation: ScopeIncarnation): void
  fiberEnded(incarnation: ScopeIncarnation, exit: Exit.Exit<void, unknown>): void
  /** The scope's actors, as they stand. */
  readonly parts: ReadonlyArray<Part>
}

export class ScopeIncarnation implements ChildHandle {
  private readonly of: Incarnate
  private readonly by: Hold
  supervisedBy: Hold | undefined = undefined
  private life: Life | undefined = undefined
  ending: Exit.Exit<void, unknown> | undefined = undefined
  private observer: ExitObserver | undefined = undefined
  /** The supervisor's wish: life, an end, or an end at once, whatever is left undone. */
  wanted: "life" | "end" | "kill" = "life"
  /** How it ended; reported. */
  exit: Exit.Exit<unknown, unknown> | undefined = undefined

  constructor(of: Incarnate, by: Hold) {
    this.of = of
    this.by = by
  }

  // --- for the supervisor

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

  // --- for the scope and its life

  /** Runs an activity: ends with the incarnation at the latest. */
  run(effect: Effect.Effect<void, unknown>): Fiber.Fiber<void, unknown> {
    const life = this.begin()
    return life.fork(effect, life.context)
  }

  /** Runs an action; `ask` is what it works for, where that was put off. */
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

  /** The first reason counts. What runs is interrupted, and waited for. */
  finish(exit: Exit.Exit<void, unknown>): void {
    this.ending ??= exit
    this.life?.end(this.ending)
  }

  /** Nothing runs any more. */
  get isQuiet(): boolean {
    return this.life === undefined || this.life.fiber.pollUnsafe() !== undefined
  }

  /** The end, told to all that watch; the fiber's own Exit where there was one. What still runs is left behind. */
  report(): void {
    if (this.exit !== undefined) return
    const exit = this.life?.fiber.pollUnsafe() ?? this.ending ?? Exit.interrupt()
    this.exit = exit
    const { observer } = this
    this.observer = undefined
    observer?.childExited(exit)
  }
}

/** Another observer steals nothing from the first. */
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

/** The incarnation's fiber and what it holds. */
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
