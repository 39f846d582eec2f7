/**
 * GitFolders: which folders outside a workspace its git needs, and which of their files
 * nobody may change from within.
 *
 * A commit writes to the repository's `.git`, which for a worktree lies in another
 * checkout. What a person's git would run or obey (hooks, config) stays read-only, as do
 * the other worktrees' and the main checkout's own index and HEAD.
 *
 * Guarantees: a `.git` file, which an agent may have written, is believed only when what it
 * names is a repository that names it back. Reads the file system, changes nothing.
 */
import * as fs from "node:fs"
import * as path from "node:path"

export interface GitFolders {
  /** The checkout that the workspace is a folder of, where it is not its root. */
  readonly around: string | undefined
  /** In this order, each list after the one before it. */
  readonly writable: ReadonlyArray<string>
  readonly readOnly: ReadonlyArray<string>
  /** A worktree's own folder among the read-only ones of others, and what in it is read-only again. */
  readonly own: { readonly folder: string; readonly readOnly: ReadonlyArray<string> } | undefined
}

const attempt = <A>(read: () => A): A | undefined => {
  try {
    return read()
  } catch {
    return undefined
  }
}

const first = (file: string): string | undefined => attempt(() => fs.readFileSync(file, "utf8").split("\n")[0]?.trim())

const existing = (folder: string, ...names: ReadonlyArray<string>) =>
  names.map((name) => path.join(folder, name)).filter((file) => attempt(() => fs.lstatSync(file)) !== undefined)

/** The folders that a worktree's `.git` file names, if they name it back. */
const linked = (file: string): Omit<GitFolders, "around"> | undefined => {
  const named = /^gitdir: (.+)$/.exec(first(file) ?? "")?.[1]
  const folder =
    named === undefined ? undefined : attempt(() => fs.realpathSync(path.resolve(path.dirname(file), named)))
  if (folder === undefined || path.basename(path.dirname(folder)) !== "worktrees") return undefined
  const common = path.dirname(path.dirname(folder))
  const back = first(path.join(folder, "gitdir"))
  const isRepository = existing(common, "HEAD", "objects", "refs", "config").length === 4
  if (!isRepository || back === undefined || path.resolve(folder, back) !== file) return undefined
  return {
    writable: [common],
    readOnly: [file, ...existing(common, "hooks", "config", "HEAD", "index", "worktrees")],
    own: { folder, readOnly: existing(folder, "commondir", "gitdir", "config.worktree") }
  }
}

/** `workspace` is a real path; the search upwards ends below each of `stop`. */
export const find = (workspace: string, stop: ReadonlyArray<string>): GitFolders | undefined => {
  for (let folder = workspace; folder !== "/" && !stop.includes(folder); folder = path.dirname(folder)) {
    const git = path.join(folder, ".git")
    const stat = attempt(() => fs.lstatSync(git))
    if (stat === undefined) continue
    const around = folder === workspace ? undefined : folder
    if (stat.isDirectory())
      return { around, writable: [git], readOnly: existing(git, "hooks", "config", "commondir"), own: undefined }
    const found = stat.isFile() ? linked(git) : undefined
    return found === undefined ? undefined : { around, ...found }
  }
  return undefined
}
