/**
 * A backend whose runs say what a test tells them to, contract or not: what real ones
 * do once in a thousand times.
 */
import { type Cause, Effect, Queue, Stream } from "effect"
import {
  type Backend,
  BackendError,
  type Decision,
  type Run,
  type RunEvent,
  type RunSpec
} from "../../../src/runs/Backend.ts"
import { until } from "./World.ts"

export interface Pulled {
  readonly spec: RunSpec
  readonly sent: Array<{ readonly turnId: string; readonly text: string }>
  readonly answers: Array<readonly [string, Decision]>
  readonly cancelled: Array<string>
  interrupts: number
  ends: number
  kills: number
  readonly say: (...events: ReadonlyArray<RunEvent>) => Effect.Effect<void>
}

export interface Puppet extends Backend {
  readonly runs: ReadonlyArray<Pulled>
  /** The n-th run, once it is there. */
  readonly run: (n?: number) => Effect.Effect<Pulled>
  /** `send` is refused from now on. */
  refuses: boolean
}

/** Runs that end and die as asked, where `deaf` does not say otherwise; `up`: they say so at once; `holds`: they outlive daemons; `turns`: false where a run is one turn. */
export const make = (
  options: {
    readonly up?: boolean
    readonly deaf?: boolean
    readonly holds?: boolean
    readonly turns?: boolean
    readonly drop?: Backend["drop"]
  } = {}
): Puppet => {
  const runs: Array<Pulled> = []
  const puppet: Puppet = {
    name: "puppet",
    turns: options.turns ?? true,
    ...(options.drop === undefined ? {} : { drop: options.drop }),
    ...(options.holds === true ? { holds: () => Effect.succeed(true) } : {}),
    runsTools: true,
    refuses: false,
    runs,
    run: (n = 0) =>
      Effect.map(
        until(
          Effect.sync(() => runs.length),
          (length) => length > n
        ),
        () => runs[n]!
      ),
    start: Effect.fnUntraced(function* (spec: RunSpec) {
      const queue = yield* Queue.unbounded<RunEvent, Cause.Done>()
      // one chunk, however busy the machine is; nothing follows an exit
      const say = (...events: ReadonlyArray<RunEvent>) => {
        const last = events.findIndex(({ _tag }) => _tag === "Exited")
        if (last < 0) return Effect.asVoid(Queue.offerAll(queue, events))
        return Effect.andThen(Queue.offerAll(queue, events.slice(0, last + 1)), Effect.asVoid(Queue.end(queue)))
      }
      const pulled: Pulled = { spec, sent: [], answers: [], cancelled: [], interrupts: 0, ends: 0, kills: 0, say }
      runs.push(pulled)
      if (options.up !== false) yield* say({ _tag: "Started" }, { _tag: "TurnStarted", turnId: spec.turnId })
      const refused = new BackendError({ message: "it takes none", remedy: "another run does", fatal: false })
      const run: Run = {
        runId: spec.runId,
        events: Stream.fromQueue(queue),
        send: (input) =>
          Effect.suspend(() =>
            puppet.refuses ? Effect.fail(refused) : Effect.sync(() => void pulled.sent.push(input))
          ),
        answer: (callId, decision) => Effect.sync(() => void pulled.answers.push([callId, decision])),
        cancelCall: (callId) => Effect.sync(() => void pulled.cancelled.push(callId)),
        interruptTurn: Effect.sync(() => void pulled.interrupts++),
        end: Effect.suspend(() => {
          pulled.ends++
          return options.deaf === true ? Effect.void : say({ _tag: "Exited", outcome: { _tag: "Success" } })
        }),
        kill: Effect.suspend(() => {
          pulled.kills++
          return say({ _tag: "Exited", outcome: { _tag: "Error", detail: "killed" } })
        })
      }
      return run
    })
  }
  return puppet
}

export { holding } from "./TestLog.ts"
