/**
 * ModelCalls: the tool calls of one answer, from the approval requests to the results.
 *
 * Guarantees: all calls are emitted before the first call asks for an approval. An invalid call fails without asking.
 * Every other call asks, and does not run before it is allowed. Consecutive parallel calls run together (at most eight
 * at a time). Each other call runs alone, in the order of the answer. Every emitted call gets exactly one result, even
 * if its tool fails. After an interruption, the results are returned when all running calls have ended.
 */
import { Cause, Deferred, Duration, Effect, Semaphore } from "effect"
import { type Decision, denialOf, type RunEvent } from "../runs/Backend.ts"
import type { CallPart, CallResult } from "./Provider.ts"
import type { Tool, ToolOutcome } from "./Tool.ts"

const TOGETHER = 8

/** A call with its tool, or with an error message that the model receives. */
export type Planned = { readonly part: CallPart } & (
  | { readonly tool: Tool; readonly wrong?: undefined }
  | { readonly wrong: string }
)

type OpenCall = Planned & {
  readonly decision: Deferred.Deferred<Decision>
  readonly cancelled: Deferred.Deferred<void>
  readonly group: Group
  outcome: ToolOutcome | undefined
}

/** Calls that run at the same time. The next group waits until all of them have ended. */
interface Group {
  readonly ready: Deferred.Deferred<void>
  left: number
}

/**
 * Finds the tool for a call and checks the call's input. `cut`: true if the answer ended in the middle of this call.
 */
export const plan = (part: CallPart, tools: ReadonlyMap<string, Tool>, cut: boolean): Planned => {
  const tool = tools.get(part.name)
  if (cut) {
    const wrong =
      "The answer reached its longest allowed length within this call, which was not run: do it in smaller pieces."
    return { part, wrong }
  }
  if (tool === undefined)
    return { part, wrong: `There is no tool "${part.name}". There are: ${[...tools.keys()].join(", ")}` }
  if (part.invalid !== undefined)
    return { part, wrong: `The arguments are no JSON object; nothing was run. They were: ${part.invalid}` }
  const wrong = tool.wrong?.(part.input)
  return wrong === undefined ? { part, tool } : { part, wrong }
}

const callOf = (call: Planned): RunEvent => ({
  _tag: "ToolCall",
  callId: call.part.id,
  tool: call.part.name,
  arguments: call.part.invalid ?? call.part.input,
  readOnly: call.wrong !== undefined || call.tool.readOnly,
  ...(call.wrong === undefined && call.tool.voice === true ? { voice: true } : {})
})

const questionOf = (call: Planned): ReadonlyArray<RunEvent> => {
  if (call.wrong !== undefined) return []
  const { asksAlways, name, readOnly } = call.tool
  const reason = asksAlways ?? (readOnly ? `${name} has no side effects` : `${name} may change things`)
  return [{ _tag: "ApprovalRequested", callId: call.part.id, always: asksAlways !== undefined, reason }]
}

const CANCELLED: ToolOutcome = { status: "cancelled", output: "The call was cancelled; what it had done stays done." }

/** Groups consecutive calls that can run in parallel. */
const opened = (calls: ReadonlyArray<Planned>): ReadonlyArray<OpenCall> => {
  let group: Group | undefined
  let together = false
  return calls.map((call) => {
    const beside = call.wrong !== undefined || call.tool.parallel
    if (group === undefined || !together || !beside) group = { ready: Deferred.makeUnsafe(), left: 0 }
    together = beside
    group.left++
    return {
      ...call,
      decision: Deferred.makeUnsafe<Decision>(),
      cancelled: Deferred.makeUnsafe<void>(),
      group,
      outcome: undefined
    }
  })
}

export class ModelCalls {
  private calls: ReadonlyArray<OpenCall> = []
  private readonly emit: (event: RunEvent) => Effect.Effect<void>
  private readonly interrupt: Effect.Effect<void>
  private readonly limit: Duration.Duration

  /**
   * Creates the calls of one answer. `interrupt`: ends the turn; run when the user denies a call and ends the turn with
   * it. `limit`: how long each call may run, from its own start.
   */
  constructor(
    emit: (event: RunEvent) => Effect.Effect<void>,
    interrupt: Effect.Effect<void>,
    limit: Duration.Duration = Duration.infinity
  ) {
    this.emit = emit
    this.interrupt = interrupt
    this.limit = limit
  }

  answer(callId: string, decision: Decision): Effect.Effect<void> {
    return this.of(callId, (call) => Deferred.succeed(call.decision, decision))
  }

  cancel(callId: string): Effect.Effect<void> {
    return this.of(callId, (call) => Deferred.succeed(call.cancelled, undefined))
  }

