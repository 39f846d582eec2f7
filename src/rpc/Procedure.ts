/**
 * Procedure: what the procedures of the control protocol have in common: how a payload is read,
 * how a call fails, and what the gate before all of them has to know of each.
 */
import { Context, Schema } from "effect"
import { RpcMiddleware } from "effect/rpc"
import { CommandRefused } from "../domain/Messages.ts"
import { StorageError } from "../event-log/EventLog.ts"

/** How a command fails. */
export const error = Schema.Union([CommandRefused, StorageError])

/** The schema of a payload; the gate reads it there. */
export interface Input {
  readonly bounds: Schema.Codec<unknown>
}

/**
 * The payload with these fields, whose JSON is what it is. It is sent and received as it is, since a codec that
 * does not fit makes a defect: the gate checks it, so that a refusal has one place and one text.
 */
export const input = <const Fields extends Schema.Struct.Fields>(fields: Fields) =>
  Object.assign(Schema.Any.annotate({}), { bounds: Schema.Struct(fields) }) as unknown as Schema.Struct<Fields> & Input

/** Answered at once and counted nowhere: what a person needs to see when everything else is full. */
export const AtOnce = Context.Reference<boolean>("agentd/rpc/AtOnce", { defaultValue: () => false })

/** The kind of thing that `name` names: a refusal for an unknown name suggests the one that was meant. */
export const About = Context.Reference<"agent" | "conversation" | "nothing">("agentd/rpc/About", {
  defaultValue: () => "nothing"
})

/** The middleware that every call passes before its procedure. */
export class Gate extends RpcMiddleware.Service<Gate>()("agentd/rpc/Gate", { error: CommandRefused }) {}
