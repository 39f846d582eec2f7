/**
 * DaemonFile: where the program of a daemon that nobody looks at is: a module beside this one. The bundle, in which that
 * is one script, runs the script in place of this module (`scripts/bundle.ts`).
 */
import { enableCompileCache } from "node:module"
import * as V8Flags from "./V8Flags.ts"

/** `compiled`: the folder in which compiled code is kept. */
export const start = async (compiled: string | undefined): Promise<void> => {
  V8Flags.set()
  if (compiled !== undefined) enableCompileCache(compiled)
  await import("./DaemonBin.ts")
}
