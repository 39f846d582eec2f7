/** The README's example. */
import { Duration, Effect, FileSystem, Layer, Stream } from "effect"
import type { RunEvent, RunSpec } from "../../../src/runs/Backend.ts"
import * as CommandBackend from "../../../src/runs/command/CommandBackend.ts"
import { ProcessTree } from "../../../src/runs/process/ProcessTree.ts"
import { Reaper } from "../../../src/runs/process/Reaper.ts"

const spec: RunSpec = {
  runId: "run-1",
  agent: "greeter",
  turnId: "turn-1",
  prompt: "hello\n",
  cwd: "/",
  env: { NAME: "Ada" },
  resume: undefined,
  mcp: {}
}

const program = Effect.gen(function* () {
  const backend = yield* CommandBackend.make(
    {
      type: "command",
      shell: 'read line; echo "$line, $NAME"; sleep 1000 & exit 3',
      env: {},
      promptBy: "stdin",
      readyAfter: Duration.seconds(1),
      killGrace: Duration.seconds(5),
      sandbox: "off",
      network: false,
      share: []
    },
    { store: "example", environment: process.env }
  )
  const run = yield* backend.start(spec)
  // `Exited` comes when nothing of the run is left: the sleep that it left behind was ended.
  return yield* Stream.runCollect(run.events)
})

const said = (event: RunEvent): string =>
  event._tag === "Delta" ? event.text : event._tag === "Exited" ? event.outcome._tag : event._tag

/** The files are only asked for where a prompt goes by file. */
export const events = Effect.scoped(Effect.map(program, (all) => all.map(said))).pipe(
  Effect.provide(Layer.mergeAll(ProcessTree.layer, Reaper.layerNone, FileSystem.layerNoop({})))
)
