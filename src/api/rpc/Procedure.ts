/**
 * Procedure: a command of the daemon, declared in one place: its name, its payload with limits, its reply, and its
 * implementation over the daemon's features.
 *
 * Guarantees: a declaration imports only the types of features, so a client that speaks the protocol loads none of
 * them.
 */
import { Context, Schema, SchemaTransformation } from "effect"
import { Rpc, RpcGroup, RpcMiddleware } from "effect/rpc"
import { CommandRefused, Done } from "../../domain/Messages.ts"
import { StorageError } from "../../core/event-log/EventLog.ts"
import * as Bounds from "../../board/Bounds.ts"
import type { Features } from "./Features.ts"

export interface Procedure<R extends Rpc.Any> {
  readonly rpc: R
  /** The payload has passed the gate: it is valid, and the call was admitted and counted. */
  readonly run: (features: Features, payload: Rpc.Payload<R>) => Rpc.ResultFrom<R, never>
}

/** Schema for a procedure without a payload, sent as null; the gate refuses anything else. */
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

export interface AnyProcedure {
  readonly rpc: Rpc.Any
  readonly run: (features: Features, payload: never) => unknown
}

export const groupOf = <const P extends ReadonlyArray<AnyProcedure>>(procedures: P) =>
  RpcGroup.make(...procedures.map(({ rpc }) => rpc)) as RpcGroup.RpcGroup<P[number]["rpc"]>

export const error = Schema.Union([CommandRefused, StorageError])

/** The schema of a payload; the gate reads it from here. */
export interface Input {
  readonly bounds: Schema.Codec<unknown>
}

/**
 * The schema of a payload with these fields, which are plain JSON. The payload is not decoded in transit, because a
 * codec that fails causes a defect. Instead the gate validates it, so all refusals come from one place and have one
 * form.
 */
export const input = <const Fields extends Schema.Struct.Fields>(fields: Fields) =>
  Object.assign(Schema.Any.annotate({}), { bounds: Schema.Struct(fields) }) as unknown as Schema.Struct<Fields> & Input

/**
 * True: the call is answered at once and not counted, so that a user can see the status even when no further call is
 * admitted.
 */
export const AtOnce = Context.Reference<boolean>("agentd/rpc/AtOnce", { defaultValue: () => false })

type Named = "agent" | "conversation" | "nothing"

/** The kind of thing that `name` refers to: a refusal for an unknown name suggests a similar one. */
export const About = Context.Reference<Named>("agentd/rpc/About", {
  defaultValue: () => "nothing"
})

/**
 * How a command acts for its caller: `decides` in a user's place, `acts` in the caller's name, or `speaks` as a run.
 */
export type Voice = "decides" | "acts" | "speaks"

/**
 * How a procedure acts for its caller. Undefined: the procedure only reads. `introduces`: the payload states the
 * caller's process.
 */
export const Speaks = Context.Reference<Voice | "introduces" | undefined>("agentd/rpc/Speaks", {
  defaultValue: () => undefined
})

/** A command on the thing that `name` refers to, with further fields. */
export const command = <const Name extends string, const Fields extends Schema.Struct.Fields>(
  name: Name,
  fields: Fields,
  voice: Voice,
  about: Named = "nothing"
) =>
  Rpc.make(name, { payload: input({ ...Bounds.named, ...fields }), success: Done, error })
    .annotate(Speaks, voice)
    .annotate(About, about)

/** A question about the thing that `name` refers to. */
export const question = <const Name extends string, S extends Schema.Top>(name: Name, success: S, about: Named) =>
  Rpc.make(name, { payload: input(Bounds.named), success, error: CommandRefused }).annotate(About, about)

/** The middleware that every call passes before its procedure. */
export class Gate extends RpcMiddleware.Service<Gate>()("agentd/rpc/Gate", { error }) {}

/**
 * The group of these procedures behind the gate. A named type, so that declaration files contain the types of all
 * procedures only once.
 */
export type Gated<P extends ReadonlyArray<AnyProcedure>> = RpcGroup.RpcGroup<
  Rpc.AddMiddleware<P[number]["rpc"], typeof Gate>
>
