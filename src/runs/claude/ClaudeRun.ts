/**
 * ClaudeRun: one run of Claude Code: its processes and their timeouts. ClaudeStream handles the records.
 *
 * Guarantees: a slow reader of the events slows the CLI down, and a CLI that does not read does not block the daemon.
 * If a session to resume no longer exists, the same run begins a new one. A session that another process has open is
 * not written to. The run ends if the CLI is silent for too long in a turn, or if a turn ends with an error. Each step
 * of ending a run has a timeout: the turn, the end of the input, SIGTERM, SIGKILL. `Exited` is the last event, sent
 * when all processes of the run have ended. Its outcome depends on the records and requests, not only on the exit code.
 */
import {
  type Cause,
  Clock,
  Deferred,
  Duration,
  Effect,
  Fiber,
  FiberHandle,
  Queue,
  Random,
  Scope,
  Semaphore,
  Stream
} from "effect"
import * as Monotonic from "../../core/supervision/Monotonic.ts"
import type { ClaudeBackend } from "../../config/BackendConfig.ts"
import type { Outcome } from "../Outcome.ts"
import { BackendError, type Decision, type Run, type RunEvent, type RunSpec, type TurnInput } from "../Backend.ts"
import * as FileContents from "../FileContents.ts"
import type { Session } from "./ClaudeCommand.ts"
import * as ClaudeFault from "./ClaudeFault.ts"
import { type ClaudeRecord, parse } from "./ClaudeRecord.ts"
import { ClaudeHistory } from "./ClaudeHistory.ts"
import { ClaudeStream, type KnownStream, type Note, type Wait } from "./ClaudeStream.ts"
import { CONTINUED, type Line } from "../process/LineSplitter.ts"
import type { ProcessTree } from "../process/ProcessTree.ts"
import type { Reaper } from "../process/Reaper.ts"
import * as Checkpoint from "../process/Checkpoint.ts"
import * as RunProcess from "../process/RunProcess.ts"

export interface Options {
  readonly config: ClaudeBackend
  readonly spec: RunSpec
  readonly command: (session: Session) => Effect.Effect<RunProcess.RunProcessSpec, BackendError>
  readonly read: FileContents.Reader
  /** Returns the pid of another process that has the session open; undefined if there is none. */
  readonly holder: (sessionId: string, own?: number) => Effect.Effect<number | undefined>
}

type Context = Scope.Scope | ProcessTree | Reaper

/**
 * A process of the run. If the first process cannot find the session that it should resume, the run starts a second
 * one.
 */
interface Attempt {
  readonly session: string
  readonly program: RunProcess.RunProcess
  readonly stream: ClaudeStream
  /** Number of the process in its run, starting with 1. */
  readonly count: number
  /** Lines for the process's input, in order, with their notes; null closes the input. */
  readonly input: Queue.Queue<readonly [line: string, note: string] | null>
  /** Notes of an earlier daemon, until all of them have been replayed. */
  history: ClaudeHistory | undefined
  /** Number of output bytes up to the end of the last record that was handled. */
  taken: number
  /** Number of bytes of standard error that have been handled, up to the end of a line. */
  errors: number
  /** Number of inputs that were written to the process. */
  given: number
  /** The last lines that the process wrote to standard error. */
  said: string
}

/** State of a process between two turns. Stored with a checkpoint. */
interface Rest {
  readonly session: string
  readonly said: string
  readonly stream: KnownStream
}

/** Maximum number of unread events. If the queue is full, the CLI's pipe fills up and the CLI waits. */
const CAPACITY = 256
/** Maximum number of lines (inputs, answers, interrupts) that wait until the CLI reads them. */
const INPUTS = 256
/** Maximum length of a record, characters. Large, because a tool's result can contain whole images. */
const MAX_RECORD = 8 * 1024 * 1024
const MAX_LINE = 16_384
const MAX_SAID = 4_096
/** Maximum number of invalid lines that are reported. */
const NOISES = 10
/** How long the CLI may take to begin its report after its last subagent has ended. */
const REPORT: Duration.Duration = Duration.seconds(5)
/** Timeout for the CLI's answer to a request for another model or mode. */
const CHOICE = "15 seconds"
/** How long the CLI may take to exit after its input is closed. */
const END_GRACE: Duration.Duration = Duration.seconds(3)

