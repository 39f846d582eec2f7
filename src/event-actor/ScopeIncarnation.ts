/**
 * ScopeIncarnation: a commit scope from one start to its end, as its supervisor sees it.
 *
 * Guarantees: as soon as the scope runs anything (an activity, an action that is an
 * Effect) the incarnation is a fiber in the supervisor's context, bound to the child's
 * Scope, and holds what it runs as fibers of its own: its Exit is what the supervisor
 * hears, and interrupting it ends them all. A scope that never ran anything has no fiber.
 * Every observer hears of the end, once. What ignores its interruption leaves the
 * incarnation behind: the supervisor says so, and the next one begins beside it.
 */
import { Context, Effect, Exit, Fiber, References, Scope } from "effect"
import type { ChildHandle, ExitObserver } from "../supervision/Child.ts"
import { type Ask, Asking, Performing } from "./Mail.ts"
import type { ScopeLife } from "./ScopeLife.ts"

export class ScopeIncarnation implements ChildHandle {
  private readonly of: ScopeLife
  /** The supervisor's, with the child's Scope. */
  private readonly context: Context.Context<never>
  private life: Life | undefined = undefined
  /** Why it ends. */
  ending: Exit.Exit<void, unknown> | undefined = undefined
  private observer: ExitObserver | undefined = undefined
  private others: Array<ExitObserver> | undefined = undefined
  /** Its supervisor wants its end. */
  isAsked = false
  /** Asked to end at once, whatever is left undone. */
  isKilled = false
  /** How it ended; reported. */
  exit: Exit.Exit<unknown, unknown> | undefined = undefined

  constructor(of: ScopeLife, context: Context.Context<never>) {
    this.of = of
    this.context = context
  }

  // --- for the supervisor

  stop(how: "shutdown" | "kill"): void {
    if (this.exit !== undefined) return
    this.isAsked = true
    if (how === "kill") this.isKilled = true
    this.of.stopped(this)
  }

  onExit(observer: ExitObserver): void {
    if (this.exit !== undefined) observer.childExited(this.exit)
    else if (this.observer === undefined) this.observer = observer
    else (this.others ??= []).push(observer)
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
      const { id } = this.of.scope
      const annotations = { ...Context.get(this.context, References.CurrentLogAnnotations), scope: id }
      this.life = new Life(Context.add(this.context, References.CurrentLogAnnotations, annotations))
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
    this.life?.leave()
    const exit = this.life?.fiber.pollUnsafe() ?? this.ending ?? Exit.interrupt()
    this.exit = exit
    const { observer, others } = this
    this.observer = undefined
    this.others = undefined
    observer?.childExited(exit)
    for (const other of others ?? []) other.childExited(exit)
  }
}

/** The incarnation's fiber and what it holds. */
class Life {
  readonly context: Context.Context<never>
  readonly fiber: Fiber.Fiber<void, unknown>
  /** The context of actions. */
  acting: Context.Context<never> | undefined = undefined
  private readonly runs = Scope.makeUnsafe("parallel")
  private resume: ((effect: Effect.Effect<void, unknown>) => void) | undefined = undefined
  private ending: Exit.Exit<void, unknown> | undefined = undefined
  /** Lets the child's Scope close without it. */
  private released: (() => void) | undefined = undefined
  private isLeft = false

  constructor(context: Context.Context<never>) {
    this.context = context
    const waiting = Effect.callback<void, unknown>((resume) => {
      if (this.ending !== undefined) resume(this.ending)
      else this.resume = resume
    })
    const fiber = Effect.runForkWith(context)(Effect.onExit(waiting, (exit) => Scope.close(this.runs, exit)))
    this.fiber = fiber
    const scope = Context.getOrUndefined(context, Scope.Scope)
    if (scope !== undefined) Effect.runForkWith(context)(Scope.addFinalizer(scope, this.over))
  }

  /** With the child's Scope the fiber ends, too; it is waited for, unless it was left behind. */
  private get over(): Effect.Effect<void> {
    return Effect.callback<void>((resume) => {
      if (this.isLeft) return resume(Effect.void)
      this.released = () => resume(Effect.void)
      this.fiber.addObserver(this.released)
      this.fiber.interruptUnsafe()
    })
  }

  leave(): void {
    this.isLeft = true
    this.released?.()
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
