/**
 * Scopes: how the benches of the core make their actors, as the daemon makes its own: in
 * a commit scope each, under a supervisor, in one system.
 */
import { Context, Effect, Layer, References, type Scope } from "effect"
import * as ActorSystem from "../../src/core/event-actor/ActorSystem.ts"
import { CommitScope } from "../../src/core/event-actor/CommitScope.ts"
import * as DeadLetters from "../../src/core/event-actor/DeadLetters.ts"
import * as EventLoop from "../../src/core/event-actor/EventLoop.ts"
import type { EventSourcedActor } from "../../src/core/event-actor/EventSourcedActor.ts"
import type { Member } from "../../src/core/event-actor/Member.ts"
import { Log } from "../../src/core/event-log/Log.ts"
import * as Supervisor from "../../src/core/supervision/Supervisor.ts"
import { quantile } from "./Bench.ts"

/** The part of a bench that measures scopes. */
export type Core<A> = Effect.Effect<A, unknown, ActorSystem.ActorSystem | Scope.Scope>

/** Answers a function that makes supervised scopes of one actor each. */
export const spawner = Effect.gen(function* () {
  const system = yield* ActorSystem.ActorSystem
  const supervisor = yield* Supervisor.make({
    name: "bench",
    strategy: "dynamic",
    intensity: 1_000_000,
    period: "10 millis",
    backoff: "none"
  })
  let count = 0
  return <S, M, A>(definition: EventSourcedActor<S, M, A>): Effect.Effect<Member<S, M, never>> =>
    Effect.suspend(() => {
      const scope = new CommitScope(system, { id: `scope-${count++}`, stream: "bench" })
      const member = scope.add("counter/a", definition)
      return Effect.as(Effect.orDie(supervisor.startChild(scope)), member)
    })
})

/** Looks that are taken at a bystander. */
const LOOKS = 300

/** How long (µs) each of some looks takes, with a little while between them. */
export const looks = Effect.fnUntraced(function* (look: Effect.Effect<unknown, unknown>, count = LOOKS) {
  const all: Array<number> = []
  for (let n = 0; n < count; n++) {
    yield* Effect.sleep(1)
    const since = performance.now()
    yield* look
    all.push((performance.now() - since) * 1_000)
  }
  return { p50: quantile(all, 0.5), p99: quantile(all, 0.99) }
})

/** A system over the log. */
export const layer = Layer.unwrap(Effect.map(Log, (log) => ActorSystem.layer({ log, capacity: 1_000_000 }))).pipe(
  Layer.provide([DeadLetters.layerMemory(), EventLoop.layer])
)

export const run = <A>(part: Effect.Effect<A, unknown, Scope.Scope>): Promise<A> =>
  Effect.runPromise(part.pipe(Effect.scoped, Effect.provide(Context.make(References.MinimumLogLevel, "None" as const))))
