/**
 * CodexBackend: runs OpenAI Codex by its app-server. One process is one thread. It takes one turn after another, asks
 * before it changes something, and can be interrupted within a turn.
 *
 * Guarantees: those of LineRun. The program is started by RunProcess, so that everything it starts ends with the run.
 */
import { Effect, type FileSystem } from "effect"
import type * as Config from "../../config/BackendConfig.ts"
import type { Backend, RunSpec } from "../Backend.ts"
import { services } from "../CapturedServices.ts"
import * as FileContents from "../FileContents.ts"
import * as GatewayMeter from "../GatewayMeter.ts"
import type { Host } from "../Host.ts"
import * as LineRun from "../line/LineRun.ts"
import * as OrphanRuns from "../OrphanRuns.ts"
import * as Checkpoint from "../process/Checkpoint.ts"
import * as InputRecords from "../process/InputRecords.ts"
import * as KeptProcess from "../process/KeptProcess.ts"
import type { ProcessTree } from "../process/ProcessTree.ts"
import type { Reaper } from "../process/Reaper.ts"
import * as RunProcess from "../process/RunProcess.ts"
import * as CodexCommand from "./CodexCommand.ts"
import { CodexStream, type KnownStream, type Note, type Session } from "./CodexStream.ts"

const sessionOf = ({ resume }: RunSpec): Session => {
  if (resume === undefined) return { _tag: "New" }
  return resume.fork ? { _tag: "Forked", from: resume.sessionId } : { _tag: "Resumed", id: resume.sessionId }
}

const start = Effect.fnUntraced(function* (config: Config.CodexBackend, host: Host, spec: RunSpec) {
  const { command, folder, passed, thread } = yield* CodexCommand.prepare(config, host, spec)
  const { killGrace, silence, startTimeout } = config
  const run = yield* LineRun.make<Note>({
    name: "codex",
    title: "Codex",
    spec,
    startTimeout,
    silence,
    killGrace,
    read: yield* FileContents.reader,
    folder,
    open: Effect.fnUntraced(function* (count) {
      const how = yield* command
      const program = yield* RunProcess.make({ ...how, count, keeps: true, takesUp: spec.adopt !== undefined })
      const known = Checkpoint.of<LineRun.Rest<KnownStream>>(program)?.state.stream
      const options = { pid: program.pid, session: sessionOf(spec), thread, given: Object.keys(spec.mcp) }
      return { program, protocol: new CodexStream(options, known) }
    })
  })
  return GatewayMeter.metered(run, passed)
})

/** Whether a run that an earlier daemon left has received its first input. If not, the run is started again. */
const isHeld = (runId: string) =>
  KeptProcess.isHeldWith(
    runId,
    (inputs, point) => point !== undefined || InputRecords.notesOf<Note>(inputs).some(({ say }) => say === "turn")
  )

export const make = Effect.fnUntraced(function* (config: Config.CodexBackend, host: Host) {
  const context = yield* services<ProcessTree | Reaper | FileSystem.FileSystem>()
  const backend: Backend = {
    name: "codex",
    turns: true,
    holds: (runId) => Effect.provideContext(isHeld(runId), context),
    drop: (runId) => Effect.provideContext(OrphanRuns.drop(host.store, runId), context),
    forget: (runId) => Effect.provideContext(KeptProcess.forget(runId), context),
    start: (spec) => Effect.provideContext(start(config, host, spec), context)
  }
  return backend
})
