/**
 * Tree: a checkout of agentd's own with a git folder of its own, which borrows the person's
 * objects: checks run in it, and what they write into its git folder harms nobody.
 *
 * Guarantees: git runs on the tree's git folder only when that has been made anew, before any
 * process can write it, and with settings of the daemon's alone: no filter runs, so that a file
 * of Git LFS is its pointer there. A tree that was cut off is made anew; what lies in
 * it beside the files of git stays.
 */
import { Effect, FileSystem } from "effect"
import * as path from "node:path"
import { keyOf } from "./OwnRecord.ts"
import * as Repository from "./Repository.ts"
import { commitAt, count, makeFolder, must, type Store, unwritable } from "./Store.ts"

/** The commits in the store that the files of a tree are of, and shall be of: with the second, the tree was cut off. */
const refsOf = (folder: string) => ({
  now: `refs/trees/${keyOf(folder)}/now`,
  next: `refs/trees/${keyOf(folder)}/next`
})

/** Brings the tree to a commit of the store: files of the last one that it does not have are gone. */
export const checkOut = Effect.fnUntraced(function* (store: Store, folder: string, commit: string) {
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
  // a full name, that no option is like: older gits know no end of options here
  yield* must({ ...inTree, command: "reset", options: [commit] })
  yield* must({ ...inStore, names: [now, commit] })
  yield* must({ ...inStore, options: ["-d"], names: [next] })
})

/** Removes the tree with all that lies in it. */
export const clear = Effect.fnUntraced(function* (store: Store | undefined, folder: string) {
  const files = yield* FileSystem.FileSystem
  yield* Effect.catchTag(files.remove(folder, { recursive: true, force: true }), "PlatformError", unwritable(folder))
  if (store === undefined) return
  for (const ref of Object.values(refsOf(folder))) {
    if ((yield* commitAt(store, ref)) !== undefined)
      yield* must({ gitDir: store.gitDir, command: "update-ref", options: ["-d"], names: [ref] })
  }
})
