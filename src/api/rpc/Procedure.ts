/**
 * Procedure: a command of the daemon, declared once: its name, its payload with its bounds, its
 * reply, and what it does with the daemon's features.
 *
 * Guarantees: a declaration imports features by their types alone, so that a client that speaks
 * the protocol loads none of them.
 */
import { Context, Schema, SchemaTransformation } from "effect"
import { Rpc, RpcGroup, RpcMiddleware } from "effect/rpc"
import { CommandRefused, Done } from "../../domain/Messages.ts"
import { StorageError } from "../../core/event-log/EventLog.ts"
import * as Bounds from "../../board/Bounds.ts"
import type { Features } from "./Features.ts"

export interface Procedure<R extends Rpc.Any> {
  readonly rpc: R
  /** Runs with a payload that has passed the gate: it is within its bounds, admitted and counted. */
  readonly run: (features: Features, payload: Rpc.Payload<R>) => Rpc.ResultFrom<R, never>
}

/** Of a procedure that takes nothing, sent as null; whatever comes is the gate's to refuse. */
const Nothing = Schema.Any.pipe(
  Schema.decodeTo(
    Schema.Any,
    SchemaTransformation.transform({ decode: (value) => value, encode: (value) => value ?? null })
  )
)

const taking = (rpc: Rpc.Any): Rpc.Any => {
  const form = rpc as unknown as Rpc.Rpc<string, Schema.Void>
  return form.payloadSchema === Schema.Void ? form.setPayload(Nothing) : rpc
}

export const procedure = <R extends Rpc.Any>(rpc: R, run: Procedure<R>["run"]): Procedure<R> => ({
  rpc: taking(rpc) as R,
  run
})

/** A procedure whose form is known to itself alone. */
export interface AnyProcedure {
  readonly rpc: Rpc.Any
  readonly run: (features: Features, payload: never) => unknown
}

export const groupOf = <const P extends ReadonlyArray<AnyProcedure>>(procedures: P) =>
  RpcGroup.make(...procedures.map(({ rpc }) => rpc)) as RpcGroup.RpcGroup<P[number]["rpc"]>

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

type Named = "agent" | "conversation" | "nothing"

/** The kind of thing that `name` names: a refusal for an unknown name suggests the one that was meant. */
export const About = Context.Reference<Named>("agentd/rpc/About", {
  defaultValue: () => "nothing"
})

/** How a command speaks for its caller: `decides` what waits for a person, `acts` in its name, `speaks` as a run. */
export type Voice = "decides" | "acts" | "speaks"

/** Left out where a procedure only reads; `introduces`: it tells which process the caller is. */
export const Speaks = Context.Reference<Voice | "introduces" | undefined>("agentd/rpc/Speaks", {
  defaultValue: () => undefined
})

/** A command on what `name` names, with further fields. */
export const command = <const Name extends string, const Fields extends Schema.Struct.Fields>(
  name: Name,
  fields: Fields,
  voice: Voice,
  about: Named = "nothing"
) =>
  Rpc.make(name, { payload: input({ ...Bounds.named, ...fields }), success: Done, error })
    .annotate(Speaks, voice)
    .annotate(About, about)

/** A question about what `name` names. */
export const question = <const Name extends string, S extends Schema.Top>(name: Name, success: S, about: Named) =>
  Rpc.make(name, { payload: input(Bounds.named), success, error: CommandRefused }).annotate(About, about)

/** The middleware that every call passes before its procedure. */
export class Gate extends RpcMiddleware.Service<Gate>()("agentd/rpc/Gate", { error }) {}

/** The group of those procedures behind it. Named, so that declarations tell the forms of all procedures once. */
export type Gated<P extends ReadonlyArray<AnyProcedure>> = RpcGroup.RpcGroup<
  Rpc.AddMiddleware<P[number]["rpc"], typeof Gate>
>
