/**
 * RunLifecycle: the part of a run that is the same for every protocol: the timeout of the program's next step, the
 * steps in which the run is ended (RunPhases), and the outcome.
 *
 * Guarantees: at most one timeout runs, and only while a step is due. Each step of ending a run has a timeout. The
 * outcome is determined when all processes of the run have ended and their output has been read.
 */
import { type Cause, Duration, Effect, Fiber, FiberHandle, type Queue, type Scope, Stream } from "effect"
import * as Monotonic from "../../core/supervision/Monotonic.ts"
import type { Run, RunEvent } from "../Backend.ts"
import * as Fault from "../Fault.ts"
import type { Outcome } from "../Outcome.ts"
import * as Checkpoint from "../process/Checkpoint.ts"
import type { ExitStatus } from "../process/ChildProcess.ts"
import * as RunProcess from "../process/RunProcess.ts"
import * as RunEnd from "../RunEnd.ts"
import type { Wait } from "./LineProtocol.ts"
import * as RunPhases from "./RunPhases.ts"

/** The run whose lifecycle this is. */
export interface Driver {
  /** Name of the program in messages: `claude`. */
  readonly name: string
  /** The run's current process. */
  readonly program: RunProcess.RunProcess
  readonly work: RunPhases.Work
  /** The step that is due; undefined if no step is due, or if its time must not run now. */
  readonly waits: Wait | undefined
  /** Handles a step that took too long. `fault` describes it. */
  readonly lapsed: (waits: Wait, fault: Fault.Fault) => Effect.Effect<void>
  readonly interruptTurn: Effect.Effect<void>
  /** Closes the program's input after everything that waits to be written. */
  readonly closeInput: Effect.Effect<void>
}

export interface Limits {
  readonly startTimeout: Duration.Duration
  /** How long the program may be silent in a turn. */
  readonly silence: Duration.Duration
  readonly killGrace: Duration.Duration
}

/** How a process of the run ended. */
export interface Ended {
  readonly status: ExitStatus
  readonly survived: Outcome | undefined
}

interface Circumstances<A> extends Pick<RunEnd.End, "isActive" | "isUp" | "verdict"> {
  readonly said: string
  readonly birth: (words: string) => A
}

/** How long the program may take to begin its report after its last subagent has ended. */
const REPORT: Duration.Duration = Duration.seconds(5)
/** How long the program may take to exit after its input is closed. */
export const END_GRACE: Duration.Duration = Duration.seconds(3)

export interface Timers {
  /** Timer of the step that the program must take next. */
  readonly step: FiberHandle.FiberHandle
  /** Timer of the current phase. */
  readonly phase: FiberHandle.FiberHandle
  readonly scope: Scope.Scope
}

export class RunLifecycle {
  private readonly driver: Driver
  private readonly limits: Limits
  private readonly timers: Timers
  private phase: RunPhases.Phase = "Running"
  private waits: Wait | undefined = undefined
  /** When the process last sent output, ms on the monotonic clock. */
  private heardAt = 0
  /** The fault for which agentd ends the run. */
  verdict: Outcome | undefined = undefined

  constructor(driver: Driver, limits: Limits, timers: Timers) {
    this.driver = driver
    this.limits = limits
    this.timers = timers
  }

  get isEnding(): boolean {
    return this.phase !== "Running"
  }

  /** Called when the process has sent output. */
  readonly heard: Effect.Effect<void> = Effect.map(Monotonic.now, (now) => void (this.heardAt = now))

  /** Called after the run's state has changed. */
  readonly changed: Effect.Effect<void> = Effect.suspend(() => Effect.andThen(this.watch, this.signal("change")))

  readonly stop: Effect.Effect<void> = Effect.suspend(() => this.signal("stop"))

  /** Ends the run with this outcome, unless a fault has ended it before. */
  readonly fail = (outcome: Outcome): Effect.Effect<void> =>
    Effect.suspend(() => {
      this.verdict ??= outcome
      return this.stop
    })

  private signal(signal: RunPhases.Signal): Effect.Effect<void> {
    return Effect.suspend(() => {
      const phase = RunPhases.next(this.phase, signal, this.driver.work)
      if (phase === this.phase) return Effect.void
      this.phase = phase
      return this.enter(phase)
    })
  }

