/**
 * LineRun: one run of a program that exchanges lines with agentd over its standard input and output. A LineProtocol
 * handles the lines, and a RunLifecycle the timeouts and the end.
 *
 * Guarantees: a slow reader of the events slows the program down, and a program that does not read does not block the
 * daemon. If a session to resume no longer exists, the same run begins a new one. The run ends if the program is silent
 * for too long in a turn, or if a turn ends with a fault. `Exited` is the last event, sent when all processes of the run
 * have ended.
 */
import { type Cause, Clock, Effect, Fiber, type FileSystem, Queue, Random, Scope, Semaphore } from "effect"
import { BackendError, type Decision, type Run, type RunEvent, type RunSpec, type TurnInput } from "../Backend.ts"
import * as Fault from "../Fault.ts"
import * as FileContents from "../FileContents.ts"
import type { Outcome } from "../Outcome.ts"
import * as Checkpoint from "../process/Checkpoint.ts"
import * as InputRecords from "../process/InputRecords.ts"
import type { Line } from "../../config/LineSplitter.ts"
import type { ProcessTree } from "../process/ProcessTree.ts"
import type { Reaper } from "../process/Reaper.ts"
import * as RunProcess from "../process/RunProcess.ts"
import { ErrorOutput } from "./ErrorOutput.ts"
import { LineHistory } from "./LineHistory.ts"
import type { LineProtocol, Note, Said, Wait } from "./LineProtocol.ts"
import { noise } from "./Noise.ts"
import * as RunLifecycle from "./RunLifecycle.ts"
import type { Work } from "./RunPhases.ts"

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

export interface Options<N extends Note> extends RunLifecycle.Limits {
  /** Name of the program in messages: `claude`. */
  readonly name: string
  /** Name of the product in messages: `Claude Code`. */
  readonly title: string
  readonly spec: RunSpec
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
  readonly errors: ErrorOutput
  /** Number of inputs that were written to the process. */
  given: number
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
/** Timeout for the answer to a request for another model or mode. */
const CHOICE = "15 seconds"

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
  const attempt: Attempt<N> = {
    ...opened,
    count,
    input,
    history: before === undefined ? undefined : new LineHistory(before, opened.protocol),
    taken: before?.point?.out ?? 0,
    errors: new ErrorOutput(opened.program, Checkpoint.of<Rest>(opened.program)?.state.said),
    given: before?.seq ?? 0
  }
  return attempt
})

interface Parts<N extends Note> {
  readonly attempt: Attempt<N>
  readonly queue: Queue.Queue<RunEvent, Cause.Done>
  readonly timers: RunLifecycle.Timers
}

class LineRun<N extends Note> implements RunLifecycle.Driver {
  readonly name: string
  private readonly options: Options<N>
  private readonly queue: Queue.Queue<RunEvent, Cause.Done>
  /** Makes sure that each event is emitted together with its state change, and that events do not overlap. */
  private readonly order = Semaphore.makeUnsafe(1)
  private readonly noise: (line: string) => string | undefined
  private attempt: Attempt<N>
  private readonly lifecycle: RunLifecycle.RunLifecycle

  constructor(options: Options<N>, { attempt, queue, timers }: Parts<N>) {
    this.name = options.name
    this.options = options
    this.attempt = attempt
    this.queue = queue
    this.noise = noise(`${options.name} wrote`, "record")
    this.lifecycle = new RunLifecycle.RunLifecycle(this, options, timers)
  }

  get program(): RunProcess.RunProcess {
    return this.attempt.program
  }

  get work(): Work {
    const { isIdle, isUp, turnId } = this.attempt.protocol
    if (turnId !== undefined && isUp) return "turn"
    return isIdle ? "none" : "other"
  }

