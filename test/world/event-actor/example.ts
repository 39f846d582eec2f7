/** The README's example. */
import { Effect, Layer, Schema, Stream } from "effect"
import * as ActorSystem from "../../../src/core/event-actor/ActorSystem.ts"
import { CommitScope } from "../../../src/core/event-actor/CommitScope.ts"
import * as DeadLetters from "../../../src/core/event-actor/DeadLetters.ts"
import * as EventLoop from "../../../src/core/event-actor/EventLoop.ts"
import { actor, tell } from "../../../src/core/event-actor/EventSourcedActor.ts"
import * as EventKinds from "../../../src/core/event-log/EventKinds.ts"
import { EventLog } from "../../../src/core/event-log/EventLog.ts"
import * as InvariantGuard from "../../../src/core/event-log/InvariantGuard.ts"
import { Log } from "../../../src/core/event-log/Log.ts"
import { LogRules } from "../../../src/core/event-log/LogRules.ts"
import * as MemoryEventLog from "../../../src/core/event-log/MemoryEventLog.ts"
import * as Supervisor from "../../../src/core/supervision/Supervisor.ts"

type Till = { readonly _tag: "Sell"; readonly cents: number }
type Drawer = { readonly _tag: "Fill"; readonly cents: number }

/** Counts sales, and tells the drawer of each. */
const till = actor<number, Till, string>({
  initial: 0,
  decide: (sales, { cents }, { ref }) => ({
    runes: [{ kind: "till.sold", payload: { cents } }],
    tells: [tell(ref<Drawer>("drawer"), { _tag: "Fill", cents })],
    acts: [`receipt ${sales + 1}: ${cents}`]
  }),
  apply: (sales) => sales + 1,
  perform: (receipt) => Effect.log(receipt)
})

const drawer = actor<number, Drawer>({
  initial: 0,
  decide: (_, { cents }) => (cents > 0 ? { runes: [{ kind: "drawer.filled", payload: { cents } }] } : "illegal"),
  apply: (sum, { payload }) => sum + Number(payload["cents"])
})

const program = Effect.gen(function* () {
  const system = yield* ActorSystem.ActorSystem
  const scope = new CommitScope(system, { id: "shop", stream: "shop" })
  const sales = scope.add("till", till)
  const money = scope.add("drawer", drawer)
  const supervisor = yield* Supervisor.make({ name: "shops" })
  yield* supervisor.startChild(scope)

  // One append of two runes; durable when answered.
  const { state } = yield* sales.ask({ _tag: "Sell", cents: 350 })
  // The drawer says illegal: nothing is written, and the ask fails typed.
  const refused = yield* Effect.flip(sales.ask({ _tag: "Sell", cents: 0 }))

  const log = yield* EventLog
  const runes = yield* Stream.runCollect(log.read({ stream: "shop" }))
  return { sales: state, money: money.state, refused: refused._tag, runes: runes.map(({ kind }) => kind) }
})

const Cents = Schema.Struct({ cents: Schema.Int })
const rules = Layer.succeed(LogRules, {
  kinds: EventKinds.make({ "till.sold": EventKinds.kind(Cents), "drawer.filled": EventKinds.kind(Cents) }),
  guard: InvariantGuard.none(),
  folds: [],
  home: "program",
  severityOf: () => undefined,
  archives: { kind: "none", streamOf: ({ actor }) => actor }
})
// SqlEventLog.layer({ file }) in its place keeps the runes on disk.
const log = MemoryEventLog.layerMemory.pipe(Layer.provide(rules))
const system = Layer.unwrap(Effect.map(Log, (log) => ActorSystem.layer({ log }))).pipe(
  Layer.provide([DeadLetters.layerMemory(), EventLoop.layer])
)

export const shop = Effect.scoped(program).pipe(Effect.provide(Layer.provideMerge(system, log)))
