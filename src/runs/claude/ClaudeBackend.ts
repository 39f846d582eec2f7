/**
 * ClaudeBackend: runs the Claude Code CLI. One process is one session. It takes one turn after another, asks before it
 * uses a tool, and can be interrupted within a turn.
 *
 * Guarantees: those of ClaudeRun. The program is started by RunProcess, so that everything it
 * starts ends with the run. This includes processes that its tools have put into separate sessions.
 */
import { Effect, type FileSystem } from "effect"
import type * as Config from "../../config/BackendConfig.ts"
import type { Backend } from "../Backend.ts"
import * as ClaudeCommand from "./ClaudeCommand.ts"
import * as FileContents from "../FileContents.ts"
import * as ClaudeRun from "./ClaudeRun.ts"
import * as ClaudeSessions from "./ClaudeSessions.ts"
import type { Host } from "../Host.ts"
import * as OrphanRuns from "../OrphanRuns.ts"
import * as KeptProcess from "../process/KeptProcess.ts"
import type { ProcessTree } from "../process/ProcessTree.ts"
import type { Reaper } from "../process/Reaper.ts"
import { services } from "../CapturedServices.ts"

export const make = Effect.fnUntraced(function* (config: Config.ClaudeBackend, host: Host) {
  const context = yield* services<ProcessTree | Reaper | FileSystem.FileSystem>()
  const read = yield* FileContents.reader
  const backend: Backend = {
    name: "claude",
    turns: true,
    // A run that has not received its first input is not resumed but started again.
    holds: (runId) => Effect.provideContext(KeptProcess.isHeld(runId, { given: true }), context),
    drop: (runId) => Effect.provideContext(OrphanRuns.drop(host.store, runId), context),
    forget: (runId) => Effect.provideContext(KeptProcess.forget(runId), context),
    start: (spec) =>
      Effect.gen(function* () {
        const { command, env } = yield* ClaudeCommand.prepare(config, host, spec)
        const holder = (sessionId: string, pid?: number) =>
          Effect.provideContext(ClaudeSessions.holder(sessionId, { pid, runId: spec.runId }, env), context)
        return yield* ClaudeRun.make({ config, spec, command, holder, read })
      }).pipe(Effect.provideContext(context))
  }
  return backend
})
