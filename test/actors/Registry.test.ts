import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import { type ActorRef } from "../../src/actors/ActorRef.ts"
import { type Address, AddressTaken, layer, NotRegistered, Registry } from "../../src/actors/Registry.ts"

const ref = (address: string): ActorRef<string, number> => ({
  address,
  tell: () => Effect.void,
  offer: () => Effect.void,
  ask: () => Effect.succeed(1),
  tellNow: () => true
})

describe("Registry", () => {
  it.effect("finds what was registered, with the types of its address", () =>
    Effect.gen(function* () {
      const registry = yield* Registry
      yield* registry.register(ref("p/worker/a"))
      const address: Address<string, number> = "p/worker/a"
      const found = yield* registry.find(address)
      assert.strictEqual(yield* found.ask("?"), 1)
    }).pipe(Effect.scoped, Effect.provide(layer))
  )

  it.effect("an unknown address is a typed error that names it", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip((yield* Registry).find("p/worker/nobody"))
      assert.instanceOf(error, NotRegistered)
      assert.strictEqual(error.address, "p/worker/nobody")
      assert.isNotEmpty(error.remedy)
    }).pipe(Effect.provide(layer))
  )

  it.effect("a second actor at an address is refused and the first stays", () =>
    Effect.gen(function* () {
      const registry = yield* Registry
      const first = ref("p/worker/a")
      yield* registry.register(first)
      assert.instanceOf(yield* Effect.flip(registry.register(ref("p/worker/a"))), AddressTaken)
      assert.strictEqual(yield* registry.find("p/worker/a"), first as never)
      assert.deepStrictEqual(yield* registry.addresses, ["p/worker/a"])
    }).pipe(Effect.scoped, Effect.provide(layer))
  )

  it.effect("an address is free again when its scope has ended", () =>
    Effect.gen(function* () {
      const registry = yield* Registry
      const scope = yield* Scope.make()
      yield* registry.register(ref("p/worker/a")).pipe(Scope.provide(scope))
      yield* Scope.close(scope, Exit.void)
      assert.instanceOf(yield* Effect.flip(registry.find("p/worker/a")), NotRegistered)
      yield* registry.register(ref("p/worker/a"))
    }).pipe(Effect.scoped, Effect.provide(layer))
  )
})
