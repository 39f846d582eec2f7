/**
 * ToolActor: the Tool machine of one call, animated. What the call does is the
 * run's matter; the actor decides whether it may, for how long, and sees to it
 * that the call gets exactly one result.
 */
import { Effect } from "effect"
import * as MachineActor from "../event-actor/MachineActor.ts"
import type { DeadLetters } from "../event-actor/DeadLetters.ts"
import type { Decision } from "../backends/Backend.ts"
import * as ToolMachine from "./ToolMachine.ts"
import type { EventLog } from "../event-log/EventLog.ts"
import type { RuneRef } from "../event-log/Rune.ts"

export type ToolActor = MachineActor.MachineActor<ToolMachine.State, ToolMachine.Event, ToolMachine.Data>
export type Snapshot = ToolActor["snapshot"]

/** `over`: the run is, and nobody takes an answer; `grant`: who approved too late. */
export interface Taken {
  readonly over: boolean
  readonly grant?: string
}

/** What calls need of the run that makes them. */
export interface Bench {
  /** Answers a call that asked. */
  readonly answer: (callId: string, decision: Decision) => Effect.Effect<Taken>
  readonly stop: (callId: string) => Effect.Effect<void>
  /** It has its result, which is durable. */
  readonly ended: (callId: string, status: ToolMachine.Status, cause: RuneRef) => Effect.Effect<void>
}

type Act = MachineActor.Context<ToolMachine.State, ToolMachine.Event, ToolMachine.Data>

const idOf = ({ snapshot }: Act): string => snapshot.data.callId ?? ""

const allowed = ({ snapshot: { data } }: Act): Decision =>
  data.answers === null ? { behavior: "allow" } : { behavior: "allow", answers: data.answers }

const OVER = "the run that made the call is over; what it did is not known"

export const kind = (log: EventLog["Service"], deadLetters: DeadLetters["Service"], bench: Bench) =>
  MachineActor.kind({
    machine: ToolMachine.Tool,
    log,
    deadLetters,
    perform: (action: ToolMachine.Action, act: Act) =>
      action._tag === "StopTool"
        ? bench.stop(action.callId ?? "")
        : bench.ended(action.callId ?? "", action.status, act.cause),
    activities: {
      // whether it asks is told by its run
      DecideApproval: () => Effect.void,
      // the question is in the log; a person's answer comes as a message
      AskApproval: () => Effect.void,
      RunTool: (act: Act) =>
        Effect.flatMap(bench.answer(idOf(act), allowed(act)), ({ over, ...late }) =>
          over
            ? act.self.tell(
                { _tag: "execution_error", callId: idOf(act), status: "unknown", error: OVER, ...late },
                act.cause
              )
            : Effect.void
        ),
      ReportDenial: (act: Act) =>
        Effect.andThen(
          bench.answer(idOf(act), { behavior: "deny", message: act.snapshot.data.denial ?? "denied" }),
          act.self.tell({ _tag: "denial_reported", callId: idOf(act) }, act.cause)
        )
    }
  })

/** Where a call's machine stands before its first rune. */
export const fresh: Snapshot = MachineActor.start(ToolMachine.Tool, ToolMachine.initial())

export const addressOf = (agent: string, callId: string): string => `tool/${agent}/${callId}`
