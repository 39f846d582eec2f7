/**
 * PlateKinds: the kinds of runes of a plate, and of reports that name no plate.
 */
import { Schema } from "effect"
import { machineKinds } from "../event-actor/MachineKinds.ts"
import { kind, reader } from "../event-log/EventKinds.ts"
import * as PlateMachine from "./PlateMachine.ts"

const text = Schema.String

export const moveKinds = machineKinds(PlateMachine, {})

export const plateKinds = {
  ...moveKinds,
  "plate.answered": kind(
    Schema.Struct({
      approval: text,
      tool: text,
      behavior: Schema.Literals(["allow", "deny"]),
      by: text,
      /** The decided input, redacted, and the hash of the whole. */
      arguments: Schema.optional(text),
      hash: Schema.optional(text)
    })
  ),
  "hook.refused": kind(Schema.Struct({ field: text, message: text }), { visibility: "internal", lazy: true })
}

export const readMove = reader(moveKinds)