const refused = (message: string, remedy: string) => new BackendError({ message, remedy, fatal: false })

const uuid: Effect.Effect<string> = Effect.gen(function* () {
  let digits = ""
  for (let index = 0; index < 31; index++)
    digits += (yield* Random.nextIntBetween(0, 16, { halfOpen: true })).toString(16)
  const at = (from: number, to: number) => digits.slice(from, to)
  const variant = "89ab"[Number.parseInt(digits[30]!, 16) % 4]
  return `${at(0, 8)}-${at(8, 12)}-4${at(12, 15)}-${variant}${at(15, 18)}-${at(18, 30)}`
})

/**
 * Converts files to the form of the model's API, which Claude Code passes on unchanged. The name of each file comes
 * before it.
 */
const blocksOf = ({ found, gone }: FileContents.Contents): ReadonlyArray<ClaudeRecord> => [
  ...found.flatMap((content): ReadonlyArray<ClaudeRecord> => {
    const name = { type: "text", text: `${content.label}:` }
    const { type } = content
    if (FileContents.isText(content)) {
      const source = { type: "text", media_type: type, data: FileContents.textOf(content) }
      return [name, { type: "document", title: content.label, source }]
    }
    const source = { type: "base64", media_type: type, data: FileContents.base64Of(content) }
    return [name, { type: FileContents.isImage(content) ? "image" : "document", source }]
  }),
  ...gone.map((text) => ({ type: "text", text }))
]

interface Parts {
  readonly attempt: Attempt
  readonly queue: Queue.Queue<RunEvent, Cause.Done>
  readonly timer: FiberHandle.FiberHandle
  readonly scope: Scope.Scope
}

const attemptOf = Effect.fnUntraced(function* ({ command, spec }: Options, session: Session, count: number) {
  const how = yield* command(session)
  const program = yield* RunProcess.make({ ...how, count, keeps: true, takesUp: spec.adopt !== undefined })
  const input = yield* Queue.dropping<readonly [string, string] | null>(INPUTS)
  const { before } = program
  const { err = 0, out = 0 } = before?.point ?? {}
  const { state } = Checkpoint.of<Rest>(program) ?? {}
  const stream = new ClaudeStream(program.pid, Object.keys(spec.mcp), state?.stream)
  const history = before === undefined ? undefined : new ClaudeHistory(before, stream)
  const attempt: Attempt = {
    session: state?.session ?? history?.session ?? session.id,
    program,
    stream,
    count,
    input,
    history,
    taken: out,
    errors: err,
    given: before?.seq ?? 0,
    said: state?.said ?? ""
  }
  return attempt
})

/** Chooses the session of the run: its last conversation, or a copy if another process has that conversation open. */
const sessionOf = Effect.fnUntraced(function* ({ spec: { resume } }: Options, holder: number | undefined) {
  const id = yield* uuid
  const session: Session =
    resume === undefined
      ? { _tag: "New", id }
      : resume.fork || holder !== undefined
        ? { _tag: "Forked", id, from: resume.sessionId }
        : { _tag: "Resumed", id: resume.sessionId }
  return session
})

class ClaudeRun {
  private readonly options: Options
  private readonly queue: Queue.Queue<RunEvent, Cause.Done>
  private readonly timer: FiberHandle.FiberHandle
  private readonly scope: Scope.Scope
  /** Makes sure that each event is emitted together with its state change, and that events do not overlap. */
  private readonly order = Semaphore.makeUnsafe(1)
  private attempt: Attempt
  private ending = false
  private idle = Deferred.makeUnsafe<void>()
  /** The run's outcome, if the run does not end as requested. */
  private verdict: Outcome | undefined = undefined
  private waits: Wait | undefined = undefined
  /** When the process last sent output, ms on the monotonic clock. */
  private heardAt = 0
  private noises = 0

  constructor(options: Options, { attempt, queue, scope, timer }: Parts) {
    this.options = options
    this.attempt = attempt
    this.queue = queue
    this.timer = timer
    this.scope = scope
  }

  readonly start = Effect.fnUntraced({ self: this }, function* (this: ClaudeRun, holder: number | undefined) {
    const pumps = yield* this.begin
    if (holder !== undefined) {
      const text = `its session is open in process ${holder}: it continues with a copy`
      yield* this.tell(() => [{ _tag: "Notice", text }])
    }
    // if `life` fails, the queue still ends, so that the reader does not wait forever
    yield* Effect.forkScoped(Effect.ensuring(this.life(pumps), Queue.end(this.queue)))
    return this.run
  })

