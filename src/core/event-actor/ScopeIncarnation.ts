/**
 * ScopeIncarnation: a commit scope from one start to its end; the handle that its supervisor uses.
 *
 * Guarantees: the incarnation becomes a fiber only when the scope first runs an activity, or an action that is an
 * Effect. From then on, everything that it runs is a fiber that it owns. Interrupting the incarnation ends all of these
 * fibers, and the supervisor receives its Exit. A scope that never ran such work has no fiber. Each observer is
 * notified of the end once. If a fiber ignores its interruption, the incarnation is abandoned and a warning is logged.
 * The next incarnation then begins although that fiber may still run.
 */
import { Context, Effect, Exit, Fiber, References, Scope } from "effect"
import type { ChildHandle, ExitObserver, Hold } from "../supervision/Child.ts"
import type { Inspection, Part } from "../supervision/Observation.ts"
import { type Ask, Asking, Performing } from "./Mail.ts"

export interface Incarnate {
  readonly id: string
  /** Called when the supervisor asks the incarnation to end. */
  stopped(incarnation: ScopeIncarnation): void
  fiberEnded(incarnation: ScopeIncarnation, exit: Exit.Exit<void, unknown>): void
  readonly parts: ReadonlyArray<Part>
}

export class ScopeIncarnation implements ChildHandle {
  private readonly of: Incarnate
  private readonly by: Hold
  supervisedBy: Hold | undefined = undefined
  private life: Life | undefined = undefined
  ending: Exit.Exit<void, unknown> | undefined = undefined
  private observer: ExitObserver | undefined = undefined
  /** The supervisor's request: keep running, end, or end immediately even if work is unfinished ("kill"). */
  wanted: "life" | "end" | "kill" = "life"
  /** The exit that was reported; undefined until the end has been reported. */
  exit: Exit.Exit<unknown, unknown> | undefined = undefined

  constructor(of: Incarnate, by: Hold) {
    this.of = of
    this.by = by
  }

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

  /** Starts an activity as a fiber. When the incarnation ends, the fiber is interrupted. */
  run(effect: Effect.Effect<void, unknown>): Fiber.Fiber<void, unknown> {
    const life = this.begin()
    return life.fork(effect, life.context)
  }

  /** Performs an action as a fiber. `ask`: the deferred ask that the action will answer, if any. */
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

  /** Interrupts the fibers and waits for their end. If this is called several times, the first exit counts. */
  finish(exit: Exit.Exit<void, unknown>): void {
    this.ending ??= exit
    this.life?.end(this.ending)
  }

  /** True if all fibers of the incarnation have ended. */
  get isQuiet(): boolean {
    return this.life === undefined || this.life.fiber.pollUnsafe() !== undefined
  }

  /** Reports the Exit of the fiber, if there was one, to all observers. Fibers that still run are abandoned. */
  report(): void {
    if (this.exit !== undefined) return
    const exit = this.life?.fiber.pollUnsafe() ?? this.ending ?? Exit.interrupt()
    this.exit = exit
    const { observer } = this
    this.observer = undefined
    observer?.childExited(exit)
  }
}

/** An observer that calls two other observers, so that the second does not replace the first. */
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

/** The fiber of an incarnation, and the fibers of its activities and actions, which it owns. */
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
