/**
 * GitFolders: which folders outside a workspace its git needs, and what of them can be written
 * from within.
 *
 * A git folder is read-only: a git that finds `commondir`, `config` or a hook in it
 * obeys, the daemon's and the person's, and a name that does not exist yet cannot be guarded
 * in a folder that can be written. The one that an agent has for itself is its own to write: no
 * git but the agent's runs there.
 *
 * Guarantees: an agent writes no git folder but its own, and that is its own only when agentd has
 * recorded it; a `.git` file, which an agent may have written, is believed only when what it
 * names is a repository that names it back. Reads the file system, changes nothing.
 */
import * as fs from "node:fs"
import * as path from "node:path"
import { attempt } from "../config/Attempt.ts"
import * as OwnRecord from "./git/OwnRecord.ts"

export interface GitFolders {
  /** The checkout that the workspace is a folder of, where it is not its root. */
  readonly around: string | undefined
  /** In this order: a later one lies in an earlier one. */
  readonly parts: ReadonlyArray<{ readonly kind: "readOnly" | "writable"; readonly path: string }>
}

const { O_NOCTTY, O_NONBLOCK, O_RDONLY } = fs.constants
/** Most bytes of a file of git's that is one line. */
const MAX_LINE = 4_096

/** The first line of a small file. An agent may have put a pipe in its place: opening one would wait for ever, with the daemon. */
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
    parts: [readOnly(common), readOnly(file)]
  }
}

/** The repository that agentd has recorded a folder to borrow from. */
const lenderOf = (states: ReadonlyArray<string>, folder: string): string | undefined =>
  states
    .map((state) => first(OwnRecord.recordOf(path.join(state, OwnRecord.STORES), folder)))
    .find((lender) => lender !== undefined && path.isAbsolute(lender))

/**
 * `workspace` is a real path; the search upwards ends below each of `stop`, and of `states`: folders of agentd's own
 * that the workspace lies in.
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
    // a link in its place would lead to another's
    if (lender !== undefined && stat.isDirectory())
      return { around, parts: [readOnly(lender), ...(around === undefined ? [] : [writable(git)])] }
    if (stat.isDirectory()) return { around, parts: [readOnly(git)] }
    const found = stat.isFile() ? linked(git) : undefined
    return found === undefined ? undefined : { around, ...found }
  }
  return undefined
}
