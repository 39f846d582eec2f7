/** The README's example. */
import { Effect, Layer, Schema, Stream } from "effect"
import * as ActorSystem from "../../../src/core/event-actor/ActorSystem.ts"
import { CommitScope } from "../../../src/core/event-actor/CommitScope.ts"
import * as DeadLetters from "../../../src/core/event-actor/DeadLetters.ts"
import * as EventLoop from "../../../src/core/event-actor/EventLoop.ts"
import { actor } from "../../../src/core/event-actor/EventSourcedActor.ts"
import { fold } from "../../../src/core/event-actor/ScopeFold.ts"
import * as EventKinds from "../../../src/core/event-log/EventKinds.ts"
import { EventLog } from "../../../src/core/event-log/EventLog.ts"
import * as InvariantGuard from "../../../src/core/event-log/InvariantGuard.ts"
import { Log } from "../../../src/core/event-log/Log.ts"
import { LogRules } from "../../../src/core/event-log/LogRules.ts"
import * as MemoryEventLog from "../../../src/core/event-log/MemoryEventLog.ts"
import * as Supervisor from "../../../src/core/supervision/Supervisor.ts"

type Command = { readonly _tag: "Press" | "Break" }

// A message becomes a rune, and the rune makes the state: nothing else does.
const counter = actor<number, Command>({
  initial: 0,
  decide: (_, { _tag }) => {
    if (_tag === "Break") throw new Error("a bug")
    return { runes: [{ kind: "button.pressed", payload: {} }] }
  },
  apply: (presses) => presses + 1
})

// A process begins with the state that its log tells, and a supervisor keeps the actor running.
const begin = Effect.gen(function* () {
  const runes = yield* Stream.runCollect((yield* EventLog).read({ stream: "hall" }))
  const { button } = fold({ button: counter }, runes)
  const scope = new CommitScope(yield* ActorSystem.ActorSystem, { id: "hall", stream: "hall" })
  const handle = scope.add("button", counter, button)
  const supervisor = yield* Supervisor.make({ name: "halls", intensity: 3, period: "10 seconds", children: [scope] })
  return { button: handle, supervisor }
})

const rules = Layer.succeed(LogRules, {
  kinds: EventKinds.make({ "button.pressed": EventKinds.kind(Schema.Struct({})) }),
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

export const hall = Effect.gen(function* () {
  const first = Effect.gen(function* () {
    const { button, supervisor } = yield* begin
    yield* button.ask({ _tag: "Press" })
    // the actor crashes, and its supervisor starts it again: nothing that was written is lost
    yield* Effect.exit(button.ask({ _tag: "Break" }))
    yield* button.ask({ _tag: "Press" })
    return yield* supervisor.trace
  })
  const trace = yield* Effect.scoped(first)
  const second = yield* Effect.scoped(begin)
  return { steps: trace.map(({ _tag }) => _tag), presses: second.button.state }
}).pipe(Effect.provide(Layer.provideMerge(system, log)))
