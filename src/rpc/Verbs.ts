/**
 * Verbs: the procedures of the protocol, by name and with values as JSON has them, for doors that are no socket: HTTP.
 *
 * Guarantees: a call passes the same gate as one by the socket; who calls is said by the door, whatever the payload
 * says; procedures by which a run speaks, and those that say who may come in, are not known here.
 */
import { Context, Effect, Layer, Schema, type Scope, Stream } from "effect"
import { type Rpc, RpcClient, RpcSchema, RpcServer } from "effect/rpc"
import type { Asker, Problem, Verb, Verbs } from "../domain/Verb.ts"
import * as ControlHandlers from "./ControlHandlers.ts"
import { access } from "./AccessProtocol.ts"
import { type Input, Speaks } from "./Procedure.ts"
import { agentApi, Control } from "./Protocol.ts"

const HIDDEN: ReadonlySet<string> = new Set([...agentApi, ...access].map(({ rpc }) => rpc._tag))

const isObject = (value: unknown): value is { readonly [field: string]: unknown } =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** The fields of a payload's schema, where it is a struct. */
const fieldsOf = (bounds: Schema.Codec<unknown> | undefined): ReadonlyArray<string> =>
  bounds !== undefined && "fields" in bounds && isObject(bounds.fields) ? Object.keys(bounds.fields) : []

/** The payload under the door's name for its caller. */
const signed = (payload: unknown, fields: ReadonlyArray<string>, { by }: Asker): unknown => {
  if (fields.length === 0 || (payload !== undefined && !isObject(payload))) return payload
  const given = payload ?? {}
  const config = isObject(given["caller"]) ? (given["caller"]["config"] ?? null) : null
  return {
    ...given,
    ...(fields.includes("caller") ? { caller: { by, config } } : {}),
    ...(fields.includes("by") && !fields.includes("caller") ? { by } : {})
  }
}

type Call = (tag: string, payload: unknown) => unknown

const verbOf = (rpc: Rpc.AnyWithProps, call: Call): Verb => {
  const { bounds } = rpc.payloadSchema as Partial<Input>
  const streamed = RpcSchema.isStreamSchema(rpc.successSchema) ? rpc.successSchema.success : undefined
  const success = (streamed ?? rpc.successSchema) as unknown as Schema.Codec<unknown, unknown>
  const encode = Schema.encodeEffect(Schema.toCodecJson(success))
  const plain = (value: unknown) => Effect.orDie(encode(value)) as Effect.Effect<unknown>
  const fields = fieldsOf(bounds)
  const asked = (payload: unknown, asker: Asker) => call(rpc._tag, signed(payload, fields, asker))
  const stream: Verb["stream"] = (payload, asker) =>
    Stream.suspend(() => asked(payload, asker) as Stream.Stream<unknown, Problem>).pipe(Stream.mapEffect(plain))
  const one: Verb["call"] = (payload, asker) =>
    Effect.flatMap(
      Effect.suspend(() => asked(payload, asker) as Effect.Effect<unknown, Problem>),
      plain
    )
  return {
    name: rpc._tag,
    reads: Context.get(rpc.annotations, Speaks) === undefined,
    streams: streamed !== undefined,
    payload: bounds,
    success,
    call: streamed === undefined ? one : (payload, asker) => Stream.runCollect(stream(payload, asker)),
    stream
  }
}

/** A client and a server without anything between them. */
const joined = Effect.gen(function* () {
  // each is told of the other
  const ends: { toClient?: Effect.Success<ReturnType<typeof RpcClient.makeNoSerialization<never, never>>>["write"] } =
    {}
  const server = yield* RpcServer.makeNoSerialization(Control, {
    disableFatalDefects: true,
    disableTracing: true,
    onFromServer: (response) => Effect.suspend(() => ends.toClient!(response as never))
  })
  const { client, write } = yield* RpcClient.makeNoSerialization(Control, {
    supportsAck: true,
    disableTracing: true,
    flatten: true,
    onFromClient: ({ message }) => server.write(0, message)
  })
  ends.toClient = write as never
  return client as unknown as Call
})

const made: Effect.Effect<Verbs, never, Scope.Scope | Effect.Services<typeof joined>> = Effect.map(
  joined,
  (call) =>
    new Map(
      [...(Control.requests.values() as Iterable<unknown> as Iterable<Rpc.AnyWithProps>)]
        .filter(({ _tag }) => !HIDDEN.has(_tag))
        .map((rpc) => [rpc._tag, verbOf(rpc, call)])
    )
)

/** Needs what the handlers need; ends with its scope. */
export const make = Effect.flatMap(Layer.build(ControlHandlers.layer), (handlers) =>
  Effect.provideContext(made, handlers)
)
