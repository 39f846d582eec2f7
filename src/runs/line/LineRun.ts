/**
 * LineRun: one run of a program that exchanges lines with agentd over its standard input and output: its processes,
 * their timeouts and their end. A LineProtocol handles the lines.
 *
 * Guarantees: a slow reader of the events slows the program down, and a program that does not read does not block the
 * daemon. If a session to resume no longer exists, the same run begins a new one. The run ends if the program is silent
 * for too long in a turn, or if a turn ends with a fault. Each step of ending a run has a timeout (RunPhases). `Exited`
 * is the last event, sent when all processes of the run have ended. Its outcome comes from RunEnd.
 */
import {
  type Cause,
  Clock,
  Duration,
  Effect,
  Fiber,
  FiberHandle,
  type FileSystem,
  Queue,
  Random,
  Scope,
  Semaphore,
  Stream
} from "effect"
import * as Monotonic from "../../core/supervision/Monotonic.ts"
import { BackendError, type Decision, type Run, type RunEvent, type RunSpec, type TurnInput } from "../Backend.ts"
import * as Fault from "../Fault.ts"
import * as FileContents from "../FileContents.ts"
import type { Outcome } from "../Outcome.ts"
import * as Checkpoint from "../process/Checkpoint.ts"
import * as InputRecords from "../process/InputRecords.ts"
import { CONTINUED, type Line } from "../../config/LineSplitter.ts"
import type { ProcessTree } from "../process/ProcessTree.ts"
import type { Reaper } from "../process/Reaper.ts"
import * as RunProcess from "../process/RunProcess.ts"
import * as RunEnd from "../RunEnd.ts"
import { LineHistory } from "./LineHistory.ts"
import type { LineProtocol, Note, Said, Wait } from "./LineProtocol.ts"
import * as RunPhases from "./RunPhases.ts"

export type Context = Scope.Scope | ProcessTree | Reaper | FileSystem.FileSystem

/** A process of the run with the state of its protocol. */
export interface Opened<N extends Note> {
  readonly program: RunProcess.RunProcess
  readonly protocol: LineProtocol<N>
  /** Fails if the process cannot take a further turn for a reason outside the run. */
  readonly admit?: Effect.Effect<void, BackendError>
  /** Messages for the user about the start. */
  readonly notices?: ReadonlyArray<string>
}

export interface Options<N extends Note> {
  /** Name of the program in messages: `claude`. */
  readonly name: string
  /** Name of the product in messages: `Claude Code`. */
  readonly title: string
  readonly spec: RunSpec
  readonly startTimeout: Duration.Duration
  /** How long the program may be silent in a turn. */
  readonly silence: Duration.Duration
  readonly killGrace: Duration.Duration
  /**
   * Starts process number `count` of the run, or resumes the one that an earlier daemon left. If the first process
   * cannot find the session that it should resume, the run starts a second one with a new session.
   */
  readonly open: (count: number) => Effect.Effect<Opened<N>, BackendError, Context>
  readonly read: FileContents.Reader
  /** Folder for the files of a turn; omitted if the protocol takes their contents. */
  readonly folder?: FileContents.Folder | undefined
}

interface Attempt<N extends Note> extends Opened<N> {
  /** Number of the process in its run, starting with 1. */
  readonly count: number
  /** Lines for the process's input, in order, with their notes; null closes the input. */
  readonly input: Queue.Queue<readonly [line: string, note: string] | null>
  /** Notes of an earlier daemon, until all of them have been replayed. */
  history: LineHistory<N> | undefined
  /** Number of output bytes up to the end of the last line that was handled. */
  taken: number
  /** Number of bytes of standard error that have been handled, up to the end of a line. */
  errors: number
  /** Number of inputs that were written to the process. */
  given: number
  /** The last lines that the process wrote to standard error. */
  said: string
}

/** State of a process between two turns. Stored with a checkpoint. */
export interface Rest<S = unknown> {
  readonly said: string
  /** State of the protocol. */
  readonly stream: S
}

/** Maximum number of unread events. If the queue is full, the program's pipe fills up and the program waits. */
const CAPACITY = 256
/** Maximum number of lines (inputs, answers, interrupts) that wait until the program reads them. */
const INPUTS = 256
/** Maximum length of a line, characters. Large, because a tool's result can contain whole images. */
const MAX_RECORD = 8 * 1024 * 1024
const MAX_LINE = 16_384
const MAX_SAID = 4_096
/** Maximum number of invalid lines that are reported. */
const NOISES = 10
/** How long the program may take to begin its report after its last subagent has ended. */
const REPORT: Duration.Duration = Duration.seconds(5)
/** Timeout for the answer to a request for another model or mode. */
const CHOICE = "15 seconds"
/** How long the program may take to exit after its input is closed. */
const END_GRACE: Duration.Duration = Duration.seconds(3)

