/**
 * VerbForms: the procedures of the protocol as doors that are no socket have them: each with its right, and the
 * schemas of what it takes and answers. Known without a daemon.
 *
 * Guarantees: procedures by which a run speaks, and those that say who may come in, are not among them; nobody says
 * in a payload who calls.
 */
import { Context, Schema } from "effect"
import { type Rpc, RpcSchema } from "effect/rpc"
import type { VerbForm } from "../../domain/Verb.ts"
import { access } from "./AccessProtocol.ts"
import { path } from "../../board/Bounds.ts"
import { type Input, Speaks } from "./Procedure.ts"
import { agentApi, Control } from "./Protocol.ts"

const HIDDEN: ReadonlySet<string> = new Set([...agentApi, ...access].map(({ rpc }) => rpc._tag))

/** Nothing of agents changes by it, but somebody is mailed. */
const MAILS: ReadonlySet<string> = new Set(["AlertTest", "NotifyTest"])

export const isObject = (value: unknown): value is { readonly [field: string]: unknown } =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Of a payload's schema, where it is a struct. */
const fieldsOf = (bounds: Schema.Codec<unknown> | undefined): Schema.Struct.Fields =>
  bounds !== undefined && "fields" in bounds && isObject(bounds.fields) ? (bounds.fields as Schema.Struct.Fields) : {}

/** Of the caller a door is told at most whose config its names are of. */
const CALLER = Schema.Struct({ config: Schema.optionalKey(Schema.NullOr(path)) }).annotate({
  description: "The config whose names are meant, where a name alone is not enough. Who calls is known by the token."
})

/** The field that says who calls: what only reads may have a field of that name which says something else. */
type Signed = "caller" | "by" | undefined

const signedIn = (fields: Schema.Struct.Fields, reads: boolean): Signed =>
  "caller" in fields ? "caller" : "by" in fields && !reads ? "by" : undefined

/** The payload as a door takes it. */
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
