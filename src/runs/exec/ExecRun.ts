/**
 * ExecRun: one run of an external program: its process and its timers. ExecStream handles the records.
 *
 * Guarantees: A slow reader of the events slows the program down. A program that does not read its input does not block
 * the daemon. A program that is not ready in time, or is silent for too long in a turn, is ended. Each step of ending a
 * run has a time limit: the turn, the end of the input, SIGTERM, SIGKILL. `Exited` is the last event, sent when all
 * processes of the run have ended. A run survives the daemon, and the next daemon knows everything that was sent and
 * received.
 */
import { type Cause, Deferred, Duration, Effect, Fiber, FiberHandle, Queue, Scope, Semaphore, Stream } from "effect"
import type { ExecBackend } from "../../config/BackendConfig.ts"
import * as Monotonic from "../../core/supervision/Monotonic.ts"
import { BackendError, type Decision, type Run, type RunEvent, type RunSpec, type TurnInput } from "../Backend.ts"
import { outcomeOf } from "../command/CommandBackend.ts"
import * as FileContents from "../FileContents.ts"
import type { Outcome } from "../Outcome.ts"
import { CONTINUED, type Line } from "../process/LineSplitter.ts"
import * as Checkpoint from "../process/Checkpoint.ts"
import * as RunProcess from "../process/RunProcess.ts"
import { ExecHistory, type Note } from "./ExecHistory.ts"
import * as ExecRecord from "./ExecRecord.ts"
import { ExecStream, interrupts, type Wait } from "./ExecStream.ts"

export interface Options {
  readonly config: ExecBackend
  readonly spec: RunSpec
  readonly program: RunProcess.RunProcess
  readonly read: FileContents.Reader
  readonly folder: FileContents.Folder
}

/** State of an idle program. Stored with a checkpoint. */
interface Rest {
  readonly session?: string
  readonly said: string
}

/** Maximum number of unread events. If the queue is full, the program's pipe fills up and the program waits. */
const CAPACITY = 256
/** Maximum number of records that wait until the program reads them. */
const INPUTS = 256
/** Maximum length of a record, characters. */
const MAX_RECORD = 8 * 1024 * 1024
const MAX_LINE = 16_384
const MAX_SAID = 4_096
/** Maximum number of invalid lines that are reported. */
const NOISES = 10
/** How long the program may take to exit after its input is closed. */
const END_GRACE: Duration.Duration = Duration.seconds(3)

const refused = (message: string, remedy: string) => new BackendError({ message, remedy, fatal: false })

interface Parts {
  readonly queue: Queue.Queue<RunEvent, Cause.Done>
  readonly input: Queue.Queue<readonly [line: string, note: string] | null>
  readonly timer: FiberHandle.FiberHandle
  readonly scope: Scope.Scope
}

class ExecRun {
  private readonly options: Options
  private readonly parts: Parts
  private readonly stream: ExecStream
  private history: ExecHistory | undefined
  /** Makes sure that each event is sent together with its state change, and that events do not overlap. */
  private readonly order = Semaphore.makeUnsafe(1)
  private ending = false
  private idle = Deferred.makeUnsafe<void>()
  /** The run's outcome, if the run does not end as requested. */
  private verdict: Outcome | undefined = undefined
  private waits: Wait = undefined
  /** When the program last sent output, ms on the monotonic clock. */
  private heardAt = 0
  private noises = 0
  /** How many bytes have been processed: of standard output up to the end of the last record, and of standard error. */
  private taken: number
  private errors: number
  /** Number of inputs that were sent to the program. */
  private given: number
  /** The last lines that the program wrote to standard error. */
  private said: string

  constructor(options: Options, parts: Parts) {
    const { config, program, spec } = options
    const { before } = program
    const state = Checkpoint.of<Rest>(program)?.state
    const resumes = config.resume && spec.resume?.fork !== true ? spec.resume?.sessionId : undefined
    this.options = options
    this.parts = parts
    this.stream = new ExecStream(program.pid, resumes, config.readOnlyTools, state)
    this.history = before === undefined ? undefined : new ExecHistory(before, this.stream)
    this.taken = before?.point?.out ?? 0
    this.errors = before?.point?.err ?? 0
    this.given = before?.seq ?? 0
    this.said = state?.said ?? ""
  }

