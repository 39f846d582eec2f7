/**
 * ScriptedTurns: a run that plays scripted turns, for tests and demos: deltas, tool calls with or without approval,
 * errors, silence. It implements the contract of a backend with turns: only one turn is active, each turn ends once,
 * and an interrupt ends the turn.
 */
import { type Cause, Deferred, type Duration, Effect, Fiber, Queue, Scope, Stream } from "effect"
import type { Outcome } from "./Outcome.ts"
import type { Question } from "./Question.ts"
import { BackendError, type Decision, type Run, type RunEvent, type RunSpec, type ToolStatus } from "./Backend.ts"

export type TurnStep =
  | { readonly say: string }
  | { readonly wait: Duration.Input }
  | { readonly usage: { readonly inputTokens: number; readonly outputTokens: number; readonly usd?: number } }
  /** Calls that start at the same time. A call that asks for an approval waits for the answer. */
  | { readonly calls: ReadonlyArray<ScriptedCall> }
  | { readonly notice: string }

export interface ScriptedCall {
  readonly id: string
  readonly tool: string
  readonly arguments?: unknown
  readonly readOnly?: boolean
  readonly asks?: boolean
  readonly questions?: ReadonlyArray<Question>
  /** How long the call takes. "hang": the call never ends. */
  readonly takes?: Duration.Input | "hang"
  readonly status?: ToolStatus
  readonly output?: unknown
}

export interface TurnScript {
  readonly steps?: ReadonlyArray<TurnStep>
  /** The turn's answer; by default the turn's text up to this point. */
  readonly output?: string
  /** If true, the turn continues after its last step until it is interrupted. */
  readonly hang?: boolean
  readonly error?: { readonly errorType: string; readonly message: string; readonly retry: boolean }
}

export interface Played {
  readonly inputs: ReadonlyArray<string>
  readonly answers: ReadonlyArray<readonly [callId: string, decision: Decision]>
  readonly interrupts: number
}

type Writable<T> = { -readonly [key in keyof T]: T[key] }
type Events = Queue.Queue<RunEvent, Cause.Done>

class Player {
  readonly record: Writable<Played> = { inputs: [], answers: [], interrupts: 0 }
  private readonly turns: ReadonlyArray<TurnScript>
  private readonly queue: Events
  private readonly waiting = new Map<string, Deferred.Deferred<Decision>>()
  private readonly stopped = new Map<string, Deferred.Deferred<void>>()
  private played = 0
  current: { readonly turnId: string; readonly fiber: Fiber.Fiber<void> } | undefined = undefined
  text = ""

  constructor(turns: ReadonlyArray<TurnScript>, queue: Events) {
    this.turns = turns
    this.queue = queue
  }

  tell(event: RunEvent): Effect.Effect<void> {
    return Effect.asVoid(Queue.offer(this.queue, event))
  }

  private readonly call = Effect.fnUntraced(
    { self: this },
    function* (this: Player, { asks, id: callId, output, questions, status, takes }: ScriptedCall) {
      if (asks === true) {
        const answer = Deferred.makeUnsafe<Decision>()
        this.waiting.set(callId, answer)
        const choice = questions === undefined ? {} : { questions }
        yield* this.tell({ _tag: "ApprovalRequested", callId, reason: "", ...choice })
        const decision = yield* Deferred.await(answer)
        if (decision.behavior === "deny") {
          return yield* this.tell({ _tag: "ToolResult", callId, status: "denied", output: decision.message })
        }
      }
      yield* this.tell({ _tag: "ToolStarted", callId })
      const stop = Deferred.makeUnsafe<void>()
      this.stopped.set(callId, stop)
      const work = takes === "hang" ? Effect.never : Effect.sleep(takes ?? 0)
      const isDone = yield* Effect.raceFirst(Effect.as(work, true), Effect.as(Deferred.await(stop), false))
      yield* this.tell({
        _tag: "ToolResult",
        callId,
        status: isDone ? (status ?? "success") : "cancelled",
        output: output ?? null
      })
    }
  )

  private readonly step = Effect.fnUntraced({ self: this }, function* (this: Player, step: TurnStep) {
    if ("say" in step) {
      this.text += step.say
      yield* this.tell({ _tag: "Delta", stream: "assistant", text: step.say })
    } else if ("wait" in step) yield* Effect.sleep(step.wait)
    else if ("usage" in step) yield* this.tell({ _tag: "Usage", ...step.usage })
    else if ("notice" in step) yield* this.tell({ _tag: "Notice", text: step.notice })
    else {
      for (const { arguments: input, id, readOnly, tool } of step.calls) {
        yield* this.tell({
          _tag: "ToolCall",
          callId: id,
          tool,
          arguments: input ?? {},
          readOnly: readOnly ?? false
        })
      }
      yield* Effect.forEach(step.calls, (call) => this.call(call), { concurrency: "unbounded", discard: true })
    }
  })

