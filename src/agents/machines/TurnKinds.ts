/**
 * TurnKinds: the kinds of runes of a turn. The runes of a turn's start and end also move other machines of the agent:
 * see the function `joins` of each machine.
 */
import { Schema } from "effect"
import { turnEnds } from "../../domain/WorkKinds.ts"
import { machineKinds } from "../../core/event-actor/MachineKinds.ts"
import { reader } from "../../core/event-log/EventKinds.ts"
import * as TurnMachine from "./TurnMachine.ts"

const mayText = Schema.optional(Schema.NullOr(Schema.String))

const turnId = { turn_id: Schema.String }

export const turnKinds = machineKinds(TurnMachine, {
  "turn.started": { fields: { ...turnId, agent_id: Schema.String, input: mayText } },
  "turn.assistant_delta": { fields: { ...turnId, content: Schema.NullOr(Schema.String) } },
  "turn.tool_calls_received": { fields: { ...turnId, call_ids: Schema.optional(Schema.Array(Schema.String)) } },
  "turn.tools_finished": { fields: { ...turnId, results: Schema.optional(Schema.Array(Schema.Unknown)) } },
  "turn.completed": { fields: { ...turnId, final_output: mayText, usage: Schema.optional(Schema.Unknown) } },
  "turn.interrupted": { fields: turnEnds["turn.interrupted"] },
  "turn.error": { fields: turnEnds["turn.error"] },
  "turn.finalized": { fields: turnId, visibility: "internal" }
})

export const readTurn = reader(turnKinds)
