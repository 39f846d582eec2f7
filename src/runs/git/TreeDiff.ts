/**
 * TreeDiff: compares the files of a checkout with a commit: changed, deleted and new files, as one patch.
 *
 * Guarantees: The checkout is only read, through a git folder of the daemon. No filter, driver or setting of the
 * checkout runs. A patch that is too long is cut at the end of a file or line, and `isCut` says so.
 */
import { Effect, type FileSystem } from "effect"
import * as path from "node:path"
import { OUTPUT_LIMIT } from "./Git.ts"
import * as AgentRepository from "./AgentRepository.ts"
import * as Repository from "./Repository.ts"
import {
  ask,
  type Looked,
  look,
  must,
  put,
  refOf,
  status,
  type GitStore,
  takeOver,
  type Trouble,
  unwritable
} from "./GitStore.ts"

export interface ChangedFile {
  readonly path: string
  /** Number of lines that were added and removed; null if the file is not text. */
  readonly added: number | null
  readonly removed: number | null
}

export interface TreeDiff {
  /** The commit with which the files are compared. */
  readonly base: string
  readonly files: ReadonlyArray<ChangedFile>
  /** Number of new files that are missing in the patch because there are too many. */
  readonly more: number
  /** Git's patch, without colour. */
  readonly patch: string
  readonly isCut: boolean
}

/** Maximum length of a patch, characters. */
export const MAX_PATCH = 524_288
/** Maximum number of new files whose content is shown. */
const MAX_NEW = 200

/** Object id of the empty file, which every git knows. */
const emptyOf = (commit: string): string =>
  commit.length === 40
    ? "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
    : "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813"

/**
 * Returns the commit at which the agent's work began: the merge base with the user's checkout, or the current commit.
 */
export const baseOf = Effect.fnUntraced(function* (store: GitStore, stores: string, top: string, head: string) {
  if ((yield* AgentRepository.read(stores, top)) === undefined) return head
  const person = yield* refOf(store, "HEAD")
  if (person === undefined) return head
  const answer = yield* ask({ gitDir: store.gitDir, command: "merge-base", names: [person.commit, head] })
  return answer.code === 0 ? answer.stdout.trim() : head
})

const numbers = (said: string): ReadonlyArray<ChangedFile> =>
  said.split("\0").flatMap((entry) => {
    const [, added, removed, file] = /^(\d+|-)\t(\d+|-)\t([^]+)$/.exec(entry) ?? []
    if (added === undefined || removed === undefined || file === undefined) return []
    const count = (text: string) => (text === "-" ? null : Number(text))
    return [{ path: file, added: count(added), removed: count(removed) }]
  })

/** Cuts the patch at the end of a line. */
const cut = (patch: string): string => {
  const end = patch.lastIndexOf("\n", MAX_PATCH - 1)
  return end < 0 ? "" : patch.slice(0, end + 1)
}

const compared = Effect.fnUntraced(function* (of: Looked, base: string, pointed: ReadonlyArray<string>) {
  const paths = pointed.length === 0 ? undefined : [".", ...pointed.map((file) => `:(exclude,literal)${file}`)]
  const call = { ...of, command: "diff-index", names: [base], paths } as const
  const files = numbers(yield* must({ ...call, options: ["--numstat", "-z"] }))
  const patch = yield* must({ ...call, options: ["--patch"], cuts: true })
  const isCut = patch.length >= MAX_PATCH || patch.length >= OUTPUT_LIMIT
  return { files, patch: isCut ? cut(patch) : patch, isCut }
})

/**
 * Adds new files to the index as empty files while `look` runs. Git then reads their content from the checkout and
 * creates no object.
 */
const withNew = <A>(
  of: Looked,
  base: string,
  files: ReadonlyArray<string>,
  look: Effect.Effect<A, Trouble, FileSystem.FileSystem>
) => {
  if (files.length === 0) return look
  const head = path.join(of.gitDir, "HEAD")
  const entry = (file: string) => ["--cacheinfo", `100644,${emptyOf(base)},${file}`]
  return Effect.gen(function* () {
    const stands = yield* Repository.firstLine(head)
    // if this is interrupted here, the index is rebuilt the next time
    yield* put(head, "ref: refs/heads/none\n")
    const entries = files.flatMap(entry)
    const { code } = yield* ask({ ...of, command: "update-index", options: ["--add", ...entries] })
    // a new file replaced a folder, or a new folder replaced a file
    if (code !== 0) yield* must({ ...of, command: "update-index", options: ["--add", "--replace", ...entries] })
    const found = yield* look
    yield* must({ ...of, command: "update-index", options: ["--force-remove"], paths: files })
    // replaced entries are restored when the index is rebuilt
    if (stands !== undefined && code === 0) yield* put(head, `${stands}\n`)
    return found
  }).pipe(Effect.catchTag("PlatformError", unwritable(of.gitDir)))
}

/**
 * Compares a checkout with its base commit. Changes the index, so it must not run concurrently for one checkout.
 * Undefined if the folder is not a checkout or has no commit yet.
 */
export const diff = Effect.fnUntraced(function* (store: GitStore, stores: string, folder: string) {
  const found = yield* Repository.find(folder)
  const head = yield* takeOver(store, folder)
  if (found === undefined || head === undefined) return undefined
  const { top } = found
  const of = yield* look(store, top, head, ".diff")
  const { lines, pointed } = yield* status(of, "all")
  // the path of an embedded repository ends with a slash; its content is not compared
  const fresh = lines.flatMap((line) => (line.startsWith("?? ") && !line.endsWith("/") ? [line.slice(3)] : []))
  const base = yield* baseOf(store, stores, top, head)
  const shown = fresh.slice(0, MAX_NEW)
  const hidden = [...pointed].map((line) => line.slice(3))
  const changed = yield* withNew(of, base, shown, compared(of, base, hidden))
  const made: TreeDiff = { base, ...changed, more: fresh.length - shown.length }
  return made
})
