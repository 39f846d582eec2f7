/**
 * Verbs: calls the protocol's procedures by name and with JSON values, for interfaces other than the control socket,
 * such as HTTP.
 *
 * Guarantees: a call passes the same gate as a call on the socket. The interface sets the caller, whatever the payload
 * says.
 */
import { Effect, Layer, Schema, type Scope, Stream } from "effect"
import { RpcClient, RpcServer } from "effect/rpc"
import { isReadonlyObject as isObject } from "effect/Predicate"
import type { Asker, Problem, Verb, Verbs } from "../../domain/Verb.ts"
import * as ControlHandlers from "./ControlHandlers.ts"
import { Control } from "./Protocol.ts"
import { type Declared, declared } from "./VerbForms.ts"

/** The payload with the caller's name that the interface has set. */
const sign = (payload: unknown, { form, signed }: Declared, { by }: Asker): unknown => {
  if (form.payload === undefined || (payload !== undefined && !isObject(payload))) return payload
  const given = payload ?? {}
  if (signed !== "caller") return signed === "by" ? { ...given, by } : given
  const config = isObject(given["caller"]) ? (given["caller"]["config"] ?? null) : null
  return { ...given, caller: { by, config } }
}

type Call = (tag: string, payload: unknown) => unknown

const verbOf = (declared: Declared, call: Call): Verb => {
  const { form } = declared
  const encode = Schema.encodeEffect(Schema.toCodecJson(form.success))
  const plain = (value: unknown) => Effect.orDie(encode(value)) as Effect.Effect<unknown>
  const asked = (payload: unknown, asker: Asker) => call(form.name, sign(payload, declared, asker))
  const stream: Verb["stream"] = (payload, asker) =>
    Stream.suspend(() => asked(payload, asker) as Stream.Stream<unknown, Problem>).pipe(Stream.mapEffect(plain))
  const one: Verb["call"] = (payload, asker) =>
    Effect.flatMap(
      Effect.suspend(() => asked(payload, asker) as Effect.Effect<unknown, Problem>),
      plain
    )
  return {
    ...form,
    call: form.streams ? (payload, asker) => Stream.runCollect(stream(payload, asker)) : one,
    stream
  }
}

/** A client and a server that are connected in memory. */
const joined = Effect.gen(function* () {
  // the client and the server each need a reference to the other
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
  (call) => new Map(declared.map((each) => [each.form.name, verbOf(each, call)]))
)

export const make = Effect.flatMap(Layer.build(ControlHandlers.layer), (handlers) =>
  Effect.provideContext(made, handlers)
)
