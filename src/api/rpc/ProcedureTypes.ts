/** ProcedureTypes: what each procedure of the protocol takes and answers, by its name. Types alone. */
import type { Rpc, RpcGroup, RpcSchema } from "effect/rpc"
import type { Control } from "./Protocol.ts"

type Procedures = RpcGroup.Rpcs<typeof Control>
export type Tag = Procedures["_tag"]
type Named<T extends string> = Rpc.ExtractTag<Procedures, T>
type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : false) : false
type PayloadSchema<R> =
  R extends Rpc.Rpc<infer _Tag, infer P, infer _Success, infer _Error, infer _Middleware, infer _Requires> ? P : never
type IsPlain<S extends { readonly Type: unknown; readonly Encoded: unknown }> = Same<S["Type"], S["Encoded"]>
/** Procedures whose payload and reply are the same on the wire and in the program. */
export type PlainTag = {
  [T in Procedures["_tag"]]: [IsPlain<Rpc.SuccessExitSchema<Named<T>>>, IsPlain<PayloadSchema<Named<T>>>] extends [
    true,
    true
  ]
    ? T
    : never
}[Procedures["_tag"]]
export type Reply<T extends string> = Rpc.SuccessExitSchema<Named<T>>["Type"]
/** Procedures that answer with many values: `Reply` is the type of each. */
export type StreamTag = {
  [T in Tag]: Rpc.SuccessSchema<Named<T>> extends RpcSchema.Stream<infer _A, infer _E> ? T : never
}[Tag]
/** Of a procedure without one it is null on the wire. */
export type PayloadOf<T extends string> = [Rpc.Payload<Named<T>>] extends [void] ? null : Rpc.Payload<Named<T>>
