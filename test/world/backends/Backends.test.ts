import { assert, describe, it } from "@effect/vitest"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { Context, Effect, Exit, Layer, Schema, Scope, Stream } from "effect"
import { Backends } from "../../../src/runs/Backends.ts"
import { ProcessTree } from "../../../src/runs/process/ProcessTree.ts"
import { RunSockets } from "../../../src/runs/RunSockets.ts"
import { Reaper } from "../../../src/runs/process/Reaper.ts"
import { BackendConfig } from "../../../src/config/BackendConfig.ts"

const alive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

describe("Backends", () => {
  it.live("a run ends with its own scope, however long the backend lives", () =>
    Effect.gen(function* () {
      const store = "backends-test"
      const layer = Backends.layer({ store, environment: { ...process.env } }).pipe(
        Layer.provide(Layer.mergeAll(Reaper.layer({ store, grace: "1 second" }), RunSockets.layerNone)),
        Layer.provide(ProcessTree.layer),
        Layer.provide(NodeFileSystem.layer)
      )
      const { make } = Context.get(yield* Layer.build(layer), Backends)
      const config = Schema.decodeUnknownSync(BackendConfig)({
        type: "command",
        argv: ["sleep", "1000"],
        readyAfter: "0ms",
        killGrace: "100ms"
      })
      const backend = yield* make(config)
      const own = yield* Scope.make()
      const run = yield* backend
        .start({
          runId: "run-1",
          agent: "a",
          turnId: "t",
          prompt: "",
          cwd: "/",
          env: {},
          resume: undefined,
          mcp: {}
        })
        .pipe(Scope.provide(own))
      const [first] = yield* Stream.runCollect(Stream.take(run.events, 1))
      const pid = first?._tag === "Started" ? first.pid! : 0
      assert.isTrue(alive(pid))
      yield* Scope.close(own, Exit.void)
      assert.isFalse(alive(pid))
    }).pipe(Effect.scoped)
  )
})