const refused = (message: string, remedy: string) => new BackendError({ message, remedy, fatal: false })

export const uuid: Effect.Effect<string> = Effect.gen(function* () {
  let digits = ""
  for (let index = 0; index < 31; index++)
    digits += (yield* Random.nextIntBetween(0, 16, { halfOpen: true })).toString(16)
  const at = (from: number, to: number) => digits.slice(from, to)
  const variant = "89ab"[Number.parseInt(digits[30]!, 16) % 4]
  return `${at(0, 8)}-${at(8, 12)}-4${at(12, 15)}-${variant}${at(15, 18)}-${at(18, 30)}`
})

const attemptOf = Effect.fnUntraced(function* <N extends Note>({ open }: Options<N>, count: number) {
  const opened = yield* open(count)
  const input = yield* Queue.dropping<readonly [string, string] | null>(INPUTS)
  const { before } = opened.program
  const { err = 0, out = 0 } = before?.point ?? {}
  const attempt: Attempt<N> = {
    ...opened,
    count,
    input,
    history: before === undefined ? undefined : new LineHistory(before, opened.protocol),
    taken: out,
    errors: err,
    given: before?.seq ?? 0,
    said: Checkpoint.of<Rest>(opened.program)?.state.said ?? ""
  }
  return attempt
})

interface Parts<N extends Note> {
  readonly attempt: Attempt<N>
  readonly queue: Queue.Queue<RunEvent, Cause.Done>
  /** Timer of the step that the program must take next. */
  readonly timer: FiberHandle.FiberHandle
  /** Timer of the current phase. */
  readonly grace: FiberHandle.FiberHandle
  readonly scope: Scope.Scope
}

class LineRun<N extends Note> {
  private readonly options: Options<N>
  private readonly parts: Parts<N>
  private readonly queue: Queue.Queue<RunEvent, Cause.Done>
  /** Makes sure that each event is emitted together with its state change, and that events do not overlap. */
  private readonly order = Semaphore.makeUnsafe(1)
  private attempt: Attempt<N>
  private phase: RunPhases.Phase = "Running"
  /** The fault for which agentd ends the run. */
  private verdict: Outcome | undefined = undefined
  private waits: Wait | undefined = undefined
  /** When the process last sent output, ms on the monotonic clock. */
  private heardAt = 0
  private noises = 0

  constructor(options: Options<N>, parts: Parts<N>) {
    this.options = options
    this.parts = parts
    this.attempt = parts.attempt
    this.queue = parts.queue
  }

  readonly start = Effect.gen({ self: this }, function* () {
    const pumps = yield* this.begin
    const { notices = [] } = this.attempt
    yield* this.tell(() => notices.map((text) => ({ _tag: "Notice", text })))
    // if `life` fails, the queue still ends, so that the reader does not wait forever
    yield* Effect.forkScoped(Effect.ensuring(this.life(pumps), Queue.end(this.queue)))
    return this.run
  })

  /** Starts to read the process's output, and sends the first turn to a new process. */
  private readonly begin = Effect.gen({ self: this }, function* () {
    const { read, spec } = this.options
    const { attempt } = this
    const { input, program, protocol } = attempt
    const write = Effect.flatMap(Queue.take(input), (input) =>
      input === null ? program.closeInput : program.write(...input)
    )
    const isNew = attempt.history === undefined
    yield* Effect.forkScoped(Effect.forever(write))
    const pumps = [yield* Effect.forkScoped(this.lines(attempt)), yield* Effect.forkScoped(this.errors(attempt))]
    if (!isNew) return pumps
    this.write(protocol.opening())
    yield* this.give({ turnId: spec.turnId, text: spec.prompt }, yield* read(spec.files))
    return pumps
  })

  private tell(make: () => ReadonlyArray<RunEvent>): Effect.Effect<void> {
    return this.order.withPermit(Effect.suspend(() => Effect.asVoid(Queue.offerAll(this.queue, make()))))
  }

  private get work(): RunPhases.Work {
    const { isIdle, isUp, turnId } = this.attempt.protocol
    if (turnId !== undefined && isUp) return "turn"
    return isIdle ? "none" : "other"
  }

