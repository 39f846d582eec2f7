/**
 * ExecBackend: runs any program that exchanges agentd's own records over its standard input and output
 * (docs/exec-backend.md). One process is one session. It takes one turn after another, asks before it uses a tool,
 * and can be interrupted within a turn.
 *
 * Guarantees: Those of ExecRun. The program runs under RunProcess, so every process that it starts ends with the run.
 * Like the program of any other backend, it is confined, limited, and resumed after a restart of the daemon.
 */
import { Effect, type FileSystem } from "effect"
import * as path from "node:path"
import type * as Config from "../../config/BackendConfig.ts"
import { type Backend, BackendError, type RunSpec } from "../Backend.ts"
import * as FileContents from "../FileContents.ts"
import * as GatewayMeter from "../GatewayMeter.ts"
import type { Host } from "../Host.ts"
import * as OrphanRuns from "../OrphanRuns.ts"
import * as KeptProcess from "../process/KeptProcess.ts"
import type { ProcessTree } from "../process/ProcessTree.ts"
import type { Reaper } from "../process/Reaper.ts"
import * as RunProcess from "../process/RunProcess.ts"
import * as ConfinedSpawn from "../sandbox/ConfinedSpawn.ts"
import { services } from "../CapturedServices.ts"
import * as ExecRun from "./ExecRun.ts"

const start = Effect.fnUntraced(function* (config: Config.ExecBackend, host: Host, spec: RunSpec) {
  if (config.argv.length === 0)
    return yield* new BackendError({ message: "argv is empty", remedy: "name a program in argv", fatal: true })
  // The queue is acquired first, so that it is released last when the scope closes.
  const queue = yield* ExecRun.queue
  const { argv, options } = ConfinedSpawn.outlined(config, host, spec)
  // The folder must exist now, because a confined program sees only files that exist when it starts.
  const folder = yield* FileContents.folderOf(host, spec)
  const enclosure = yield* ConfinedSpawn.make({ ...options, files: [folder.path] })
  const program = yield* RunProcess.make({
    store: host.store,
    runId: spec.runId,
    ...(yield* enclosure.start(argv, path.resolve(spec.cwd, config.cwd ?? "."))),
    env: enclosure.env,
    limits: spec.limits,
    keepInput: true,
    keeps: true,
    takesUp: spec.adopt !== undefined,
    grace: config.killGrace
  })
  const read = yield* FileContents.reader
  const run = yield* ExecRun.make({ config, spec, program, read, folder }, queue)
  return GatewayMeter.metered(run, enclosure.passed)
})

/** Whether the program was sent its start record and its first turn. */
const isBegun = (runId: string) =>
  KeptProcess.isHeldWith(runId, (inputs, point) => point !== undefined || inputs.length > 1)

export const make = Effect.fnUntraced(function* (config: Config.ExecBackend, host: Host) {
  const context = yield* services<ProcessTree | Reaper | FileSystem.FileSystem>()
  const backend: Backend = {
    name: "exec",
    turns: true,
    // a program that was not sent its first input is not resumed, but started again
    holds: (runId) => Effect.provideContext(isBegun(runId), context),
    drop: (runId) => Effect.provideContext(OrphanRuns.drop(host.store, runId), context),
    forget: (runId) => Effect.provideContext(KeptProcess.forget(runId), context),
    start: (spec) => start(config, host, spec).pipe(Effect.provideContext(context))
  }
  return backend
})
