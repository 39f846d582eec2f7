/** Branch: the git branch of a folder, or the beginning of its commit. Undefined if there is no readable repository. */
import { Effect, FileSystem } from "effect"
import * as Repository from "../runs/git/Repository.ts"

const MAX_LENGTH = 256

export const of = (fs: FileSystem.FileSystem, folder: string): Effect.Effect<string | undefined> =>
  Effect.gen(function* () {
    const found = yield* Repository.find(folder)
    const head = found === undefined ? undefined : yield* Repository.headOf(found.gitDir)
    return head?.branch?.slice(0, MAX_LENGTH) ?? head?.commit?.slice(0, 8)
  }).pipe(Effect.provideService(FileSystem.FileSystem, fs))
