/**
 * SavedHosts: reads and writes the file with the saved hosts.
 *
 * Guarantees: the file is replaced as a whole, or stays unchanged. Only its owner can read it.
 */
import { Effect, FileSystem } from "effect"
import { dirname } from "node:path"
import { remedyOf, troubleOf } from "../../config/FileTrouble.ts"
import type { SavedHost } from "../../config/Host.ts"
import * as HostsFile from "../../config/HostsFile.ts"
import { ExitCode } from "../parse/ExitCode.ts"
import { VerbFailed } from "../parse/Failure.ts"
import * as Paths from "../parse/Paths.ts"

/** The saved hosts by name. */
export const read = Effect.flatMap(Paths.hostsFile, (path) => {
  const hosts = HostsFile.read(path)
  return typeof hosts === "string"
    ? Effect.fail(new VerbFailed({ message: hosts, remedy: `Fix ${path}, or remove it.`, exitCode: ExitCode.config }))
    : Effect.succeed(hosts)
})

export const write = Effect.fnUntraced(function* (hosts: ReadonlyMap<string, SavedHost>) {
  const path = yield* Paths.hostsFile
  const fs = yield* FileSystem.FileSystem
  const beside = `${path}.${process.pid}`
  yield* Effect.gen(function* () {
    yield* fs.makeDirectory(dirname(path), { recursive: true, mode: 0o700 })
    yield* fs.writeFileString(beside, `${JSON.stringify(Object.fromEntries(hosts), null, 2)}\n`, { mode: 0o600 })
    yield* fs.rename(beside, path)
  }).pipe(
    Effect.mapError(
      (error) =>
        new VerbFailed({
          message: `${path} cannot be written: ${troubleOf(error)}`,
          remedy: remedyOf(error, "Check that you own the folder."),
          exitCode: ExitCode.failed
        })
    )
  )
})

export const absent = (name: string, hosts: ReadonlyMap<string, SavedHost>) =>
  new VerbFailed({
    message: `There is no host "${name}".`,
    remedy:
      hosts.size === 0
        ? "No host is saved. Add one: agentd host add NAME ssh://user@machine"
        : "List them: agentd host ls",
    exitCode: ExitCode.failed
  })
