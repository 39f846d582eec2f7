/**
 * AcpBackend: any agent that speaks the Agent Client Protocol over its standard input
 * and output. One process is one session, which takes one turn after the other.
 *
 * Guarantees: those of AcpRun; the agent is a process of RunProcess, so that all it
 * starts ends with the run, also where what was started is only a launcher of the agent.
 */
import { Effect } from "effect"
import * as path from "node:path"
import type * as Config from "../../config/BackendConfig.ts"
import * as AcpRun from "./AcpRun.ts"
import * as AcpTerminals from "./AcpTerminals.ts"
import { type Backend, BackendError, type RunSpec } from "../Backend.ts"
import type { Host } from "../command/CommandBackend.ts"
import type { ProcessTree } from "../process/ProcessTree.ts"
import type { Reaper } from "../process/Reaper.ts"
import type { Environment } from "../process/ChildProcess.ts"
import * as RunProcess from "../process/RunProcess.ts"
import * as Workspace from "../model/Workspace.ts"
import { services } from "../Services.ts"

const start = Effect.fnUntraced(function* (config: Config.AcpBackend, host: Host, spec: RunSpec) {
  const [binary, ...args] = config.argv
  if (binary === undefined)
    return yield* new BackendError({ message: "argv is empty", remedy: "name a program in argv", fatal: true })
  const cwd = path.resolve(spec.cwd, config.cwd ?? ".")
  const env: Environment = {
    ...RunProcess.inheritable(host.environment),
    ...config.env,
    ...spec.env,
    AGENTD_AGENT: spec.agent
  }
  const mark = { store: host.store, runId: spec.runId }
  const grace = config.killGrace
  const program = yield* RunProcess.make({ ...mark, argv: [binary, ...args], cwd, env, keepInput: true, grace })
  // where no path can be checked, the agent reads and writes its files by itself
  const open = yield* Workspace.Opener
  const workspace = yield* open(spec.cwd).pipe(
    Effect.catchTag("FileFailed", ({ message }) =>
      Effect.as(Effect.logWarning(`${spec.agent} reads and writes its files by itself: ${message}`), undefined)
    )
  )
  const context = yield* services<ProcessTree | Reaper>()
  return yield* AcpRun.make({
    config,
    spec,
    cwd,
    program,
    workspace,
    terminals: (notice, written) =>
      AcpTerminals.make({ ...mark, cwd, env, grace, workspace, notice, written }).pipe(Effect.provideContext(context))
  })
})

/** The backend of one agent. */
export const make = Effect.fnUntraced(function* (config: Config.AcpBackend, host: Host) {
  const context = yield* services<ProcessTree | Reaper>()
  const backend: Backend = {
    name: "acp",
    turns: true,
    start: (spec) => start(config, host, spec).pipe(Effect.provideContext(context))
  }
  return backend
})
