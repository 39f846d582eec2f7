/** ProcedureTypes: the payload and reply types of each procedure, by its name. The module contains only types. */
import type { Rpc, RpcGroup, RpcSchema } from "effect/rpc"
import type { Control } from "./Protocol.ts"

type Procedures = RpcGroup.Rpcs<typeof Control>
export type Tag = Procedures["_tag"]
type Named<T extends string> = Rpc.ExtractTag<Procedures, T>
type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : false) : false
type PayloadSchema<R> =
  R extends Rpc.Rpc<infer _Tag, infer P, infer _Success, infer _Error, infer _Middleware, infer _Requires> ? P : never
type IsPlain<S extends { readonly Type: unknown; readonly Encoded: unknown }> = Same<S["Type"], S["Encoded"]>
/** Procedures whose payload and reply have the same form on the wire as in the program. */
export type PlainTag = {
  [T in Procedures["_tag"]]: [IsPlain<Rpc.SuccessExitSchema<Named<T>>>, IsPlain<PayloadSchema<Named<T>>>] extends [
    true,
    true
  ]
    ? T
    : never
}[Procedures["_tag"]]
export type Reply<T extends string> = Rpc.SuccessExitSchema<Named<T>>["Type"]
/** The reply as it is on the wire. For a procedure that replies with a stream, the type of each value. */
export type Answer<T extends string> = Rpc.SuccessExitSchema<Named<T>>["Encoded"]
/** Procedures that reply with a stream. For these, `Reply` is the type of each value. */
export type StreamTag = {
  [T in Tag]: Rpc.SuccessSchema<Named<T>> extends RpcSchema.Stream<infer _A, infer _E> ? T : never
}[Tag]
/** The payload's type; on the wire, null for a procedure without a payload. */
export type PayloadOf<T extends string> = [Rpc.Payload<Named<T>>] extends [void] ? null : Rpc.Payload<Named<T>>
