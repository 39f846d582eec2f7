/**
 * RetiredBackend: stands for a backend that agentd no longer has, so that old configs and logs still open.
 *
 * Guarantees: It starts no run: each start fails permanently with the remedy. A run that an earlier version left to the
 * keeper is ended with all its processes, and the keeper's data about it is deleted.
 */
import { Effect } from "effect"
import { type BackendConfig, retired } from "../config/BackendConfig.ts"
import { type Backend, BackendError } from "./Backend.ts"
import { services } from "./CapturedServices.ts"
import type { Host } from "./Host.ts"
import * as OrphanRuns from "./OrphanRuns.ts"
import * as KeptProcess from "./process/KeptProcess.ts"
import type { ProcessTree } from "./process/ProcessTree.ts"

export const make = Effect.fnUntraced(function* (config: BackendConfig, host: Host) {
  const context = yield* services<ProcessTree>()
  const backend: Backend = {
    name: config.type,
    turns: true,
    drop: (runId) => Effect.provideContext(OrphanRuns.drop(host.store, runId), context),
    forget: (runId) => Effect.provideContext(KeptProcess.forget(runId), context),
    start: () => new BackendError({ ...retired(config)!, fatal: true })
  }
  return backend
})
