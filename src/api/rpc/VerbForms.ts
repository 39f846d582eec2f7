/**
 * VerbForms: the procedures that the HTTP interface offers as verbs, each with the required right, and the schemas of
 * its payload and answer. No daemon is needed to compute them.
 *
 * Guarantees: procedures for runs, and those that grant access, are not included. A payload cannot contain the caller's
 * name.
 */
import { Context, Schema } from "effect"
import { type Rpc, RpcSchema } from "effect/rpc"
import { isReadonlyObject as isObject } from "effect/Predicate"
import type { VerbForm } from "../../domain/Verb.ts"
import { access } from "./AccessProtocol.ts"
import { path } from "../../board/Bounds.ts"
import { type Input, Speaks } from "./Procedure.ts"
import { agentApi, Control } from "./Protocol.ts"

const HIDDEN: ReadonlySet<string> = new Set([...agentApi, ...access].map(({ rpc }) => rpc._tag))

/** Procedures that count as actions because they send a notification. */
const MAILS: ReadonlySet<string> = new Set(["AlertTest", "NotifyTest"])

/** The fields of a struct schema; empty if the schema is not a struct. */
const fieldsOf = (bounds: Schema.Codec<unknown> | undefined): Schema.Struct.Fields =>
  bounds !== undefined && "fields" in bounds && isObject(bounds.fields) ? (bounds.fields as Schema.Struct.Fields) : {}

/** The only field of the caller that a client may set: the config whose project's names are looked up first. */
const CALLER = Schema.Struct({ config: Schema.optionalKey(Schema.NullOr(path)) }).annotate({
  description: "The config in which names are looked up, if a name alone is ambiguous. The token identifies the caller."
})

/**
 * The field of the payload that contains the caller's name; undefined if there is none. In a procedure that only reads,
 * a field `by` can have another meaning.
 */
type Signed = "caller" | "by" | undefined

const signedIn = (fields: Schema.Struct.Fields, reads: boolean): Signed =>
  "caller" in fields ? "caller" : "by" in fields && !reads ? "by" : undefined

/** The payload's schema without the field for the caller's name. */
const unsigned = (bounds: Schema.Codec<unknown>, signed: Signed): Schema.Codec<unknown, unknown> => {
  if (signed === undefined) return bounds
  const { [signed]: _, ...fields } = fieldsOf(bounds)
  const left = signed === "caller" ? { ...fields, caller: Schema.optionalKey(CALLER) } : fields
  return Schema.Struct(left) as Schema.Constraint as Schema.Codec<unknown, unknown>
}

export interface Declared {
  readonly form: VerbForm
  readonly signed: Signed
}

const declare = (rpc: Rpc.AnyWithProps): Declared => {
  const { bounds } = rpc.payloadSchema as Partial<Input>
  const streamed = RpcSchema.isStreamSchema(rpc.successSchema) ? rpc.successSchema.success : undefined
  const reads = Context.get(rpc.annotations, Speaks) === undefined && !MAILS.has(rpc._tag)
  const signed = signedIn(fieldsOf(bounds), reads)
  return {
    form: {
      name: rpc._tag,
      reads,
      streams: streamed !== undefined,
      payload: bounds === undefined ? undefined : unsigned(bounds, signed),
      success: (streamed ?? rpc.successSchema) as unknown as Schema.Codec<unknown, unknown>
    },
    signed
  }
}

export const declared: ReadonlyArray<Declared> = [
  ...(Control.requests.values() as Iterable<unknown> as Iterable<Rpc.AnyWithProps>)
]
  .filter(({ _tag }) => !HIDDEN.has(_tag))
  .map(declare)

export const forms: ReadonlyArray<VerbForm> = declared.map(({ form }) => form)
