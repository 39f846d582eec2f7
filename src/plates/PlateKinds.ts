/** PlateKinds: the kinds of runes that record a plate, and those that record a rejected report. */
import { Schema } from "effect"
import { machineKinds } from "../core/event-actor/MachineKinds.ts"
import { kind, reader } from "../core/event-log/EventKinds.ts"
import * as PlateMachine from "./PlateMachine.ts"

const text = Schema.String
const mayText = Schema.optional(Schema.NullOr(text))

/** Events of a run, in logs of older versions, in which each run had a plate. New logs do not contain them. */
const RunEvent = Schema.Struct({
  _tag: Schema.Literals([
    "RunTurnStarted",
    "RunToolCalled",
    "RunApprovalRequested",
    "RunToolEnded",
    "RunBackground",
    "RunTurnEnded"
  ])
})
type RunEvent = typeof RunEvent.Type

export const isOfRun = (event: PlateMachine.Event | RunEvent): event is RunEvent => event._tag.startsWith("Run")

const Event = Schema.Union([PlateMachine.Event, RunEvent])

export const moveKinds = machineKinds(
  { ...PlateMachine, Event },
  {
    "plate.moved": { fields: { plateId: mayText, sessionId: mayText, restsOn: Schema.optional(Schema.Unknown) } },
    "plate.forgotten": { fields: { plateId: mayText, sessionId: mayText, by: mayText } }
  }
)

export const plateKinds = {
  ...moveKinds,
  "plate.answered": kind(
    Schema.Struct({
      approval: text,
      tool: text,
      behavior: Schema.Literals(["allow", "deny"]),
      by: text,
      agentId: mayText,
      /** `message`: the user's message with the answer; `answers`: the answers to the questions. */
      message: mayText,
      answers: Schema.optional(Schema.Array(text)),
      /** The input of the tool call, redacted, and the hash of the unredacted input. */
      arguments: Schema.optional(text),
      hash: Schema.optional(text)
    })
  ),
  "hook.refused": kind(Schema.Struct({ field: text, message: text, leftOut: Schema.optional(Schema.Int) }), {
    visibility: "internal",
    lazy: true
  })
}

export const readMove = reader(moveKinds)