  private readonly turn = Effect.fnUntraced(
    { self: this },
    function* (
      this: Player,
      turnId: string,
      script: TurnScript,
      ended: (failed: TurnScript["error"]) => Effect.Effect<void>
    ) {
      yield* this.tell({ _tag: "TurnStarted", turnId })
      for (const step of script.steps ?? []) yield* this.step(step)
      if (script.hang === true) return yield* Effect.never
      this.current = undefined
      if (script.error === undefined) {
        return yield* this.tell({ _tag: "TurnCompleted", turnId, output: script.output ?? this.text })
      }
      yield* this.tell({ _tag: "TurnError", turnId, ...script.error })
      yield* ended(script.error)
    }
  )

  readonly begin = Effect.fnUntraced(
    { self: this },
    function* (
      this: Player,
      turnId: string,
      text: string,
      ended: (failed: TurnScript["error"]) => Effect.Effect<void>
    ) {
      const script = this.turns[Math.min(this.played++, this.turns.length - 1)] ?? {}
      this.record.inputs = [...this.record.inputs, text]
      this.text = ""
      const fiber = yield* Effect.forkScoped(this.turn(turnId, script, ended))
      if (fiber.pollUnsafe() === undefined) this.current = { turnId, fiber }
    }
  )

  readonly interrupt: Effect.Effect<void> = Effect.suspend(() => {
    const { current } = this
    this.record.interrupts++
    if (current === undefined) return Effect.void
    this.current = undefined
    return Effect.andThen(
      Fiber.interrupt(current.fiber),
      this.tell({ _tag: "TurnInterrupted", turnId: current.turnId, output: this.text })
    )
  })

  readonly answer = (callId: string, decision: Decision): Effect.Effect<void> => {
    this.record.answers = [...this.record.answers, [callId, decision]]
    const waiting = this.waiting.get(callId)
    return waiting === undefined ? Effect.void : Effect.asVoid(Deferred.succeed(waiting, decision))
  }

  readonly cancel = (callId: string): Effect.Effect<void> => {
    const stop = this.stopped.get(callId)
    return stop === undefined ? Effect.void : Effect.asVoid(Deferred.succeed(stop, undefined))
  }
}

const busy = new BackendError({ message: "a turn is in progress", remedy: "wait for its end", fatal: false })

/**
 * Plays the turns. `seen` is called once, with a record that is updated during the run; `gone` is called with the
 * outcome when the run ends.
 */
export const play = Effect.fnUntraced(function* (
  turns: ReadonlyArray<TurnScript>,
  spec: RunSpec,
  seen: (played: Played) => void,
  gone: (outcome: Outcome) => void
) {
  const over = yield* Deferred.make<Outcome>()
  const queue = yield* Queue.unbounded<RunEvent, Cause.Done>()
  const scope = yield* Effect.scope
  const player = new Player(turns, queue)
  seen(player.record)
  const ended = (failed: TurnScript["error"]) =>
    Effect.asVoid(
      failed === undefined
        ? Effect.void
        : Deferred.succeed(over, { _tag: "Error", detail: `${failed.errorType}: ${failed.message}` })
    )
  const begin = (turnId: string, text: string) => Scope.provide(player.begin(turnId, text, ended), scope)
  yield* player.tell({ _tag: "Started", sessionId: spec.resume?.sessionId ?? `session-${spec.runId}` })
  yield* begin(spec.turnId, spec.prompt)
  const finish = (outcome: Outcome) => Effect.asVoid(Deferred.succeed(over, outcome))
  yield* Effect.forkScoped(
    Effect.flatMap(Deferred.await(over), (outcome) => {
      gone(outcome)
      return Effect.andThen(player.tell({ _tag: "Exited", outcome }), Queue.end(queue))
    })
  )
  const run: Run = {
    runId: spec.runId,
    events: Stream.fromQueue(queue),
    send: ({ text, turnId }) =>
      Effect.suspend(() => (player.current === undefined ? begin(turnId, text) : Effect.fail(busy))),
    answer: player.answer,
    cancelCall: player.cancel,
    interruptTurn: player.interrupt,
    end: Effect.andThen(player.interrupt, finish({ _tag: "Success" })),
    kill: finish({ _tag: "Error", detail: "killed by SIGKILL" })
  }
  return run
})
