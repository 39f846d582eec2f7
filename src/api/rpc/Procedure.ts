/**
 * Procedure: a command of the daemon, declared in one place: its name, its payload with limits, its reply, and its
 * implementation.
 *
 * Guarantees: a declaration imports only the types of features, so a client of the protocol loads no feature code.
 */
import { Context, Effect, Schema, SchemaTransformation } from "effect"
import { Rpc, RpcGroup, RpcMiddleware } from "effect/rpc"
import { CommandRefused, Done } from "../../domain/Messages.ts"
import { StorageError } from "../../core/event-log/EventLog.ts"
import * as Bounds from "../../board/Bounds.ts"
import type { Features } from "./Features.ts"

export interface Procedure<R extends Rpc.Any> {
  readonly rpc: R
  /** The implementation. The payload has passed the gate: it is valid, and the call has been admitted and counted. */
  readonly run: (features: Features, payload: Rpc.Payload<R>) => Rpc.ResultFrom<R, never>
}

/** Schema of the payload for a procedure without one: it is sent as null, and the gate refuses any other value. */
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

/** The type of a payload schema from which the gate can read the real schema. */
export interface Input {
  readonly bounds: Schema.Codec<unknown>
}

/**
 * The schema of a payload with these fields, which must be plain JSON. The payload is not decoded in transit, because a
 * decoding error would be a defect. Instead the gate validates it, so all refusals come from the gate and have the same
 * form.
 */
export const input = <const Fields extends Schema.Struct.Fields>(fields: Fields) =>
  Object.assign(Schema.Any.annotate({}), { bounds: Schema.Struct(fields) }) as unknown as Schema.Struct<Fields> & Input

/**
 * True if the call is answered at once and not counted, so that a user can see the status even when no more calls are
 * admitted.
 */
export const AtOnce = Context.Reference<boolean>("agentd/rpc/AtOnce", { defaultValue: () => false })

/** How long a list waits for the daemon to read its log, so that the list of a daemon that has just started is whole. */
const SETTLES = "5 seconds"

/** The part of the agents that a list needs, as a type of its own: declaration files of a client contain no features. */
interface Recovering {
  readonly agents: {
    readonly recovered: Effect.Effect<void, StorageError>
    readonly ready: Effect.Effect<boolean>
  }
}

/** Waits until the daemon has read its log, at most SETTLES. After that, the answer contains what is known so far. */
export const settled = ({ agents }: Recovering): Effect.Effect<void> =>
  Effect.asVoid(Effect.timeoutOption(Effect.exit(agents.recovered), SETTLES))

/** Answers with a list once the daemon has read its log; `reading` says that the list is not complete. */
export const whole = <A extends object, E, R>(
  features: Recovering,
  answer: Effect.Effect<A, E, R>
): Effect.Effect<A & { readonly reading?: true }, E, R> =>
  Effect.gen(function* () {
    yield* settled(features)
    const isWhole = yield* features.agents.ready
    const list = yield* answer
    return isWhole ? list : { ...list, reading: true }
  })

type Named = "agent" | "conversation" | "nothing"

/** The kind of item to which `name` refers. With it, a refusal for an unknown name can suggest a similar one. */
export const About = Context.Reference<Named>("agentd/rpc/About", {
  defaultValue: () => "nothing"
})

/** The role in which a command acts: `decides` for a user, `acts` under the caller's name, or `speaks` as a run. */
export type Voice = "decides" | "acts" | "speaks"

/**
 * The role in which a procedure acts; undefined if the procedure only reads. `introduces`: the payload states the
 * caller's process id.
 */
export const Speaks = Context.Reference<Voice | "introduces" | undefined>("agentd/rpc/Speaks", {
  defaultValue: () => undefined
})

/** A command for the item to which `name` refers, with further fields. */
export const command = <const Name extends string, const Fields extends Schema.Struct.Fields>(
  name: Name,
  fields: Fields,
  voice: Voice,
  about: Named = "nothing"
) =>
  Rpc.make(name, { payload: input({ ...Bounds.named, ...fields }), success: Done, error })
    .annotate(Speaks, voice)
    .annotate(About, about)

/** A procedure that only reads, about the item to which `name` refers. */
export const question = <const Name extends string, S extends Schema.Top>(name: Name, success: S, about: Named) =>
  Rpc.make(name, { payload: input(Bounds.named), success, error: CommandRefused }).annotate(About, about)

/** The middleware through which every call passes before its procedure. */
export class Gate extends RpcMiddleware.Service<Gate>()("agentd/rpc/Gate", { error }) {}

/**
 * The group of these procedures behind the gate. It is a named type, so that declaration files contain the types of all
 * procedures only once.
 */
export type Gated<P extends ReadonlyArray<AnyProcedure>> = RpcGroup.RpcGroup<
  Rpc.AddMiddleware<P[number]["rpc"], typeof Gate>
>
