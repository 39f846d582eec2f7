/**
 * RunFolder: a folder for the files that agentd makes for one run: its prompt, the servers that it is given.
 *
 * Guarantees: the folder is 0700, its files 0600; a run that is taken up finds the files that it was started with; it
 * goes with the run, and what an earlier daemon left of runs that are over goes when the next one starts.
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
    remedy: "make room in the state folder and in the folder for temporary files",
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

/** A file of the run's, by its name: it is written when the run is started. */
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

/** Clears away what belongs to none of these runs. */
export const clear = Effect.fnUntraced(function* (folder: string, runIds: Iterable<string>) {
  const files = yield* FileSystem.FileSystem
  const kept = new Set([...runIds].map(nameOf))
  const names = yield* Effect.orElseSucceed(files.readDirectory(folder), () => [])
  const left = names.filter((name) => !kept.has(name))
  yield* Effect.forEach(left, (name) => Effect.ignore(files.remove(path.join(folder, name), { recursive: true })), {
    discard: true
  })
})
