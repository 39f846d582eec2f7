/** LastSeen: keeps when each saved host has last answered, as the time of a file. */
import { Effect, FileSystem } from "effect"
import { join } from "node:path"

const fileOf = (state: string, host: string): string => join(state, "hosts", host)

/** When the host has last answered, in ms since the epoch; 0: never, or it is this machine. */
export const lastSeen = (state: string, host: string | null) =>
  Effect.flatMap(FileSystem.FileSystem, (fs) => fs.stat(fileOf(state, host ?? ""))).pipe(
    Effect.map(({ mtime }) => (host !== null && mtime._tag === "Some" ? mtime.value.getTime() : 0)),
    Effect.orElseSucceed(() => 0)
  )

/** Notes that the host answers now. */
export const noted = (state: string, host: string) =>
  Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    yield* fs.makeDirectory(join(state, "hosts"), { recursive: true, mode: 0o700 })
    yield* fs.writeFileString(fileOf(state, host), "")
  }).pipe(Effect.ignore)