  /** Starts to read the process's output, and sends the first turn to the process. */
  private readonly begin = Effect.gen({ self: this }, function* () {
    const { spec } = this.options
    const { input, program } = this.attempt
    const write = Effect.flatMap(Queue.take(input), (input) =>
      input === null ? program.closeInput : program.write(...input)
    )
    const isNew = this.attempt.history === undefined
    yield* Effect.forkScoped(Effect.forever(write))
    const pumps = [
      yield* Effect.forkScoped(this.records(this.attempt)),
      yield* Effect.forkScoped(this.errors(this.attempt))
    ]
    if (isNew) yield* this.give({ turnId: spec.turnId, text: spec.prompt }, yield* this.options.read(spec.files))
    return pumps
  })

  private tell(make: () => ReadonlyArray<RunEvent>): Effect.Effect<void> {
    return this.order.withPermit(Effect.suspend(() => Effect.asVoid(Queue.offerAll(this.queue, make()))))
  }

  /** Called after the stream's state has changed: wakes the code that waits for it, and sets the timeout. */
  private readonly turned: Effect.Effect<void> = Effect.suspend(() => {
    const { stream } = this.attempt
    if (!stream.active) Deferred.doneUnsafe(this.idle, Effect.void)
    else if (Deferred.isDoneUnsafe(this.idle)) this.idle = Deferred.makeUnsafe<void>()
    const watch = this.watch
    if (stream.fault === undefined || this.verdict !== undefined) return watch
    this.verdict = stream.fault.outcome
    return Effect.andThen(watch, this.stop)
  })

  private write(record: ClaudeRecord | undefined, note: Note): void {
    if (record === undefined) return
    const { attempt } = this
    const line = `${JSON.stringify(record)}\n`
    if (Queue.offerUnsafe(attempt.input, [line, ClaudeHistory.noteOf(note, attempt.taken)])) attempt.given++
  }

  private records(attempt: Attempt): Effect.Effect<void> {
    const { count, program, stream } = attempt
    const noise = this.noise()
    const eventsOf = (line: string, now: number): ReadonlyArray<RunEvent> => {
      const record = parse(line)
      if (record === undefined) return noise(line)
      const { events, says } = stream.take(record, now)
      for (const one of says) {
        if (attempt.history === undefined) this.write(one, { say: "reply" })
        else attempt.history.says(one)
      }
      return events
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
      this.tell(() => [...Checkpoint.again(program, stream.session), ...this.caughtUp(attempt, attempt.taken)]),
      this.turned
    )
    return Effect.andThen(first, RunProcess.drainPlaced(program.stdout, program.ended, MAX_RECORD, take))
  }

  /** Emits a checkpoint if the process is idle and has written much output since the last checkpoint. */
  private rests({ errors: err, given: seq, history, program, said, session, stream, taken: out }: Attempt) {
    const known = history === undefined && program.isDue(out, err) ? stream.known : undefined
    if (known === undefined) return []
    const state: Rest = { session, said, stream: known }
    const reached: RunEvent = { _tag: "Reached", point: { out, err, seq, state } }
    return [reached]
  }