  get waits(): Wait | undefined {
    const { history, protocol } = this.attempt
    return history === undefined ? protocol.waits : undefined
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
    const { count, errors, input, program, protocol } = attempt
    const write = Effect.flatMap(Queue.take(input), (input) =>
      input === null ? program.closeInput : program.write(...input)
    )
    const isNew = attempt.history === undefined
    yield* Effect.forkScoped(Effect.forever(write))
    const pumps = [
      yield* Effect.forkScoped(this.lines(attempt)),
      yield* Effect.forkScoped(errors.read(program, count, (make) => this.tell(make)))
    ]
    if (!isNew) return pumps
    this.write(protocol.opening())
    yield* this.give({ turnId: spec.turnId, text: spec.prompt }, yield* read(spec.files))
    return pumps
  })

  private tell(make: () => ReadonlyArray<RunEvent>): Effect.Effect<void> {
    return this.order.withPermit(Effect.suspend(() => Effect.asVoid(Queue.offerAll(this.queue, make()))))
  }

  /** Called after the protocol's state has changed. A fault ends the run. */
  private readonly turned: Effect.Effect<void> = Effect.suspend(() => {
    const { fault } = this.attempt.protocol
    const { changed, fail, verdict } = this.lifecycle
    return fault === undefined || verdict !== undefined ? changed : Effect.andThen(changed, fail(fault.outcome))
  })

  private write(lines: ReadonlyArray<Said<N>>): void {
    const { attempt } = this
    for (const { note, text } of lines)
      if (Queue.offerUnsafe(attempt.input, [`${text}\n`, InputRecords.noteOf(note, attempt.taken)])) attempt.given++
  }

  private lines(attempt: Attempt<N>): Effect.Effect<void> {
    const { count, program, protocol } = attempt
    const eventsOf = (line: string, now: number): ReadonlyArray<RunEvent> => {
      const heard = protocol.take(line, now)
      if (heard === undefined) {
        const text = this.noise(line)
        return text === undefined ? [] : [{ _tag: "Notice", text }]
      }
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
      Effect.flatMap(Effect.andThen(this.lifecycle.heard, Clock.currentTimeMillis), (now) => {
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
  private rests({ errors: { said, taken: err }, given: seq, history, program, protocol, taken: out }: Attempt<N>) {
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

  readonly lapsed = (waits: Wait, fault: Fault.Fault): Effect.Effect<void> => {
    const { protocol } = this.attempt
    if (waits === "report")
      return Effect.andThen(
        this.tell(() => protocol.settle()),
        this.turned
      )
    const { fail } = this.lifecycle
    return Effect.andThen(
      this.tell(() => protocol.end({ _tag: "Failed", fault })),
      fail(fault.outcome)
    )
  }

  private readonly give = Effect.fnUntraced(
    { self: this },
    function* (this: LineRun<N>, { text, turnId }: TurnInput, files: FileContents.Contents) {
      const paths = yield* this.options.folder?.put(files.found) ?? Effect.succeed([])
      const id = yield* uuid
      this.write(this.attempt.protocol.give({ turnId, uuid: id, text, files, paths }))
      yield* this.lifecycle.watch
    }
  )

  private readonly send = Effect.fnUntraced(
    { self: this },
    function* (this: LineRun<N>, input: TurnInput): Effect.fn.Return<void, BackendError> {
      const files = yield* this.options.read(input.files)
      const { admit = Effect.void, protocol } = this.attempt
      yield* admit
      if (this.lifecycle.isEnding || !protocol.isUp)
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

  readonly interruptTurn: Effect.Effect<void> = Effect.sync(() => this.write(this.attempt.protocol.interrupt()))

  readonly closeInput: Effect.Effect<void> = Effect.suspend(() => Effect.asVoid(Queue.offer(this.attempt.input, null)))

  private readonly answer = (callId: string, decision: Decision): Effect.Effect<void> =>
    Effect.suspend(() => {
      this.write(this.attempt.protocol.answer(callId, decision))
      return this.lifecycle.watch
    })

  /** Stops waiting for a call, because no program can cancel a single call. From then on, the silence timeout applies. */
  private readonly cancelCall = (callId: string): Effect.Effect<void> =>
    Effect.suspend(() => {
      this.attempt.protocol.forget(callId)
      return this.lifecycle.watch
    })

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
      const { errors, protocol } = this.attempt
      const ended = yield* this.lifecycle.ended(pumps)
      const { isUp, turnId } = protocol
      const isActive = turnId !== undefined
      if (isActive) yield* this.tell(() => protocol.end({ _tag: protocol.isInterrupted ? "Interrupted" : "Exited" }))
      const { said } = errors
      const { verdict } = this.lifecycle
      const birth = () => protocol.birth(ended.status, said)
      return this.lifecycle.outcomeOf(ended, { isActive, isUp, verdict, said, birth })
    }
  )

  private get run(): Run {
    return {
      ...this.lifecycle.run(this.queue),
      runId: this.options.spec.runId,
      send: this.send,
      answer: this.answer,
      cancelCall: this.cancelCall,
      choose: ({ mode, model }) =>
        Effect.andThen(
          model === null ? Effect.void : this.choose("model", model),
          mode === null ? Effect.void : this.choose("mode", mode)
        ),
      interruptTurn: this.interruptTurn
    }
  }
}

export const make = Effect.fnUntraced(function* <N extends Note>(
  options: Options<N>
): Effect.fn.Return<Run, BackendError, Context> {
  const queue = yield* Queue.bounded<RunEvent, Cause.Done>(CAPACITY)
  // registered first, so that it runs last when the scope closes: a remaining reader then sees the end
  yield* Effect.addFinalizer(() => Queue.end(queue))
  const timers = yield* RunLifecycle.timers
  const attempt = yield* attemptOf(options, 1)
  return yield* new LineRun(options, { attempt, queue, timers }).start
})