  /** Emits all calls and their approval requests, even if it is interrupted. */
  begin(planned: ReadonlyArray<Planned>): Effect.Effect<void> {
    return Effect.uninterruptible(
      Effect.suspend(() => {
        this.calls = opened(planned)
        const events = [...this.calls.map(callOf), ...this.calls.flatMap(questionOf)]
        return Effect.andThen(Effect.forEach(events, this.emit, { discard: true }), this.advance)
      })
    )
  }

  /** Runs the calls that were allowed, until each has its result. After an interruption, `settle` does the rest. */
  readonly run: Effect.Effect<void> = Effect.suspend(() => {
    const room = Semaphore.makeUnsafe(TOGETHER)
    return Effect.forEach(this.calls, (call) => this.one(call, room), { concurrency: "unbounded", discard: true })
  })

  /** Returns the results of all calls. If a call has no result, it is cancelled, and the cancellation is emitted. */
  readonly settle: Effect.Effect<ReadonlyArray<CallResult>> = Effect.uninterruptible(
    Effect.suspend(() =>
      Effect.forEach(this.calls, (call) =>
        Effect.map(call.outcome === undefined ? this.end(call, CANCELLED) : Effect.void, (): CallResult => {
          const { status, output } = call.outcome ?? CANCELLED
          return { callId: call.part.id, output, error: status !== "success" }
        })
      )
    ).pipe(Effect.tap(() => Effect.sync(() => void (this.calls = []))))
  )

  private of(callId: string, act: (call: OpenCall) => Effect.Effect<unknown>): Effect.Effect<void> {
    return Effect.suspend(() => {
      const call = this.calls.find(({ part }) => part.id === callId)
      return call === undefined ? Effect.void : Effect.asVoid(act(call))
    })
  }

  /** Starts the first group of calls that has not ended. */
  private readonly advance: Effect.Effect<void> = Effect.suspend(() => {
    const next = this.calls.find(({ group }) => group.left > 0)
    return next === undefined ? Effect.void : Effect.asVoid(Deferred.succeed(next.group.ready, undefined))
  })

  private end(call: OpenCall, outcome: ToolOutcome): Effect.Effect<void> {
    return Effect.suspend(() => {
      const { status, output } = outcome
      call.outcome = outcome
      call.group.left--
      return Effect.andThen(this.emit({ _tag: "ToolResult", callId: call.part.id, status, output }), this.advance)
    })
  }

  private started(call: OpenCall & { readonly tool: Tool }): Effect.Effect<ToolOutcome> {
    const callId = call.part.id
    const progress = (stream: "stdout" | "stderr", chunk: string) =>
      this.emit({ _tag: "ToolProgress", callId, stream, chunk })
    const { limit } = this
    const { run, timesItself } = call.tool
    const running = Effect.scoped(run(call.part.input, { callId, progress, limit }))
    const output = `The call was ended after ${Duration.format(limit)}; what it had done stays done.`
    const limited =
      timesItself === true
        ? running
        : Effect.timeoutOrElse(running, {
            duration: limit,
            orElse: () => Effect.succeed<ToolOutcome>({ status: "timeout", output })
          })
    return this.emit({ _tag: "ToolStarted", callId }).pipe(
      Effect.andThen(limited),
      Effect.catchDefect((defect) =>
        Effect.succeed<ToolOutcome>({
          status: "error",
          output: `The tool itself failed: ${Cause.pretty(Cause.die(defect)).slice(0, 500)}`
        })
      )
    )
  }

  private one(call: OpenCall, room: Semaphore.Semaphore): Effect.Effect<void> {
    if (call.wrong !== undefined) return Effect.uninterruptible(this.end(call, { status: "error", output: call.wrong }))
    let breaks = false
    const allowed = Effect.andThen(Deferred.await(call.group.ready), room.withPermits(1)(this.started(call)))
    const work = Effect.flatMap(Deferred.await(call.decision), (decision): Effect.Effect<ToolOutcome> => {
      if (decision.behavior === "allow") return allowed
      breaks = decision.interrupt === true
      return Effect.succeed({ status: "denied", output: denialOf(decision.message) })
    })
    // when the result is known, it is emitted even if the fiber is interrupted
    return Effect.uninterruptibleMask((restore) =>
      restore(Effect.raceFirst(work, Effect.as(Deferred.await(call.cancelled), CANCELLED))).pipe(
        Effect.flatMap((outcome) => this.end(call, outcome)),
        Effect.andThen(Effect.suspend(() => (breaks ? this.interrupt : Effect.void)))
      )
    )
  }
}