  private signal(signal: RunPhases.Signal): Effect.Effect<void> {
    return Effect.suspend(() => {
      const phase = RunPhases.next(this.phase, signal, this.work)
      if (phase === this.phase) return Effect.void
      this.phase = phase
      return this.enter(phase)
    })
  }

  private enter(phase: RunPhases.Phase): Effect.Effect<void> {
    const { input, program } = this.attempt
    const { killGrace } = this.options
    switch (phase) {
      case "Running":
        return Effect.void
      case "Interrupting":
        return Effect.andThen(this.interruptTurn, this.lapses(killGrace))
      case "Closing":
        return Effect.andThen(Queue.offer(input, null), this.lapses(Duration.min(END_GRACE, killGrace)))
      case "Signalled":
        return program.interrupt
    }
  }

  private lapses(after: Duration.Duration): Effect.Effect<void> {
    const { grace, scope } = this.parts
    // needs its own fiber, because the next phase sets the timer again
    const lapse = Effect.andThen(Effect.sleep(after), Effect.forkIn(this.signal("lapse"), scope))
    return Effect.asVoid(FiberHandle.run(grace, lapse))
  }

  /** Called after the protocol's state has changed: sets the timeout, and ends the run after a fault. */
  private readonly turned: Effect.Effect<void> = Effect.suspend(() => {
    const { fault } = this.attempt.protocol
    const changed = Effect.andThen(this.watch, this.signal("change"))
    if (fault === undefined || this.verdict !== undefined) return changed
    this.verdict = fault.outcome
    return Effect.andThen(changed, this.stop)
  })

  private write(lines: ReadonlyArray<Said<N>>): void {
    const { attempt } = this
    for (const { note, text } of lines)
      if (Queue.offerUnsafe(attempt.input, [`${text}\n`, InputRecords.noteOf(note, attempt.taken)])) attempt.given++
  }

  private lines(attempt: Attempt<N>): Effect.Effect<void> {
    const { count, program, protocol } = attempt
    const noise = this.noise()
    const eventsOf = (line: string, now: number): ReadonlyArray<RunEvent> => {
      const heard = protocol.take(line, now)
      if (heard === undefined) return noise(line)
      if (attempt.history === undefined) this.write(heard.says)
      else for (const one of heard.says) attempt.history.says(one)
      return heard.events
    }
    const eventsAt = ({ end, text }: Line, now: number): ReadonlyArray<RunEvent> => {
      const before = attempt.history?.upTo(end) ?? []
      const events = eventsOf(text, now)
      attempt.taken = end
      if (!program.isKept) return events
      return [...before, ...RunProcess.placed(events, count, end), ...this.rests(attempt)]
    }
    const take = (lines: ReadonlyArray<Line>, size: number) =>
      Effect.flatMap(Effect.all([Clock.currentTimeMillis, Monotonic.now]), ([now, heardAt]) => {
        this.heardAt = heardAt
        const all = () => [...lines.flatMap((line) => eventsAt(line, now)), ...this.caughtUp(attempt, size)]
        return Effect.andThen(this.tell(all), this.turned)
      })
    const first = Effect.andThen(
      this.tell(() => [...Checkpoint.again(program, protocol.session), ...this.caughtUp(attempt, attempt.taken)]),
      this.turned
    )
    return Effect.andThen(first, RunProcess.drainPlaced(program.stdout, program.ended, MAX_RECORD, take))
  }

  /** Emits a checkpoint if the process is idle and has written much output since the last checkpoint. */
  private rests({ errors: err, given: seq, history, program, protocol, said, taken: out }: Attempt<N>) {
    const known = history === undefined && program.isDue(out, err) ? protocol.known : undefined
    if (known === undefined) return []
    const state: Rest = { said, stream: known }
    const reached: RunEvent = { _tag: "Reached", point: { out, err, seq, state } }
    return [reached]
  }

  /** Starts the normal handling of output, if everything that an earlier daemon had read has been replayed. */
  private caughtUp(attempt: Attempt<N>, size: number): ReadonlyArray<RunEvent> {
    const { history, protocol } = attempt
    if (history === undefined || size < history.size) return []
    const last = history.upTo(Number.POSITIVE_INFINITY)
    attempt.history = undefined
    this.write(history.unsaid)
    return [...last, { _tag: "Resumed", given: protocol.turnId }]
  }

