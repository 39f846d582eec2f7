/**
 * ProcessLiveness: checks which sessions' processes are alive.
 *
 * Guarantees: a plate is closed only when every process that is certainly its own (known pid and start time) is gone. A
 * plate whose process is unknown stays open until its session reports its end. Each check reads /proc once per process.
 * If no plate is open, nothing is read.
 */
import { Clock, Effect, FiberSet, type FileSystem, type Scope } from "effect"
import type { PlateActor } from "./PlateActor.ts"
import type { AgentSession } from "../domain/AgentPort.ts"
import type { PlateRegistry } from "./PlateRegistry.ts"
import * as ShellWatch from "./ShellWatch.ts"

/** Interval between two checks of all processes, ms. */
const INTERVAL = 1_000
/** Interval between two checks of a process whose session has just reported its end, ms. */
const ENDING_INTERVAL = 100
const ENDING_LOOKS = 50

export class ProcessLiveness {
  private readonly registry: PlateRegistry
  private readonly fs: FileSystem.FileSystem
  private readonly endings: FiberSet.FiberSet
  private readonly sessions: Effect.Effect<ReadonlyArray<AgentSession>>

  private constructor(
    registry: PlateRegistry,
    fs: FileSystem.FileSystem,
    endings: FiberSet.FiberSet,
    sessions: Effect.Effect<ReadonlyArray<AgentSession>>
  ) {
    this.sessions = sessions
    this.registry = registry
    this.fs = fs
    this.endings = endings
  }

  static make(
    registry: PlateRegistry,
    fs: FileSystem.FileSystem,
    sessions: Effect.Effect<ReadonlyArray<AgentSession>>
  ): Effect.Effect<ProcessLiveness, never, Scope.Scope> {
    return Effect.map(FiberSet.make(), (endings) => new ProcessLiveness(registry, fs, endings, sessions))
  }

  /** True if all processes of the session are known to be gone; the plate is then closed. */
  private readonly check = Effect.fnUntraced(
    { self: this },
    function* (this: ProcessLiveness, plate: PlateActor, now: number) {
      const known = plate.stand.data.processes.filter(({ start }) => start !== null)
      if (known.length === 0 || known.some(({ pid, start }) => this.registry.processes.isAlive({ pid, start: start! })))
        return false
      yield* plate.lastLook
      plate.tell({ _tag: "ProcessExited", at: now, pid: known.at(-1)!.pid })
      return true
    }
  )

  /** Closes the plate of a session that a program of a run started, once no agent has the run any more. */
  private readonly checkRun = Effect.fnUntraced(
    { self: this },
    function* (this: ProcessLiveness, plate: PlateActor, now: number) {
      const { agent, runId } = plate.stand.data
      if (agent === null || runId === null || (yield* this.sessions).some((of) => of.runId === runId)) return
      plate.tell({ _tag: "ProcessExited", at: now })
    }
  )

  private readonly beat = Effect.gen({ self: this }, function* () {
    const now = yield* Clock.currentTimeMillis
    const plates = this.registry.open
    for (const plate of plates) if (!(yield* this.check(plate, now))) yield* this.checkRun(plate, now)
    yield* ShellWatch.look(this.fs, plates, now)
  })

  readonly loop: Effect.Effect<never> = Effect.gen({ self: this }, function* () {
    if (!this.registry.processes.isAvailable()) return yield* Effect.never
    while (true) {
      yield* this.registry.populated.await
      yield* this.beat
      yield* Effect.sleep(INTERVAL)
    }
  })

  /** Watches the process of a session that has ended for good. An unknown process counts as gone after a while. */
  ending(plate: PlateActor): Effect.Effect<void> {
    const { ended } = plate
    const watch = Effect.gen({ self: this }, function* () {
      for (let look = 0; look < ENDING_LOOKS; look++) {
        yield* Effect.sleep(ENDING_INTERVAL)
        if (!plate.isOpen || plate.ended !== ended) return
        if (yield* this.check(plate, yield* Clock.currentTimeMillis)) return
      }
      if (plate.process !== undefined) return
      yield* plate.lastLook
      plate.tell({ _tag: "ProcessExited", at: yield* Clock.currentTimeMillis })
    })
    return Effect.asVoid(FiberSet.run(this.endings, watch))
  }
}
