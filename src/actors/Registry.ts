/**
 * Registry: which actor is behind an address.
 *
 * Guarantees: an address names one actor at a time, from its registration to the
 * end of the scope it was registered in; a look-up that finds none says so, typed.
 */
import { Context, Effect, Layer, Schema, type Scope } from "effect"
import type { ActorRef } from "./ActorRef.ts"

/** An address that knows what its actor takes and answers. Any string is one, of unknown kind. */
export type Address<M, A = void, E = never> = string & { readonly "~ref"?: ActorRef<M, A, E> }

export class NotRegistered extends Schema.TaggedError<NotRegistered>()("NotRegistered", {
  address: Schema.String,
  message: Schema.String,
  remedy: Schema.String
}) {}

export class AddressTaken extends Schema.TaggedError<AddressTaken>()("AddressTaken", {
  address: Schema.String,
  message: Schema.String,
  remedy: Schema.String
}) {}

/** What is held of an actor whose messages nobody asks about. */
type AnyRef = ActorRef<never, unknown, unknown>

export class Registry extends Context.Service<
  Registry,
  {
    /** Until the scope ends. */
    readonly register: (ref: AnyRef) => Effect.Effect<void, AddressTaken, Scope.Scope>
    readonly find: <M, A, E>(address: Address<M, A, E>) => Effect.Effect<ActorRef<M, A, E>, NotRegistered>
    /** Of all actors, in order of registration. */
    readonly addresses: Effect.Effect<ReadonlyArray<string>>
  }
>()("agentd/actors/Registry") {}

const make = Effect.sync(() => {
  const refs = new Map<string, AnyRef>()

  const claim = (ref: AnyRef): Effect.Effect<void, AddressTaken> =>
    Effect.suspend(() => {
      const { address } = ref
      if (refs.has(address)) {
        return new AddressTaken({
          address,
          message: `${address} is taken by another actor`,
          remedy: "stop that one first, or choose another name"
        })
      }
      refs.set(address, ref)
      return Effect.void
    })

  return Registry.of({
    register: (ref) =>
      Effect.acquireRelease(claim(ref), () =>
        Effect.sync(() => {
          refs.delete(ref.address)
        })
      ),
    find: <M, A, E>(address: Address<M, A, E>) =>
      Effect.suspend(() => {
        const ref = refs.get(address)
        if (ref !== undefined) return Effect.succeed(ref as ActorRef<M, A, E>)
        return new NotRegistered({
          address,
          message: `there is no actor at ${address}`,
          remedy: "check the name against what is running, or start it first"
        })
      }),
    addresses: Effect.sync(() => [...refs.keys()])
  })
})

export const layer: Layer.Layer<Registry> = Layer.effect(Registry, make)
