/**
 * Branch: which git branch a folder is on, from git's own files: no process is
 * started. Undefined where there is no repository, or where it cannot be read.
 */
import { Effect, FileSystem } from "effect"
import { dirname, join, resolve } from "node:path"

/** Folders upwards that are looked into. */
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

/** The folder that git keeps its HEAD in: `.git`, or where a worktree's file of that name points to. */
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
