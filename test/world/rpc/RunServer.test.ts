/** RunServer: what answers on the runs' own sockets may end and begin anew while the runs live. */
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Layer, Scope } from "effect"
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { RunSockets } from "../../../src/runs/RunSockets.ts"
import { call } from "../../../src/api/rpc/ControlClient.ts"
import { Limits } from "../../../src/board/Limits.ts"
import * as RunServer from "../../../src/api/rpc/RunServer.ts"
import { folder, inside, makeWorld } from "./World.ts"

const may = ["ask"] as const
const voices = new Map(
  ["r7", "r8"].map((runId, at) => [
    runId,
    { conversation: "web-1a2b3c4d", agent: ["builder", "reviewer"][at]!, turnId: "t1", may }
  ])
)

/** A daemon's inside, the sockets of two runs, and what begins to answer on them. */
const daemon = Effect.gen(function* () {
  const state = yield* folder
  const sockets = join(state, "sockets")
  mkdirSync(join(sockets, "left by another"), { recursive: true })
  writeFileSync(join(sockets, "left by another", "api"), "")
  const world = makeWorld({ voices })
  const context = yield* Layer.build(Layer.merge(RunSockets.layer(sockets), inside(world, join(state, "control.sock"))))
  const { clear, expect, open } = Context.get(context, RunSockets)
  yield* clear(["of a run that lives"])
  assert.deepStrictEqual(readdirSync(sockets), [])
  const of = Effect.fnUntraced(function* (runId: string) {
    const scope = yield* Scope.make()
    const socket = yield* Scope.provide(open(runId), scope)
    return { scope, runId, path: socket!.path, folder: socket!.folder }
  })
  return {
    world,
    of,
    expect,
    sockets,
    answering: Layer.build(RunServer.layer).pipe(Effect.provideContext(context), Effect.asVoid)
  }
})

const agentAt = (path: string, runId: string) =>
  Effect.map(
    call(path, (client) => client.Voice({ runId })),
    ({ agent }) => agent
  )

describe("runs' sockets", () => {
  it.live("stay while what answers on them ends and begins anew; each tells its own run", () =>
    Effect.gen(function* () {
      const { answering, of } = yield* daemon
      const [one, other] = [yield* of("r7"), yield* of("r8")]
      for (let life = 0; life < 3; life++) {
        yield* Effect.scoped(
          Effect.gen(function* () {
            yield* answering
            assert.strictEqual(yield* agentAt(one.path, "r7"), "builder")
            assert.strictEqual(yield* agentAt(other.path, "r8"), "reviewer")
            assert.match((yield* Effect.flip(agentAt(other.path, "r7"))).message, /another run/)
          })
        )
        assert.strictEqual((yield* Effect.flip(agentAt(one.path, "r7")))._tag, "DaemonUnreachable")
        assert.isTrue(existsSync(one.path))
      }
    }).pipe(Effect.scoped)
  )

  it.live("are gone with their run, and with them who is connected", () =>
    Effect.gen(function* () {
      const { answering, of, sockets } = yield* daemon
      yield* answering
      const [one, other] = [yield* of("r7"), yield* of("r8")]
      yield* call(one.path, (client) =>
        Effect.gen(function* () {
          yield* client.Voice({ runId: "r7" })
          yield* Scope.close(one.scope, Exit.void)
          assert.isFalse(existsSync(one.folder))
          assert.strictEqual((yield* Effect.flip(client.Voice({ runId: "r7" })))._tag, "RpcClientError")
        })
      )
      assert.strictEqual(yield* agentAt(other.path, "r8"), "reviewer")
      assert.lengthOf(readdirSync(sockets), 1)
    }).pipe(Effect.scoped)
  )

  it.live("let in so many calls of a run, and those of another run besides", () =>
    Effect.gen(function* () {
      const { answering, of, world } = yield* daemon
      yield* answering
      const [one, other] = [yield* of("r7"), yield* of("r8")]
      const asks = Array.from({ length: 4 * Limits.runs.calls.each }, (_, n) => n)
      const answers = yield* call(one.path, (client) =>
        Effect.forEach(asks, (n) => Effect.result(client.VoiceAsk({ runId: "r7", question: `q${n}` })), {
          concurrency: "unbounded"
        })
      )
      assert.isAtLeast(answers.filter(({ _tag }) => _tag === "Success").length, Limits.runs.calls.each)
      yield* call(other.path, (client) => client.VoiceAsk({ runId: "r8", question: "me, too" }))
      assert.include(JSON.stringify(world.commands), "me, too")
    }).pipe(Effect.scoped)
  )

  it.live("are there before the run that takes them, and go where none comes", () =>
    Effect.gen(function* () {
      const { answering, expect, of, sockets } = yield* daemon
      yield* answering
      expect("r7", true)
      expect("r8", true)
      assert.lengthOf(readdirSync(sockets), 2)
      const { path, scope } = yield* of("r7")
      assert.strictEqual(yield* agentAt(path, "r7"), "builder")
      // it is the run's now
      expect("r7", false)
      assert.strictEqual(yield* agentAt(path, "r7"), "builder")
      expect("r8", false)
      assert.lengthOf(readdirSync(sockets), 1)
      yield* Scope.close(scope, Exit.void)
      assert.lengthOf(readdirSync(sockets), 0)
      expect("r7", true)
      return sockets
    }).pipe(
      Effect.scoped,
      Effect.map((sockets) => assert.isFalse(existsSync(sockets) && readdirSync(sockets).length > 0))
    )
  )

  it.live("are not there where their path would be too long: the run is told of none", () =>
    Effect.gen(function* () {
      const state = yield* folder
      const context = yield* Layer.build(RunSockets.layer(join(state, "x".repeat(100))))
      assert.isUndefined(yield* Context.get(context, RunSockets).open("r7"))
    }).pipe(Effect.scoped)
  )
})
