/**
 * backend-daemon: a process in place of the daemon: it starts one command together with a reaper, and lives until it is
 * killed. Arguments: store, run id, folder, grace in ms, shell line.
 */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Duration, Effect, Layer } from "effect"
import * as fs from "node:fs"
import * as path from "node:path"
import * as CommandBackend from "../../src/runs/command/CommandBackend.ts"
import { ProcessTree } from "../../src/runs/process/ProcessTree.ts"
import { Reaper } from "../../src/runs/process/Reaper.ts"

const [store = "", runId = "", folder = "", grace = "0", shell = ""] = process.argv.slice(2)

const main = Effect.gen(function* () {
  const backend = yield* CommandBackend.make(
    {
      type: "command",
      shell,
      env: {},
      promptBy: "stdin",
      readyAfter: Duration.zero,
      killGrace: Duration.millis(Number(grace)),
      sandbox: "off",
      network: false,
      share: []
    },
    { store, environment: process.env }
  )
  yield* backend.start({
    runId,
    agent: "builder",
    prompt: "",
    cwd: folder,
    env: {},
    turnId: "turn-1",
    resume: undefined,
    mcp: {}
  })
  const reaper = yield* Reaper
  fs.writeFileSync(path.join(folder, "reaper"), String(yield* reaper.pid))
  return yield* Effect.never
}).pipe(
  Effect.scoped,
  Effect.provide(Layer.mergeAll(ProcessTree.layer, Reaper.layer({ store, grace: Number(grace) }), NodeFileSystem.layer))
)
NodeRuntime.runMain(main)
