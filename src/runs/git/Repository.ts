/**
 * Repository: finds the repository of a folder and its checked-out branches by reading its files. Starts no git,
 * because git would obey the repository's settings.
 *
 * Guarantees: A `.git` file is trusted only if it names a git folder, and a `.git` folder only if it is one. The search
 * ends at the first one above the folder. Changes nothing.
 */
import { Effect, FileSystem, Option } from "effect"
import * as path from "node:path"

export interface Repository {
  /** Root of the checkout. */
  readonly top: string
  /** Path of the folder relative to `top`; empty if they are the same, otherwise for example "packages/app". */
  readonly prefix: string
  /** The git folder that contains HEAD and the index. */
  readonly gitDir: string
  /**
   * The git folder that contains objects, branches and settings. Equal to `gitDir`, except in a linked work tree:
   * there, it is the git folder of the main repository.
   */
  readonly commonDir: string
}

const files = FileSystem.FileSystem

/** Maximum size of a git file that contains one line, bytes. */
const MAX_LINE = 4_096

/** The first line of a file; undefined if the file cannot be read, is not a regular file or is too large. */
export const firstLine = (file: string): Effect.Effect<string | undefined, never, FileSystem.FileSystem> =>
  Effect.flatMap(files, (files) =>
    files.stat(file).pipe(
      Effect.filterOrFail(({ size, type }) => type === "File" && Number(size) <= MAX_LINE),
      Effect.andThen(files.readFileString(file)),
      Effect.map((text) => text.split("\n")[0]!.trim()),
      Effect.orElseSucceed(() => undefined)
    )
  )

const typeOf = (file: string) =>
  Effect.flatMap(files, (files) =>
    Effect.map(Effect.option(files.stat(file)), (found) => (Option.isSome(found) ? found.value.type : undefined))
  )

/** Returns the path with links resolved, or the absolute path if that fails. */
const real = (file: string) =>
  Effect.flatMap(files, (files) => Effect.orElseSucceed(files.realPath(file), () => path.resolve(file)))

/** The git folder of a checkout; undefined if there is none. */
const gitDirOf = Effect.fnUntraced(function* (top: string) {
  const git = path.join(top, ".git")
  const type = yield* typeOf(git)
  const isGitDir = (folder: string) => Effect.map(typeOf(path.join(folder, "HEAD")), (type) => type === "File")
  // like git, passes over a folder of this name that is no git folder
  if (type === "Directory") return (yield* isGitDir(git)) ? yield* real(git) : undefined
  if (type !== "File") return undefined
  const named = /^gitdir: (.+)$/.exec((yield* firstLine(git)) ?? "")?.[1]
  if (named === undefined) return undefined
  const folder = yield* real(path.resolve(top, named))
  return (yield* isGitDir(folder)) ? folder : undefined
})

/** Only a linked work tree may have a `commondir` file, so the file is ignored elsewhere. */
const commonOf = Effect.fnUntraced(function* (gitDir: string) {
  if (path.basename(path.dirname(gitDir)) !== "worktrees") return gitDir
  const named = yield* firstLine(path.join(gitDir, "commondir"))
  return named === undefined ? gitDir : yield* real(path.resolve(gitDir, named))
})

/** Finds the repository whose checkout is the folder or contains it; undefined if there is none. */
export const find = Effect.fnUntraced(function* (folder: string) {
  const start = yield* real(folder)
  for (let top = start; ; top = path.dirname(top)) {
    const gitDir = yield* gitDirOf(top)
    if (gitDir !== undefined) {
      const found: Repository = {
        top,
        prefix: path.relative(top, start),
        gitDir,
        commonDir: yield* commonOf(gitDir)
      }
      return found
    }
    if (path.dirname(top) === top) return undefined
  }
})

export type Head =
  | { readonly branch: string; readonly commit?: undefined }
  | { readonly branch?: undefined; readonly commit: string }

/** The branch or commit in HEAD; undefined if HEAD cannot be read. */
export const headOf = (gitDir: string): Effect.Effect<Head | undefined, never, FileSystem.FileSystem> =>
  Effect.map(firstLine(path.join(gitDir, "HEAD")), (line): Head | undefined => {
    if (line === undefined) return undefined
    const branch = /^ref: refs\/heads\/(.+)$/.exec(line)?.[1]
    if (branch !== undefined) return { branch }
    return /^[0-9a-f]{40,64}$/.test(line) ? { commit: line } : undefined
  })

export interface Checkout {
  readonly folder: string
  readonly gitDir: string
  readonly branch: string | undefined
}

export const linked = Effect.fnUntraced(function* ({ commonDir }: Pick<Repository, "commonDir">) {
  const worktrees = path.join(commonDir, "worktrees")
  const names = yield* Effect.flatMap(files, (files) =>
    Effect.orElseSucceed(files.readDirectory(worktrees), () => [] as ReadonlyArray<string>)
  )
  const found: Array<{ readonly folder: string; readonly gitDir: string }> = []
  for (const name of names) {
    const gitDir = path.join(worktrees, name)
    const named = yield* firstLine(path.join(gitDir, "gitdir"))
    if (named !== undefined) found.push({ folder: path.dirname(path.resolve(gitDir, named)), gitDir })
  }
  return found
})

/** Lists the repository's own checkout and its linked work trees, without those whose folders do not exist. */
export const checkouts = Effect.fnUntraced(function* (of: Pick<Repository, "commonDir">) {
  const { commonDir } = of
  const own = path.basename(commonDir) === ".git" ? [{ folder: path.dirname(commonDir), gitDir: commonDir }] : []
  const found: Array<Checkout> = []
  for (const { folder, gitDir } of [...own, ...(yield* linked(of))]) {
    if ((yield* typeOf(path.join(folder, ".git"))) === undefined) continue
    found.push({ folder, gitDir, branch: (yield* headOf(gitDir))?.branch })
  }
  return found
})