  readonly start = Effect.gen({ self: this }, function* () {
    const { config, program, read, spec } = this.options
    const { input } = this.parts
    const isNew = this.history === undefined
    const write = Effect.flatMap(Queue.take(input), (input) =>
      input === null ? program.closeInput : program.write(...input)
    )
    yield* Effect.forkScoped(Effect.forever(write))
    const pumps = [yield* Effect.forkScoped(this.records), yield* Effect.forkScoped(this.complaints)]
    if (isNew) {
      this.tellProgram(ExecRecord.start(spec, config.resume ? spec.resume : undefined), { say: "start" })
      yield* this.give({ turnId: spec.turnId, text: spec.prompt }, yield* read(spec.files))
    }
    // If `life` fails, the queue still ends, so that a reader does not wait forever.
    yield* Effect.forkScoped(Effect.ensuring(this.life(pumps), Queue.end(this.parts.queue)))
    return this.run
  })

  private tell(make: () => ReadonlyArray<RunEvent>): Effect.Effect<void> {
    return this.order.withPermit(Effect.suspend(() => Effect.asVoid(Queue.offerAll(this.parts.queue, make()))))
  }

  private tellProgram(told: ExecRecord.Told, note: Note): void {
    const line: readonly [string, string] = [ExecRecord.lineOf(told), ExecHistory.noteOf(note, this.taken)]
    if (Queue.offerUnsafe(this.parts.input, line)) this.given++
  }

  /** Called after the stream's state has changed: wakes the code that waits for a change, and sets the timer. */
  private readonly turned: Effect.Effect<void> = Effect.suspend(() => {
    const { fault, turnId } = this.stream
    if (turnId === undefined) Deferred.doneUnsafe(this.idle, Effect.void)
    else if (Deferred.isDoneUnsafe(this.idle)) this.idle = Deferred.makeUnsafe<void>()
    if (fault === undefined || this.verdict !== undefined) return this.watch
    this.verdict = fault
    return Effect.andThen(this.watch, this.stop)
  })

  private readonly records: Effect.Effect<void> = Effect.suspend(() => {
    const { program } = this.options
    const noise = this.noise()
    const eventsOf = (line: string): ReadonlyArray<RunEvent> => {
      const read = line.trim() === "" ? undefined : ExecRecord.read(line)
      if (read?._tag === "Said") return this.stream.take(read.said)
      return read?._tag === "Wrong" ? noise(line, read.why) : []
    }
    const eventsAt = ({ end, text }: Line): ReadonlyArray<RunEvent> => {
      const before = this.history?.upTo(end) ?? []
      const events = eventsOf(text)
      this.taken = end
      if (!program.isKept) return events
      return [...before, ...RunProcess.placed(events, 1, end), ...this.rests]
    }
    const take = (lines: ReadonlyArray<Line>, size: number) =>
      Effect.flatMap(Monotonic.now, (heardAt) => {
        this.heardAt = heardAt
        const all = () => [...lines.flatMap(eventsAt), ...this.caughtUp(size)]
        return Effect.andThen(this.tell(all), this.turned)
      })
    return this.tell(() => [...Checkpoint.again(program, this.stream.session), ...this.caughtUp(this.taken)]).pipe(
      Effect.andThen(this.turned),
      Effect.andThen(RunProcess.drainPlaced(program.stdout, program.ended, MAX_RECORD, take))
    )
  })

  /** Returns a checkpoint if the program is idle and has written much output since the last checkpoint. */
  private get rests(): ReadonlyArray<RunEvent> {
    const { errors: err, given: seq, history, said, stream, taken: out } = this
    const isAtRest = history === undefined && stream.isUp && stream.turnId === undefined
    if (!isAtRest || !this.options.program.isDue(out, err)) return []
    const state: Rest = { said, ...(stream.session === undefined ? {} : { session: stream.session }) }
    return [{ _tag: "Reached", point: { out, err, seq, state } }]
  }

  /** Returns `Resumed` once all output that the earlier daemon had received has been processed again. */
  private caughtUp(size: number): ReadonlyArray<RunEvent> {
    const { history } = this
    if (history === undefined || size < history.size) return []
    const last = history.upTo(Number.POSITIVE_INFINITY)
    this.history = undefined
    const given = this.stream.turnId
    return [...last, { _tag: "Resumed", ...(given === undefined ? {} : { given }) }]
  }