  /** A long line arrives in pieces; only its first piece is reported. */
  private noise(): (line: string) => ReadonlyArray<RunEvent> {
    let inLong = false
    return (line) => {
      const first = !inLong
      inLong = line.endsWith(CONTINUED)
      if (!first || line.trim() === "" || this.noises >= NOISES) return []
      this.noises++
      const what = inLong ? "a record longer than agentd accepts" : "a line that is not a record"
      const last = this.noises === NOISES ? "; further lines of this kind are not reported" : ""
      return [
        { _tag: "Notice", text: `${this.options.name} wrote ${what}: ${JSON.stringify(line.slice(0, 200))}${last}` }
      ]
    }
  }

  private errors(attempt: Attempt<N>): Effect.Effect<void> {
    const { count, program } = attempt
    const emit = (lines: ReadonlyArray<Line>, _: number, whole: number | undefined) => {
      attempt.said = [attempt.said, ...lines.map(({ text }) => text)]
        .filter((line) => line.trim() !== "")
        .join("\n")
        .slice(-MAX_SAID)
      return this.tell(() => {
        attempt.errors = whole ?? attempt.errors
        return RunProcess.errorsOf(program, count, lines)
      })
    }
    return RunProcess.drainPlaced(program.stderr, program.ended, MAX_LINE, emit)
  }

