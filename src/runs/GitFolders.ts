/**
 * GitFolders: determines which folders outside a workspace git needs there, and which of them the agent may write.
 *
 * A git folder is read-only, because the daemon's git and the user's git obey its `commondir`, `config` and hooks. In a
 * writable folder, a file that does not exist yet cannot be protected. An agent's own git folder is writable, because
 * only the agent's git runs there.
 *
 * Guarantees: The only git folder that an agent can write is its own, and only if agentd has recorded that it is. A
 * `.git` file may have been written by an agent. It is trusted only if the repository that it names refers back to it.
 * This module changes no file.
 */
import * as fs from "node:fs"
import * as path from "node:path"
import { attempt } from "../config/Attempt.ts"
import * as AgentRepositoryRecord from "./git/AgentRepositoryRecord.ts"

export interface GitFolders {
  /** Root of the checkout, if the workspace is a subfolder of it. */
  readonly around: string | undefined
  /** Paths of the folders in mount order: a path inside another one comes after it. */
  readonly parts: ReadonlyArray<{ readonly kind: "readOnly" | "writable"; readonly path: string }>
}

const { O_NOCTTY, O_NONBLOCK, O_RDONLY } = fs.constants
/** Maximum size of a git file that contains one line, bytes. */
const MAX_LINE = 4_096

/** Opens the file without blocking. Otherwise a pipe that an agent put there would block the daemon forever. */
const first = (file: string): string | undefined =>
  attempt(() => {
    const fd = fs.openSync(file, O_RDONLY | O_NONBLOCK | O_NOCTTY)
    try {
      const stat = fs.fstatSync(fd)
      return stat.isFile() && stat.size <= MAX_LINE ? fs.readFileSync(fd, "utf8").split("\n")[0]?.trim() : undefined
    } finally {
      fs.closeSync(fd)
    }
  })

const part = (kind: "readOnly" | "writable") => (path: string) => ({ kind, path })
const readOnly = part("readOnly")
const writable = part("writable")

const existing = (folder: string, ...names: ReadonlyArray<string>) =>
  names.map((name) => path.join(folder, name)).filter((file) => attempt(() => fs.lstatSync(file)) !== undefined)

/**
 * True if git may take a folder for a bare repository, from `folder` up to below `root`: git would run what its settings
 * name. A checkout can bring such a folder. `folder`: relative to `root`.
 */
export const isBare = (root: string, folder: string): boolean =>
  folder !== "" && (existing(path.join(root, folder), "HEAD").length > 0 || isBare(root, parentOf(folder)))

const parentOf = (folder: string): string => folder.slice(0, Math.max(0, folder.lastIndexOf("/")))

/** Returns the folders that a work tree's `.git` file names, if they refer back to that file. */
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
    parts: [readOnly(common), readOnly(file)]
  }
}

/** Returns the repository from which this folder borrows objects, as recorded by agentd. */
const lenderOf = (states: ReadonlyArray<string>, folder: string): string | undefined =>
  states
    .map((state) => first(AgentRepositoryRecord.recordOf(path.join(state, AgentRepositoryRecord.STORES), folder)))
    .find((lender) => lender !== undefined && path.isAbsolute(lender))

/**
 * Finds the git folders of `workspace`, a real path. The upward search stops at the folders in `stop` and `states`:
 * agentd's folders that can contain a workspace.
 */
export const find = (
  workspace: string,
  { states, stop }: { readonly states: ReadonlyArray<string>; readonly stop: ReadonlyArray<string> }
): GitFolders | undefined => {
  const ends = [...stop, ...states]
  for (let folder = workspace; folder !== "/" && !ends.includes(folder); folder = path.dirname(folder)) {
    const git = path.join(folder, ".git")
    const stat = attempt(() => fs.lstatSync(git))
    if (stat === undefined) continue
    const around = folder === workspace ? undefined : folder
    const lender = lenderOf(states, folder)
    // must be a real folder: a link could lead to another agent's repository
    if (lender !== undefined && stat.isDirectory())
      return { around, parts: [readOnly(lender), ...(around === undefined ? [] : [writable(git)])] }
    if (stat.isDirectory()) return { around, parts: [readOnly(git)] }
    const found = stat.isFile() ? linked(git) : undefined
    return found === undefined ? undefined : { around, ...found }
  }
  return undefined
}
