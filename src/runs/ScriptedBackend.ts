/**
 * ScriptedBackend: a backend that plays scripts, for tests and demos. It implements the whole `Backend` contract and
 * starts no process.
 *
 * Guarantees: Each start plays the next script; when there are no more, the last script is played again. Delays use the
 * Clock, so that a TestClock can drive them. The same scripts under the same clock give the same events.
 */
import { type Cause, Deferred, type Duration, Effect, Queue, Stream } from "effect"
import type { Outcome } from "./Outcome.ts"
import * as ScriptedTurns from "./ScriptedTurns.ts"
import { type Backend, BackendError, type Run, type RunEvent, type RunSpec } from "./Backend.ts"

export type Step = Exclude<RunEvent, { readonly _tag: "Exited" }> & {
  /** Delay before the step; by default none. */
  readonly after?: Duration.Input
}

export interface Script {
  /**
   * Steps, in the order in which they are played. Without a `Started` step, the run counts as failed to start when it
   * exits.
   */
  readonly steps?: ReadonlyArray<Step>
  /** Delay between the last step and the exit. */
  readonly exitAfter?: Duration.Input
  /** Outcome of the run; by default success. */
  readonly outcome?: Outcome
  /** If set, the start itself fails with this error and nothing is played. */
  readonly failStart?: { readonly message: string; readonly remedy?: string; readonly fatal?: boolean }
  /** If true, the run continues after its last step until it is ended. */
  readonly hang?: boolean
  /** If true, only `kill`, or closing the scope, ends the run early. */
  readonly ignoreInterrupt?: boolean
  /** If true, the run accepts `send`. Otherwise `send` fails. */
  readonly takesInput?: boolean
  /** Turns that the run plays; the last one is repeated. If set, the other fields are ignored. */
  readonly turns?: ReadonlyArray<ScriptedTurns.TurnScript>
}

export interface Played {
  readonly spec: RunSpec
  readonly inputs: ReadonlyArray<string>
  readonly interrupts: number
  /** How the run ended; undefined while the run is live. */
  readonly outcome: Outcome | undefined
  /** The turns that were played, for a run with turns. */
  readonly turns?: ScriptedTurns.Played
}

export interface ScriptedBackend extends Backend {
  /** Every start of a run, including failed ones, in order. */
  readonly played: () => ReadonlyArray<Played>
  readonly alive: () => number
}

const killed = (signal: "SIGTERM" | "SIGKILL"): Outcome => ({ _tag: "Error", detail: `killed by ${signal}` })

type Record = { -readonly [key in keyof Played]: Played[key] }

const play = Effect.fnUntraced(function* (script: Script, record: Record) {
  const queue = yield* Queue.unbounded<RunEvent, Cause.Done>()
  const ended = yield* Deferred.make<Outcome>()
  const steps = Effect.gen(function* () {
    for (const { after, ...event } of script.steps ?? []) {
      if (after !== undefined) yield* Effect.sleep(after)
      yield* Queue.offer(queue, event as RunEvent)
    }
    if (script.exitAfter !== undefined) yield* Effect.sleep(script.exitAfter)
    return script.hang === true ? yield* Effect.never : (script.outcome ?? { _tag: "Success" as const })
  })
  const whole = Effect.raceFirst(steps, Deferred.await(ended)).pipe(
    Effect.onInterrupt(() => Effect.sync(() => (record.outcome = killed("SIGTERM")))),
    Effect.tap((outcome: Outcome) => {
      record.outcome = outcome
      return Queue.offer(queue, { _tag: "Exited", outcome })
    }),
    Effect.ensuring(Queue.end(queue))
  )
  yield* Effect.forkScoped(whole, { startImmediately: true })

  const end = (outcome: Outcome) => Effect.asVoid(Deferred.succeed(ended, outcome))
  const refused = new BackendError({
    message: "this script takes no input",
    remedy: "give the script takesInput: true",
    fatal: false
  })
  const interrupt = Effect.suspend(() => {
    record.interrupts++
    return script.ignoreInterrupt === true ? Effect.void : end(killed("SIGTERM"))
  })
  const run: Run = {
    runId: record.spec.runId,
    events: Stream.fromQueue(queue),
    send: ({ text }) =>
      script.takesInput === true
        ? Effect.sync(() => void (record.inputs = [...record.inputs, text]))
        : Effect.fail(refused),
    answer: () => Effect.void,
    cancelCall: () => Effect.void,
    interruptTurn: interrupt,
    end: interrupt,
    kill: end(killed("SIGKILL"))
  }
  return run
})

export const make = (scripts: readonly [Script, ...ReadonlyArray<Script>]): ScriptedBackend => {
  const records: Array<Record> = []
  const start = Effect.fnUntraced(function* (spec: RunSpec) {
    const script = scripts[Math.min(records.length, scripts.length - 1)]!
    const record: Record = { spec, inputs: [], interrupts: 0, outcome: undefined }
    records.push(record)
    if (script.turns !== undefined) {
      yield* Effect.addFinalizer(() => Effect.sync(() => void (record.outcome ??= killed("SIGTERM"))))
      return yield* ScriptedTurns.play(
        script.turns,
        spec,
        (turns) => (record.turns = turns),
        (outcome) => (record.outcome = outcome)
      )
    }
    if (script.failStart === undefined) return yield* play(script, record)
    const { message, remedy = "correct the script", fatal = false } = script.failStart
    record.outcome = fatal ? { _tag: "Fatal", detail: message, remedy } : { _tag: "Error", detail: message }
    return yield* new BackendError({ message, remedy, fatal })
  })
  return {
    name: "scripted",
    turns: scripts[0].turns !== undefined,
    runsTools: scripts[0].turns !== undefined,
    start,
    played: () => records.map((record) => ({ ...record })),
    alive: () => records.filter(({ outcome }) => outcome === undefined).length
  }
}
