/**
 * RunFolder: a folder for the files that agentd creates for one run, for example the prompt and the MCP config.
 *
 * Guarantees: The folder has mode 0700, its files 0600. A resumed run finds the files that it was started with. The
 * folder is removed with the run. Folders of ended runs that an earlier daemon left are removed when the next daemon
 * starts.
 */
import { Effect, FileSystem, type PlatformError, type Scope } from "effect"
import { createHash } from "node:crypto"
import * as path from "node:path"
import { Keeper } from "./keeper/Keeper.ts"
import { BackendError, type RunSpec } from "./Backend.ts"
import type { Host } from "./Host.ts"

const nameOf = (runId: string) => createHash("sha256").update(runId).digest("hex").slice(0, 12)

const failed = ({ message }: PlatformError.PlatformError) =>
  new BackendError({
    message: `a file for the run could not be written: ${message}`,
    remedy: "free disk space for the state directory and for the folder for temporary files",
    fatal: false
  })

const folderOf = Effect.fnUntraced(function* ({ runs }: Host, { runId }: RunSpec) {
  const files = yield* FileSystem.FileSystem
  if (runs === undefined) return yield* files.makeTempDirectoryScoped({ prefix: "agentd-run-" })
  const keeper = yield* Keeper
  const folder = path.join(runs, nameOf(runId))
  return yield* Effect.acquireRelease(
    Effect.as(files.makeDirectory(folder, { recursive: true, mode: 0o700 }), folder),
    () => (keeper.isLeaving() ? Effect.void : Effect.ignore(files.remove(folder, { recursive: true, force: true })))
  )
})

/** Writes a file when the run is first started, but not when it is resumed. */
export const file = (
  host: Host,
  spec: RunSpec,
  name: string,
  content: string
): Effect.Effect<string, BackendError, FileSystem.FileSystem | Scope.Scope> =>
  Effect.gen(function* () {
    const files = yield* FileSystem.FileSystem
    const at = path.join(yield* folderOf(host, spec), name)
    if (spec.adopt === undefined) yield* files.writeFileString(at, content, { mode: 0o600 })
    return at
  }).pipe(Effect.mapError(failed))

export const within = (
  host: Host,
  spec: RunSpec,
  name: string
): Effect.Effect<string, BackendError, FileSystem.FileSystem | Scope.Scope> =>
  Effect.gen(function* () {
    const files = yield* FileSystem.FileSystem
    const at = path.join(yield* folderOf(host, spec), name)
    yield* files.makeDirectory(at, { recursive: true, mode: 0o700 })
    return at
  }).pipe(Effect.mapError(failed))

/** Removes the folders of all runs that are not in `runIds`. */
export const clear = Effect.fnUntraced(function* (folder: string, runIds: Iterable<string>) {
  const files = yield* FileSystem.FileSystem
  const kept = new Set([...runIds].map(nameOf))
  const names = yield* Effect.orElseSucceed(files.readDirectory(folder), () => [])
  const left = names.filter((name) => !kept.has(name))
  yield* Effect.forEach(left, (name) => Effect.ignore(files.remove(path.join(folder, name), { recursive: true })), {
    discard: true
  })
})