  /** A long line arrives in pieces; only its first piece is reported. */
  private noise(): (line: string, why: string) => ReadonlyArray<RunEvent> {
    let inLong = false
    return (line, why) => {
      const isFirst = !inLong
      inLong = line.endsWith(CONTINUED)
      if (!isFirst || this.noises >= NOISES) return []
      this.noises++
      const what = inLong ? `it is longer than ${MAX_RECORD} characters` : why
      const last = this.noises === NOISES ? "; further lines of this kind are not reported" : ""
      return [{ _tag: "Notice", text: `the program wrote a line that is not a record: ${what}${last}` }]
    }
  }

  private readonly complaints: Effect.Effect<void> = Effect.suspend(() => {
    const { program } = this.options
    const emit = (lines: ReadonlyArray<Line>, _: number, whole: number | undefined) => {
      const all = [this.said, ...lines.map(({ text }) => text)]
      this.said = all
        .filter((line) => line.trim() !== "")
        .join("\n")
        .slice(-MAX_SAID)
      return this.tell(() => {
        this.errors = whole ?? this.errors
        return RunProcess.errorsOf(program, 1, lines)
      })
    }
    return RunProcess.drainPlaced(program.stderr, program.ended, MAX_LINE, emit)
  })

  /** Sets the timer for the next record. If another record is expected than before, the timer starts again. */
  private readonly watch: Effect.Effect<void> = Effect.suspend(() => {
    const { waits } = this.stream
    if (waits === this.waits || this.history !== undefined) return Effect.void
    this.waits = waits
    if (waits === undefined) return FiberHandle.clear(this.parts.timer)
    const { silence, startTimeout } = this.options.config
    const limit = waits === "ready" ? startTimeout : silence
    const lapse = Effect.gen({ self: this }, function* () {
      const begun = yield* Monotonic.now
      this.heardAt = begun
      for (;;) {
        // until "ready" arrives, other output does not restart the timer
        const since = waits === "ready" ? begun : this.heardAt
        const rest = since + Duration.toMillis(limit) - (yield* Monotonic.now)
        if (rest <= 0) break
        yield* Effect.sleep(rest)
      }
      // needs its own fiber, because `lapsed` can interrupt this one
      yield* Effect.forkIn(this.lapsed(waits, limit), this.parts.scope)
    })
    return Effect.asVoid(FiberHandle.run(this.parts.timer, lapse))
  })

  private lapsed(waits: Wait, limit: Duration.Duration): Effect.Effect<void> {
    if (this.stream.waits !== waits) return Effect.void
    const time = Duration.format(limit)
    const words =
      waits === "ready" ? `the program was not ready within ${time}` : `the program sent nothing for ${time}`
    this.verdict ??= { _tag: "Error", detail: words }
    return this.tell(() => this.stream.end(words)).pipe(Effect.andThen(this.turned), Effect.andThen(this.stop))
  }

  private give({ text, turnId }: TurnInput, { found, gone }: FileContents.Contents): Effect.Effect<void, BackendError> {
    return Effect.flatMap(this.options.folder.put(found), (paths) => {
      this.idle = Deferred.makeUnsafe<void>()
      this.stream.give(turnId)
      const files = found.map(({ filename, type }, at) => ({ name: filename, type, path: paths[at]! }))
      const told = { type: "turn", turn: turnId, text: FileContents.withLines(text, gone) } as const
      this.tellProgram(files.length === 0 ? told : { ...told, files }, { say: "turn", turnId })
      return this.watch
    })
  }

  private readonly send = (input: TurnInput): Effect.Effect<void, BackendError> =>
    Effect.flatMap(this.options.read(input.files), (files) => {
      if (this.ending || !this.stream.isUp)
        return Effect.fail(refused("the run accepts no turn now", "the next run receives it"))
      return this.stream.turnId === undefined || this.stream.isOwn
        ? this.give(input, files)
        : Effect.fail(refused("a turn is in progress", "send it when that turn has ended, or interrupt that turn"))
    })