  /** Sets the timeout for the program's next step. If another step is expected than before, the timeout starts again. */
  private readonly watch: Effect.Effect<void> = Effect.suspend(() => {
    const { history, protocol } = this.attempt
    const { waits } = protocol
    if (waits === this.waits || history !== undefined) return Effect.void
    this.waits = waits
    const { scope, timer } = this.parts
    if (waits === undefined) return FiberHandle.clear(timer)
    const { silence, startTimeout } = this.options
    const limit = { ready: startTimeout, answer: silence, report: REPORT }[waits]
    const lapse = Effect.gen({ self: this }, function* () {
      this.heardAt = yield* Monotonic.now
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
    return Effect.asVoid(FiberHandle.run(timer, lapse))
  })

  private lapsed(waits: Wait, limit: Duration.Duration): Effect.Effect<void> {
    const { protocol } = this.attempt
    const { name } = this.options
    if (protocol.waits !== waits) return Effect.void
    if (waits === "report")
      return Effect.andThen(
        this.tell(() => protocol.settle()),
        this.turned
      )
    const time = Duration.format(limit)
    const words = waits === "ready" ? `${name} was not ready within ${time}` : `${name} sent nothing for ${time}`
    const fault = Fault.error("silence", words, true)
    this.verdict ??= fault.outcome
    return this.tell(() => protocol.end({ _tag: "Failed", fault })).pipe(
      Effect.andThen(this.turned),
      Effect.andThen(this.stop)
    )
  }

  private readonly give = Effect.fnUntraced(
    { self: this },
    function* (this: LineRun<N>, { text, turnId }: TurnInput, files: FileContents.Contents) {
      const paths = yield* this.options.folder?.put(files.found) ?? Effect.succeed([])
      const id = yield* uuid
      this.write(this.attempt.protocol.give({ turnId, uuid: id, text, files, paths }))
      yield* this.watch
    }
  )

  private readonly send = Effect.fnUntraced(
    { self: this },
    function* (this: LineRun<N>, input: TurnInput): Effect.fn.Return<void, BackendError> {
      const files = yield* this.options.read(input.files)
      const { admit = Effect.void, protocol } = this.attempt
      yield* admit
      if (this.phase !== "Running" || !protocol.isUp)
        return yield* refused("the run accepts no turn now", "the next run receives it")
      if (protocol.isGiven)
        return yield* refused("a turn is in progress", "send it when that turn has ended, or interrupt that turn")
      yield* this.give(input, files)
    }
  )

  /** Changes the model or mode. Completes when the program has answered. */
  private choose(kind: "model" | "mode", name: string): Effect.Effect<void, BackendError> {
    const { title } = this.options
    return Effect.callback<void, BackendError>((resume) => {
      const lines = this.attempt.protocol.choose(kind, name, (refusal) =>
        resume(
          refusal === undefined
            ? Effect.void
            : Effect.fail(refused(`${title} refused the ${kind} "${name}": ${refusal}`, `give another ${kind}`))
        )
      )
      this.write(lines)
    }).pipe(
      Effect.timeoutOrElse({
        duration: CHOICE,
        orElse: () =>
          Effect.fail(refused(`${title} has not answered within ${CHOICE}`, "check what it is doing, then try again"))
      })
    )
  }

  private readonly interruptTurn: Effect.Effect<void> = Effect.sync(() => this.write(this.attempt.protocol.interrupt()))

  private readonly answer = (callId: string, decision: Decision): Effect.Effect<void> =>
    Effect.suspend(() => {
      this.write(this.attempt.protocol.answer(callId, decision))
      return this.watch
    })

  /** Stops waiting for a call, because no program can cancel a single call. From then on, the silence timeout applies. */
  private readonly cancelCall = (callId: string): Effect.Effect<void> =>
    Effect.suspend(() => {
      this.attempt.protocol.forget(callId)
      return this.watch
    })

  private readonly stop: Effect.Effect<void> = Effect.suspend(() => this.signal("stop"))

  /** Waits until all processes of the run have ended, and emits `Exited`. */
  private readonly life = Effect.fnUntraced(
    { self: this },
    function* (this: LineRun<N>, pumps: ReadonlyArray<Fiber.Fiber<unknown, unknown>>) {
      let outcome = yield* this.over(pumps)
      if (outcome === "gone") {
        const text = "its last conversation no longer exists: a new one begins, without memory of the old one"
        yield* this.tell(() => [{ _tag: "MemoryLost", text, place: { out: [2, 0, 0] } }])
        outcome = yield* attemptOf(this.options, 2).pipe(
          Effect.flatMap((again) => {
            this.attempt = again
            return Effect.flatMap(this.begin, (pumps) => this.over(pumps))
          }),
          Effect.catchTag("BackendError", ({ message }) => Effect.succeed<Outcome>({ _tag: "Error", detail: message }))
        )
      }
      const lost: Outcome = { _tag: "Error", detail: `${this.options.name} found no conversation` }
      yield* Queue.offer(this.queue, { _tag: "Exited", outcome: outcome === "gone" ? lost : outcome })
    }
  )

  /** Waits until the process has ended, and ends an open turn. */
  private readonly over = Effect.fnUntraced(
    { self: this },
    function* (
      this: LineRun<N>,
      pumps: ReadonlyArray<Fiber.Fiber<unknown, unknown>>
    ): Effect.fn.Return<Outcome | "gone"> {
      const { program, protocol } = this.attempt
      const status = yield* program.exited
      const survived = yield* RunProcess.survival(program)
      yield* Fiber.awaitAll(pumps)
      yield* FiberHandle.clear(this.parts.timer)
      this.waits = undefined
      const isActive = protocol.turnId !== undefined
      const words = RunEnd.wordsOf(this.options.name, status, Fault.oneLine(this.attempt.said))
      if (isActive) {
        yield* this.tell(() => protocol.end({ _tag: protocol.isInterrupted ? "Interrupted" : "Exited" }))
      }
      const end = { status, survived, verdict: this.verdict, isAsked: this.phase !== "Running", isActive, words }
      return RunEnd.outcomeOf({ ...end, isUp: protocol.isUp }, () => protocol.birth(status, this.attempt.said))
    }
  )

  private get run(): Run {
    return {
      runId: this.options.spec.runId,
      events: Stream.fromQueue(this.queue),
      send: this.send,
      answer: this.answer,
      cancelCall: this.cancelCall,
      choose: ({ mode, model }) =>
        Effect.andThen(
          model === null ? Effect.void : this.choose("model", model),
          mode === null ? Effect.void : this.choose("mode", mode)
        ),
      keep: (point, heard) => Checkpoint.keep(this.attempt.program, point, heard),
      outlives: () => this.attempt.program.isKept,
      interruptTurn: this.interruptTurn,
      endBegun: (ms) => this.attempt.program.endBegun(ms),
      end: this.stop,
      kill: Effect.suspend(() => this.attempt.program.kill)
    }
  }
}

export const make = Effect.fnUntraced(function* <N extends Note>(
  options: Options<N>
): Effect.fn.Return<Run, BackendError, Context> {
  const scope = yield* Effect.scope
  const queue = yield* Queue.bounded<RunEvent, Cause.Done>(CAPACITY)
  // registered first, so that it runs last when the scope closes: a remaining reader then sees the end
  yield* Effect.addFinalizer(() => Queue.end(queue))
  const timer = yield* FiberHandle.make()
  const grace = yield* FiberHandle.make()
  const attempt = yield* attemptOf(options, 1)
  return yield* new LineRun(options, { attempt, queue, timer, grace, scope }).start
})