  /** Starts the normal handling of output, if everything that an earlier daemon had read has been replayed. */
  private caughtUp(attempt: Attempt, size: number): ReadonlyArray<RunEvent> {
    const { history, stream } = attempt
    if (history === undefined || size < history.size) return []
    const last = history.upTo(Number.POSITIVE_INFINITY)
    attempt.history = undefined
    for (const one of history.unsaid) this.write(one, { say: "reply" })
    return [...last, { _tag: "Resumed", given: stream.turnId }]
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
      return [{ _tag: "Notice", text: `claude wrote ${what}: ${JSON.stringify(line.slice(0, 200))}${last}` }]
    }
  }

  private errors(attempt: Attempt): Effect.Effect<void> {
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

  /** Sets the timeout for the CLI's next step. If another step is expected than before, the timeout starts again. */
  private readonly watch: Effect.Effect<void> = Effect.suspend(() => {
    const { history, stream } = this.attempt
    const { waits } = stream
    if (waits === this.waits || history !== undefined) return Effect.void
    this.waits = waits
    if (waits === undefined) return FiberHandle.clear(this.timer)
    const { silence, startTimeout } = this.options.config
    const limit = { ready: startTimeout, answer: silence, report: REPORT }[waits]
    const lapse = Effect.gen({ self: this }, function* () {
      this.heardAt = yield* Monotonic.now
      const begun = this.heardAt
      for (;;) {
        // until the CLI is ready, output does not extend the timeout
        const since = waits === "ready" ? begun : this.heardAt
        const rest = since + Duration.toMillis(limit) - (yield* Monotonic.now)
        if (rest <= 0) break
        yield* Effect.sleep(rest)
      }
      // needs its own fiber, because its actions may interrupt the current one
      yield* Effect.forkIn(this.lapsed(waits, limit), this.scope)
    })
    return Effect.asVoid(FiberHandle.run(this.timer, lapse))
  })

  private lapsed(waits: Wait, limit: Duration.Duration): Effect.Effect<void> {
    const { stream } = this.attempt
    if (stream.waits !== waits) return Effect.void
    if (waits === "report")
      return Effect.andThen(
        this.tell(() => stream.settle()),
        this.turned
      )
    const time = Duration.format(limit)
    const words = waits === "ready" ? `claude was not ready within ${time}` : `claude sent nothing for ${time}`
    const fault = ClaudeFault.error("silence", words, true)
    this.verdict ??= fault.outcome
    return this.tell(() => stream.end({ _tag: "Failed", fault })).pipe(
      Effect.andThen(this.turned),
      Effect.andThen(this.stop)
    )
  }

  private give({ text, turnId }: TurnInput, files: FileContents.Contents): Effect.Effect<void> {
    return Effect.flatMap(uuid, (id) => {
      this.idle = Deferred.makeUnsafe<void>()
      const { session, stream } = this.attempt
      this.write(stream.give(turnId, id, text, blocksOf(files)), { say: "turn", turnId, uuid: id, session })
      return this.watch
    })
  }

  private readonly send = (input: TurnInput): Effect.Effect<void, BackendError> =>
    Effect.flatMap(this.options.read(input.files), (files) => this.sendWith(input, files))

  private sendWith(input: TurnInput, files: FileContents.Contents): Effect.Effect<void, BackendError> {
    return Effect.flatMap(this.options.holder(this.attempt.session, this.attempt.program.pid), (holder) => {
      const { stream } = this.attempt
      if (holder !== undefined) {
        const words = `its session is open in process ${holder}, too`
        return Effect.fail(refused(words, "the next run continues with a copy"))
      }
      if (this.ending || !stream.isUp)
        return Effect.fail(refused("the run accepts no turn now", "the next run receives it"))
      if (stream.given)
        return Effect.fail(refused("a turn is in progress", "send it when that turn has ended, or interrupt that turn"))
      return this.give(input, files)
    })
  }

  /**
   * Changes the model or mode. Completes when Claude Code has answered: it asks its provider whether the model exists.
   */
  private choose(kind: "model" | "mode", name: string): Effect.Effect<void, BackendError> {
    return Effect.callback<void, BackendError>((resume) => {
      const record = this.attempt.stream.choose(kind, name, (refusal) =>
        resume(
          refusal === undefined
            ? Effect.void
            : Effect.fail(refused(`Claude Code refused the ${kind} "${name}": ${refusal}`, `give another ${kind}`))
        )
      )
      this.write(record, { say: "request" })
    }).pipe(
      Effect.timeoutOrElse({
        duration: CHOICE,
        orElse: () =>
          Effect.fail(
            refused(`Claude Code has not answered within ${CHOICE}`, "check what it is doing, then try again")
          )
      })
    )
  }

  private readonly interruptTurn: Effect.Effect<void> = Effect.sync(() =>
    this.write(this.attempt.stream.interrupt(), { say: "interrupt" })
  )

  private readonly answer = (callId: string, decision: Decision): Effect.Effect<void> =>
    Effect.suspend(() => {
      const { behavior } = decision
      this.write(this.attempt.stream.answer(callId, decision), { say: "answer", callId, behavior })
      return this.watch
    })

  /**
   * Stops waiting for a call, because the CLI cannot cancel a single call. From then on, the silence timeout applies.
   */
  private readonly cancelCall = (callId: string): Effect.Effect<void> =>
    Effect.suspend(() => {
      this.attempt.stream.forget(callId)
      return this.watch
    })

  private readonly stop: Effect.Effect<void> = Effect.suspend(() => {
    if (this.ending) return Effect.void
    this.ending = true
    const { input, program, stream } = this.attempt
    const idle = Effect.suspend(() =>
      stream.active && stream.isUp
        ? Effect.andThen(
            this.interruptTurn,
            Effect.timeoutOption(Deferred.await(this.idle), this.options.config.killGrace)
          )
        : Effect.void
    )
    // when its input ends, the CLI still finishes its work, so only an idle CLI is left to exit by itself
    const leave = Effect.suspend(() =>
      stream.idle
        ? Effect.andThen(
            Queue.offer(input, null),
            Effect.timeoutOption(program.exited, Duration.min(END_GRACE, this.options.config.killGrace))
          )
        : Effect.void
    )
    const gently = idle.pipe(Effect.andThen(leave), Effect.andThen(program.interrupt))
    return Effect.asVoid(Effect.forkIn(gently, this.scope))
  })

  /** Waits until all processes of the run have ended, and emits `Exited`. */
  private readonly life = Effect.fnUntraced(
    { self: this },
    function* (this: ClaudeRun, pumps: ReadonlyArray<Fiber.Fiber<unknown, unknown>>) {
      let outcome = yield* this.over(pumps)
      if (outcome === "gone") {
        const text = "its last conversation no longer exists: a new one begins, without memory of the old one"
        yield* this.tell(() => [{ _tag: "MemoryLost", text, place: { out: [2, 0, 0] } }])
        outcome = yield* attemptOf(this.options, { _tag: "New", id: yield* uuid }, 2).pipe(
          Effect.flatMap((again) => {
            this.attempt = again
            return Effect.flatMap(this.begin, (pumps) => this.over(pumps))
          }),
          Effect.catchTag("BackendError", ({ message }) => Effect.succeed<Outcome>({ _tag: "Error", detail: message }))
        )
      }
      const last: Outcome = outcome === "gone" ? { _tag: "Error", detail: "claude found no conversation" } : outcome
      yield* Queue.offer(this.queue, { _tag: "Exited", outcome: last })
    }
  )

  /** Waits until the process has ended, and ends an open turn. */
  private readonly over = Effect.fnUntraced(
    { self: this },
    function* (
      this: ClaudeRun,
      pumps: ReadonlyArray<Fiber.Fiber<unknown, unknown>>
    ): Effect.fn.Return<Outcome | "gone"> {
      const { attempt } = this
      const { program, stream } = attempt
      const status = yield* program.exited
      const survived = yield* RunProcess.survival(program)
      yield* Fiber.awaitAll(pumps)
      yield* FiberHandle.clear(this.timer)
      this.waits = undefined
      const { active, interrupted } = stream
      const what = ClaudeFault.exitWords(status, attempt.said)
      const fault = ClaudeFault.error("exit", what, true)
      if (active) {
        yield* this.tell(() => stream.end(interrupted ? { _tag: "Interrupted" } : { _tag: "Failed", fault }))
      }
      if (survived !== undefined) return survived
      if (this.verdict !== undefined) return this.verdict
      if (this.ending && !active) return { _tag: "Success" }
      if (!stream.isUp)
        return this.ending ? { _tag: "Success" } : ClaudeFault.birthOf(status, `${attempt.said}\n${stream.complaint}`)
      return !active && status.code === 0 ? { _tag: "Success" } : fault.outcome
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

export const make = Effect.fnUntraced(function* (options: Options): Effect.fn.Return<Run, BackendError, Context> {
  const scope = yield* Effect.scope
  const queue = yield* Queue.bounded<RunEvent, Cause.Done>(CAPACITY)
  // registered first, so that it runs last when the scope closes: a remaining reader then sees the end
  yield* Effect.addFinalizer(() => Queue.end(queue))
  const timer = yield* FiberHandle.make()
  const { resume } = options.spec
  const isNew = options.spec.adopt === undefined
  const holder = resume === undefined || !isNew ? undefined : yield* options.holder(resume.sessionId)
  const attempt = yield* attemptOf(options, yield* sessionOf(options, holder), 1)
  return yield* new ClaudeRun(options, { attempt, queue, timer, scope }).start(holder)
})