  private readonly interruptTurn: Effect.Effect<void> = Effect.sync(() => {
    const { turnId } = this.stream
    if (turnId !== undefined && this.stream.interrupt())
      this.tellProgram({ type: "interrupt", turn: turnId }, { say: "interrupt" })
  })

  private readonly answer = (callId: string, decision: Decision): Effect.Effect<void> =>
    Effect.suspend(() => {
      if (!this.stream.answer(callId)) return Effect.void
      this.tellProgram(ExecRecord.answer(callId, decision), { say: "answer", callId })
      return Effect.andThen(interrupts(decision) ? this.interruptTurn : Effect.void, this.watch)
    })

  /**
   * Stops waiting for a call, because the protocol has no record that ends one call. From then on, the silence limit
   * applies again.
   */
  private readonly cancelCall = (callId: string): Effect.Effect<void> =>
    Effect.suspend(() => {
      this.stream.forget(callId)
      return this.watch
    })

  private readonly stop: Effect.Effect<void> = Effect.suspend(() => {
    if (this.ending) return Effect.void
    this.ending = true
    const { config, program } = this.options
    const idle = Effect.suspend(() =>
      this.stream.turnId === undefined || !this.stream.isUp
        ? Effect.void
        : Effect.andThen(this.interruptTurn, Effect.timeoutOption(Deferred.await(this.idle), config.killGrace))
    )
    const leave = Effect.suspend(() => {
      if (this.stream.turnId !== undefined) return Effect.void
      this.tellProgram({ type: "end" }, { say: "end" })
      const patience = Duration.min(END_GRACE, config.killGrace)
      return Effect.andThen(Queue.offer(this.parts.input, null), Effect.timeoutOption(program.exited, patience))
    })
    return Effect.asVoid(
      Effect.forkIn(Effect.andThen(Effect.andThen(idle, leave), program.interrupt), this.parts.scope)
    )
  })

  /** Waits until the process has ended, and ends a turn that is still open. */
  private readonly life = Effect.fnUntraced(
    { self: this },
    function* (this: ExecRun, pumps: ReadonlyArray<Fiber.Fiber<unknown, unknown>>) {
      const { program } = this.options
      const status = yield* program.exited
      const survived = yield* RunProcess.survival(program)
      yield* Fiber.awaitAll(pumps)
      yield* FiberHandle.clear(this.parts.timer)
      const isActive = this.stream.turnId !== undefined
      const last = this.said.split("\n").at(-1) ?? ""
      const ended = outcomeOf(status, last)
      const words = ended._tag === "Error" ? ended.detail : "the program ended during the turn"
      if (isActive) yield* this.tell(() => this.stream.end(words))
      const asked: Outcome | undefined =
        this.ending && (!isActive || !this.stream.isUp) ? { _tag: "Success" } : undefined
      const bad: Outcome = ended._tag === "Success" ? { _tag: "Error", detail: words } : ended
      const outcome = survived ?? this.verdict ?? asked ?? (isActive || !this.stream.isUp ? bad : ended)
      yield* Queue.offer(this.parts.queue, { _tag: "Exited", outcome })
    }
  )

  private get run(): Run {
    const { program, spec } = this.options
    return {
      runId: spec.runId,
      events: Stream.fromQueue(this.parts.queue),
      send: this.send,
      answer: this.answer,
      cancelCall: this.cancelCall,
      keep: (point, heard) => Checkpoint.keep(program, point, heard),
      outlives: () => program.isKept,
      interruptTurn: this.interruptTurn,
      endBegun: program.endBegun,
      end: this.stop,
      kill: program.kill
    }
  }
}

/**
 * Starts the run. `queue`: acquired before everything else, so that it ends last when the scope closes. A reader
 * therefore always sees an end.
 */
export const make = Effect.fnUntraced(function* (options: Options, queue: Parts["queue"]) {
  const scope = yield* Effect.scope
  const input = yield* Queue.dropping<readonly [string, string] | null>(INPUTS)
  const timer = yield* FiberHandle.make()
  return yield* new ExecRun(options, { queue, input, timer, scope }).start
})

export const queue = Effect.acquireRelease(Queue.bounded<RunEvent, Cause.Done>(CAPACITY), (queue) => Queue.end(queue))
