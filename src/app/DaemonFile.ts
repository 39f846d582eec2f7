/**
 * DaemonFile: where the program of a daemon that nobody looks at is: a module beside this one. The bundle, in which that
 * is one script, runs the script in place of this module (`scripts/bundle.ts`).
 *
 * The log's thread boots while all other code is loaded; no flag of V8's is set from then on.
 */
import { enableCompileCache } from "node:module"
import { LogWorker } from "../event-log/LogWorker.ts"
import { logThread } from "../event-log/ThreadFile.ts"
import * as V8Flags from "./V8Flags.ts"

/** `compiled`: the folder in which compiled code is kept. */
export const start = async (compiled: string | undefined): Promise<void> => {
  V8Flags.set()
  if (compiled !== undefined) enableCompileCache(compiled)
  const thread = new LogWorker(logThread())
  const daemon = await import("./DaemonBin.ts")
  daemon.start(thread)
}
