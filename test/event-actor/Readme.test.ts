/** The README's example, as it stands there. */
import { assert, it } from "@effect/vitest"
import { Effect, Layer, Logger } from "effect"
import { readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as ActorSystem from "../../src/event-actor/ActorSystem.ts"
import type { CommitScope } from "../../src/event-actor/CommitScope.ts"
import * as DeadLetters from "../../src/event-actor/DeadLetters.ts"
import * as EventLoop from "../../src/event-actor/EventLoop.ts"
import type { Member } from "../../src/event-actor/Member.ts"
import * as Supervisor from "../../src/supervision/Supervisor.ts"
import { MemoryLog } from "./Lab.ts"

const readme = readFileSync(join(import.meta.dirname, "../../src/event-actor/README.md"), "utf8")
const example = /```ts\n([\s\S]*?)```/.exec(readme)![1]!

interface Shop {
  readonly scope: CommitScope
  readonly sales: Member<number, object>
  readonly money: Member<number, object>
}

it.live("the README's example does what it says", () => {
  const log = new MemoryLog()
  const said: Array<unknown> = []
  const logger = Logger.make<unknown, void>(({ message }) => void said.push(message))
  return Effect.gen(function* () {
    // beside this file, so that its imports lead where the README's would
    const file = join(import.meta.dirname, `ReadmeExample${process.pid}.ts`)
    writeFileSync(file, example)
    const { shop } = (yield* Effect.promise(() => import(file)).pipe(
      Effect.ensuring(Effect.sync(() => rmSync(file)))
    )) as { readonly shop: Effect.Effect<Shop, never, ActorSystem.ActorSystem> }
    const { money, sales, scope } = yield* shop
    const supervisor = yield* Supervisor.make({ name: "shops" })
    yield* supervisor.startChild(scope)
    const { state } = yield* sales.ask({ _tag: "Sell", cents: 350 })
    assert.deepStrictEqual([state, money.state], [1, 350])
    const refused = (yield* Effect.flip(sales.ask({ _tag: "Sell", cents: 0 }))) as { readonly why: string }
    assert.strictEqual(refused.why, "illegal")
    assert.deepStrictEqual(
      log.appends.map((runes) => runes.map(({ kind }) => kind)),
      [["till.sold", "drawer.filled"]]
    )
    assert.include(JSON.stringify(said), "receipt 1: 350")
  }).pipe(
    Effect.scoped,
    Effect.provide([
      ActorSystem.layer({ log, strict: true }).pipe(Layer.provide([DeadLetters.layerMemory(), EventLoop.layer])),
      Logger.layer([logger])
    ])
  )
})
