/**
 * GitCheckout: a checkout with its own git folder, which borrows objects from the user's repository. A goal's checks
 * run in this tree. Their changes to its git folder affect no other repository.
 *
 * Guarantees: Git runs in the tree's git folder only directly after the folder was created, before any other process
 * can write it. It uses only the daemon's settings. No filter runs, so Git LFS files appear as pointers. An interrupted
 * checkout is repeated. Untracked files in the tree are not removed.
 */
import { Effect, FileSystem } from "effect"
import * as path from "node:path"
import { keyOf } from "./AgentRepositoryRecord.ts"
import * as Repository from "./Repository.ts"
import { commitAt, count, makeFolder, must, type GitStore, unwritable } from "./GitStore.ts"

/**
 * Refs in the store: `now` is the tree's current commit, `next` the commit that is being checked out. If `next` exists,
 * a checkout was interrupted.
 */
const refsOf = (folder: string) => ({
  now: `refs/trees/${keyOf(folder)}/now`,
  next: `refs/trees/${keyOf(folder)}/next`
})

/** Checks out a commit. Files that only the previous commit contains are removed. */
export const checkOut = Effect.fnUntraced(function* (store: GitStore, folder: string, commit: string) {
  const files = yield* FileSystem.FileSystem
  const gitDir = path.join(folder, ".git")
  const { next, now } = refsOf(folder)
  const inStore = { gitDir: store.gitDir, command: "update-ref" } as const
  const isCutOff = (yield* commitAt(store, next)) !== undefined
  const isThere = (yield* Repository.find(folder))?.top === folder
  const was = isThere && !isCutOff ? yield* commitAt(store, now) : undefined
  yield* must({ ...inStore, names: [next, commit] })
  yield* files
    .remove(was === undefined ? folder : gitDir, { recursive: true, force: true })
    .pipe(
      Effect.andThen(files.makeDirectory(folder, { recursive: true, mode: 0o700 })),
      Effect.catchTag("PlatformError", unwritable(folder))
    )
  yield* makeFolder(gitDir, { bare: false, borrows: store.person, head: "ref: refs/heads/checks" })
  const refs = was === undefined ? [next] : [next, now]
  yield* must({ gitDir, command: "fetch", names: [store.gitDir, ...refs.map((ref) => `+${ref}:${ref}`)] })
  const inTree = { gitDir, workTree: folder }
  yield* count(gitDir, commit)
  if (was !== undefined) yield* must({ ...inTree, command: "read-tree", names: [was] })
  // a full commit id cannot be mistaken for an option; older gits do not know --end-of-options here
  yield* must({ ...inTree, command: "reset", options: [commit] })
  yield* must({ ...inStore, names: [now, commit] })
  yield* must({ ...inStore, options: ["-d"], names: [next] })
})

export const clear = Effect.fnUntraced(function* (store: GitStore | undefined, folder: string) {
  const files = yield* FileSystem.FileSystem
  yield* Effect.catchTag(files.remove(folder, { recursive: true, force: true }), "PlatformError", unwritable(folder))
  if (store === undefined) return
  for (const ref of Object.values(refsOf(folder))) {
    if ((yield* commitAt(store, ref)) !== undefined)
      yield* must({ gitDir: store.gitDir, command: "update-ref", options: ["-d"], names: [ref] })
  }
})
