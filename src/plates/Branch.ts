/**
 * Branch: finds the git branch of a folder by reading git's files, without starting a process. The result is undefined
 * if there is no repository, or if it cannot be read.
 */
import { Effect, FileSystem } from "effect"
import { dirname, join, resolve } from "node:path"

/** Number of parent folders to search for a repository. */
const MAX_DEPTH = 32
const MAX_BYTES = 4_096
const HEAD = /^ref: refs\/heads\/(.{1,256})$/
const DETACHED = /^[0-9a-f]{40,64}$/

const readSmall = (fs: FileSystem.FileSystem, path: string): Effect.Effect<string | undefined> =>
  Effect.gen(function* () {
    const info = yield* fs.stat(path)
    if (info.type !== "File" || info.size > MAX_BYTES) return undefined
    return (yield* fs.readFileString(path)).trim()
  }).pipe(Effect.orElseSucceed(() => undefined))

/** The folder that contains git's HEAD: `.git`, or the folder that a worktree's `.git` file points to. */
const gitFolder = Effect.fnUntraced(function* (fs: FileSystem.FileSystem, from: string) {
  let folder = from
  for (let depth = 0; depth < MAX_DEPTH; depth++) {
    const git = join(folder, ".git")
    if (yield* Effect.orElseSucceed(fs.exists(git), () => false)) {
      const pointer = /^gitdir: (.+)$/.exec((yield* readSmall(fs, git)) ?? "")
      return pointer === null ? git : resolve(folder, pointer[1]!)
    }
    const parent = dirname(folder)
    if (parent === folder) return undefined
    folder = parent
  }
  return undefined
})

export const of = Effect.fnUntraced(function* (fs: FileSystem.FileSystem, folder: string) {
  const git = yield* gitFolder(fs, folder)
  if (git === undefined) return undefined
  const head = (yield* readSmall(fs, join(git, "HEAD"))) ?? ""
  if (DETACHED.test(head)) return head.slice(0, 8)
  return HEAD.exec(head)?.[1]
})
