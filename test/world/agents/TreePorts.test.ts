/** Ports of agents of two daemons of one user. */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import * as fs from "node:fs"
import { join } from "node:path"
import { TreePorts } from "../../../src/agents/workplace/TreePorts.ts"
import { PortClaims } from "../../../src/runs/ListeningPorts.ts"
import { folder } from "../event-log/Disk.ts"

/** The folder for claims must not be the user's own. */
const apart = Effect.map(folder, (base) => join(base, "claims"))

it.effect("are different for the same project and agent, until one daemon gives them up or its state is gone", () =>
  Effect.gen(function* () {
    const base = yield* folder
    const daemon = (name: string) => {
      fs.mkdirSync(join(base, name), { recursive: true })
      return new TreePorts(join(base, name))
    }
    const [one, two] = [daemon("one"), daemon("two")]
    const first = (yield* one.give("shop-1/builder", 3, undefined))!.block
    const second = (yield* two.give("shop-1/builder", 3, undefined))!.block
    assert.isTrue(second.first >= first.first + 3 || second.first + 3 <= first.first, JSON.stringify([first, second]))
    // also after a restart of either
    assert.deepStrictEqual(yield* daemon("one").give("shop-1/builder", 3, first), { block: first })
    assert.notDeepEqual((yield* daemon("two").give("shop-1/other", 3, first))!.block, first)
    yield* one.release("shop-1/builder")
    assert.deepStrictEqual((yield* daemon("three").give("shop-1/builder", 3, undefined))!.block, first)
    fs.rmSync(join(base, "three"), { recursive: true })
    assert.deepStrictEqual((yield* daemon("four").give("shop-1/builder", 3, undefined))!.block, first)
  }).pipe(Effect.provideServiceEffect(PortClaims, apart), Effect.scoped, Effect.provide(NodeFileSystem.layer))
)