  private enter(phase: RunPhases.Phase): Effect.Effect<void> {
    const { killGrace } = this.limits
    switch (phase) {
      case "Running":
        return Effect.void
      case "Interrupting":
        return Effect.andThen(this.driver.interruptTurn, this.lapses(killGrace))
      case "Closing":
        return Effect.andThen(this.driver.closeInput, this.lapses(Duration.min(END_GRACE, killGrace)))
      case "Signalled":
        return this.driver.program.interrupt
    }
  }

  private lapses(after: Duration.Duration): Effect.Effect<void> {
    const { phase, scope } = this.timers
    // needs its own fiber, because the next phase sets the timer again
    const lapse = Effect.andThen(Effect.sleep(after), Effect.forkIn(this.signal("lapse"), scope))
    return Effect.asVoid(FiberHandle.run(phase, lapse))
  }

  /** Sets the timeout for the program's next step. If another step is expected than before, the timeout starts again. */
  readonly watch: Effect.Effect<void> = Effect.suspend(() => {
    const waits = this.verdict === undefined ? this.driver.waits : undefined
    if (waits === this.waits) return Effect.void
    this.waits = waits
    const { scope, step } = this.timers
    if (waits === undefined) return FiberHandle.clear(step)
    const { silence: answer, startTimeout: ready } = this.limits
    const limit = { ready, answer, report: REPORT }[waits]
    const lapse = Effect.gen({ self: this }, function* () {
      yield* this.heard
      const begun = this.heardAt
      for (;;) {
        // until the program is ready, output does not extend the timeout
        const since = waits === "ready" ? begun : this.heardAt
        const rest = since + Duration.toMillis(limit) - (yield* Monotonic.now)
        if (rest <= 0) break
        yield* Effect.sleep(rest)
      }
      // needs its own fiber, because its actions may interrupt the current one
      yield* Effect.forkIn(this.lapsed(waits, limit), scope)
    })
    return Effect.asVoid(FiberHandle.run(step, lapse))
  })

  private lapsed(waits: Wait, limit: Duration.Duration): Effect.Effect<void> {
    return Effect.suspend(() => {
      this.waits = undefined
      const { name } = this.driver
      if (this.driver.waits !== waits) return this.watch
      const time = Duration.format(limit)
      const fault =
        waits === "ready"
          ? Fault.error("start", `${name} was not ready within ${time}`, true)
          : Fault.error("silence", `${name} sent nothing for ${time}`, true)
      return Effect.andThen(this.driver.lapsed(waits, fault), this.watch)
    })
  }

  /**
   * Waits until all processes of the run have ended. `pumps`: the fibers that read the output. `more`: runs before their
   * end is awaited.
   */
  readonly ended = Effect.fnUntraced(
    { self: this },
    function* (
      this: RunLifecycle,
      pumps: ReadonlyArray<Fiber.Fiber<unknown, unknown>>,
      more: Effect.Effect<void> = Effect.void
    ) {
      const { program } = this.driver
      const status = yield* program.exited
      const survived = yield* RunProcess.survival(program)
      yield* more
      yield* Fiber.awaitAll(pumps)
      yield* FiberHandle.clear(this.timers.step)
      this.waits = undefined
      const ended: Ended = { status, survived }
      return ended
    }
  )

  /** Outcome of the run. `said`: the program's last output on standard error. `birth`: see RunEnd. */
  readonly outcomeOf = <A>({ status, survived }: Ended, { birth, said, ...of }: Circumstances<A>): Outcome | A => {
    const words = RunEnd.wordsOf(this.driver.name, status, Fault.oneLine(said))
    return RunEnd.outcomeOf({ status, survived, isAsked: this.isEnding, words, ...of }, () => birth(words))
  }

  /** The parts of a run that do not depend on its protocol. */
  run(queue: Queue.Queue<RunEvent, Cause.Done>) {
    const { driver } = this
    return {
      events: Stream.fromQueue(queue),
      keep: (point, heard) => Checkpoint.keep(driver.program, point, heard),
      outlives: () => driver.program.isKept,
      endBegun: (ms) => driver.program.endBegun(ms),
      end: this.stop,
      kill: Effect.suspend(() => driver.program.kill)
    } satisfies Partial<Run>
  }
}

export const timers: Effect.Effect<Timers, never, Scope.Scope> = Effect.all({
  step: FiberHandle.make(),
  phase: FiberHandle.make(),
  scope: Effect.scope
})
