/**
 * Worktree: a checkout of its own for each agent, on the branch `agentd/<agent>`.
 *
 * Guarantees: `prepare` makes it or finds it, any number of times, and changes nothing
 * in one that is there; it never touches the user's own checkout, nor a folder or
 * branch that it did not make; `remove` keeps whatever could hold work and says why.
 *
 * What counts as work: changed and untracked files, commits that the base branch
 * does not have, a rebase or merge under way, a process in the folder. Files that
 * `.gitignore` names do not: they go with the worktree.
 */
import { Effect, FileSystem, Option, Schema } from "effect"
import * as path from "node:path"
import * as ProcessTable from "../backends/process/ProcessTable.ts"
import { type Answer, git, type GitUnavailable } from "../backends/Git.ts"
import * as Backoff from "../supervision/Backoff.ts"

/** The reason for which an agent cannot have its worktree. */
export class WorktreeError extends Schema.TaggedError<WorktreeError>()("WorktreeError", {
  reason: Schema.Literals([
    "GitUnavailable",
    "NotARepository",
    "NoCommits",
    "NoSuchBase",
    "BranchInUse",
    "BranchBlocked",
    "FolderTaken",
    "FolderDenied",
    "Locked",
    "GitFailed"
  ]),
  message: Schema.String,
  remedy: Schema.String
}) {}

export interface WorktreeSpec {
  /** The project's root: the repository's, or a folder in it. Absolute. */
  readonly repository: string
  /** Where the worktree is or shall be. Absolute. */
  readonly folder: string
  readonly agent: string
  /** A branch or commit; HEAD of the user's checkout where left out. */
  readonly base?: string | undefined
}

export interface Prepared {
  /** The branch that it is on: `agentd/<agent>`, or another that the agent has switched to; none when detached. */
  readonly branch: string | undefined
  readonly folder: string
  /** The project's root in it; another than `folder` when the project is a folder of its repository. */
  readonly cwd: string
}

export const branchOf = (agent: string): string => `agentd/${agent}`

const fail = (reason: WorktreeError["reason"], message: string, remedy: string) =>
  Effect.fail(new WorktreeError({ reason, message, remedy }))

const unavailable = ({ message, remedy }: GitUnavailable) => fail("GitUnavailable", message, remedy)

/** Runs a git command in the folder, and gives its answer, whichever it is. */
const ask = (folder: string, ...args: ReadonlyArray<string>) =>
  Effect.catchTag(git(folder, ...args), "GitUnavailable", unavailable)

/** git trips over a worktree that another git is making beside it: that is over in a moment. */
const RACE = /failed to read \S*commondir/
const RACE_ENDS = Backoff.constant("50 millis")
const settled = Effect.fnUntraced(function* (folder: string, ...args: ReadonlyArray<string>) {
  for (let tries = 0; ; tries++) {
    const answer = yield* ask(folder, ...args)
    if (answer.code === 0 || tries >= 5 || !RACE.test(answer.stderr)) return answer
    yield* Effect.sleep(Backoff.wait(RACE_ENDS, tries + 1))
  }
})

/** Runs a git command that must succeed. */
const must = Effect.fnUntraced(function* (folder: string, ...args: ReadonlyArray<string>) {
  const answer = yield* settled(folder, ...args)
  if (answer.code === 0) return answer.stdout
  return yield* fail(
    "GitFailed",
    `git ${args.slice(0, 2).join(" ")} failed: ${answer.stderr}`,
    `see what "git -C ${folder} ${args.join(" ")}" says`
  )
})

const succeeded = ({ code }: Answer) => code === 0
const hasRef = (folder: string, branch: string) =>
  Effect.map(ask(folder, "show-ref", "--verify", "--quiet", `refs/heads/${branch}`), succeeded)

/** The commit that a name stands for, or none. */
const commitOf = (folder: string, name: string) =>
  Effect.map(
    ask(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", `${name}^{commit}`),
    ({ code, stdout }) => (code === 0 ? stdout.trim() : undefined)
  )

/** An entry of git's list of worktrees. */
interface Entry {
  readonly folder: string
  readonly branch: string | undefined
  /** Why it is locked; empty when nobody said. */
  readonly locked: string | undefined
  /** True where the entry's folder is gone. */
  readonly prunable: boolean
}

const exists = (file: string) =>
  Effect.flatMap(FileSystem.FileSystem, (files) => Effect.orElseSucceed(files.exists(file), () => false))

const parseEntry = Effect.fnUntraced(function* (block: string) {
  // no -z: git has it since 2.36 only
  const fields = new Map(
    block.split("\n").map((line) => {
      const space = line.indexOf(" ")
      return space < 0 ? [line, ""] : [line.slice(0, space), line.slice(space + 1)]
    })
  )
  const folder = fields.get("worktree") ?? ""
  const entry: Entry = {
    folder,
    branch: fields.get("branch")?.replace("refs/heads/", ""),
    locked: fields.get("locked"),
    prunable: fields.has("prunable") || !(yield* exists(path.join(folder, ".git")))
  }
  return entry
})

const entries = (repository: string) =>
  Effect.flatMap(must(repository, "worktree", "list", "--porcelain"), (list) =>
    Effect.forEach(list.trim().split("\n\n"), parseEntry)
  )

/** As git writes it: without symbolic links, though it need not exist yet. */
const realFolder = Effect.fnUntraced(function* (folder: string) {
  const files = yield* FileSystem.FileSystem
  const below: Array<string> = []
  for (let at = folder; path.dirname(at) !== at; at = path.dirname(at)) {
    const real = yield* Effect.option(files.realPath(at))
    if (Option.isSome(real)) return path.join(real.value, ...below)
    below.unshift(path.basename(at))
  }
  return folder
})

const makeFolder = Effect.fnUntraced(function* (folder: string) {
  const files = yield* FileSystem.FileSystem
  yield* Effect.catch(files.makeDirectory(folder, { recursive: true, mode: 0o700 }), ({ message }) =>
    fail(
      "FolderDenied",
      `the folder for worktrees could not be made: ${message}`,
      `see to it that agentd's user may write to ${folder}`
    )
  )
})

const isEmpty = Effect.fnUntraced(function* (folder: string) {
  const files = yield* FileSystem.FileSystem
  return yield* files.readDirectory(folder).pipe(
    Effect.map((names) => names.length === 0),
    Effect.catch(({ reason }) => Effect.succeed(reason._tag === "NotFound"))
  )
})

/** The project's folder below the repository's root: empty, or "packages/app/". */
const prefixOf = Effect.fnUntraced(function* (repository: string) {
  const answer = yield* ask(repository, "rev-parse", "--is-inside-work-tree", "--show-prefix")
  const [inside, prefix = ""] = answer.stdout.split("\n")
  if (answer.code === 0 && inside === "true") return prefix
  return yield* fail(
    "NotARepository",
    `${repository} is in no git checkout: ${answer.stderr === "" ? "it is a bare repository" : answer.stderr}`,
    'make it one (git init, then a commit), or set "worktree": false for the agent'
  )
})

/** Nothing but the branch `agentd` itself forbids all `agentd/…`: git keeps branches as files. */
const checkBranch = Effect.fnUntraced(function* (spec: WorktreeSpec, all: ReadonlyArray<Entry>) {
  const branch = branchOf(spec.agent)
  const other = all.find((entry) => entry.branch === branch && !entry.prunable)
  if (other !== undefined) {
    return yield* fail(
      "BranchInUse",
      `the branch ${branch} is checked out in ${other.folder}`,
      `switch that checkout to another branch (git -C ${other.folder} switch …), or rename the agent`
    )
  }
  if (yield* hasRef(spec.repository, "agentd")) {
    return yield* fail(
      "BranchBlocked",
      `a branch named "agentd" keeps git from making ${branch}`,
      "rename it: git branch -m agentd some-other-name"
    )
  }
})

const baseOf = Effect.fnUntraced(function* ({ base, repository }: WorktreeSpec) {
  const commit = yield* commitOf(repository, base ?? "HEAD")
  if (commit !== undefined) return commit
  return base === undefined
    ? yield* fail("NoCommits", `${repository} has no commit yet to start a worktree from`, "make a first commit")
    : yield* fail("NoSuchBase", `there is no commit or branch "${base}"`, "correct worktree.base in agentd.jsonc")
})

const create = Effect.fnUntraced(function* (spec: WorktreeSpec, folder: string, all: ReadonlyArray<Entry>) {
  const branch = branchOf(spec.agent)
  const stale = all.find((entry) => entry.folder === folder)
  if (stale?.locked !== undefined) {
    return yield* fail(
      "Locked",
      `the worktree ${folder} is gone but locked${stale.locked === "" ? "" : ` (${stale.locked})`}: its disk may only be absent`,
      `bring it back, or give it up: git -C ${spec.repository} worktree unlock ${folder}`
    )
  }
  if (!(yield* isEmpty(folder))) {
    return yield* fail(
      "FolderTaken",
      `${folder} is in the way: it is not empty, and no worktree of ${spec.repository}`,
      "look at what it holds, then move it away; agentd never deletes what it does not know"
    )
  }
  yield* checkBranch(spec, all)
  yield* makeFolder(path.dirname(folder))
  // --force only lets it take the place of its own entry, whose folder is gone: the rest is checked above
  const add = ["worktree", "add", "--quiet", ...(stale === undefined ? [] : ["--force"])]
  const exists = yield* hasRef(spec.repository, branch)
  if (exists) yield* must(spec.repository, ...add, folder, branch)
  else yield* must(spec.repository, ...add, "--no-track", "-b", branch, folder, yield* baseOf(spec))
  return branch
})

/** Git locks a worktree while it makes it: one that was cut off there has never been worked in. */
const discardHalfMade = Effect.fnUntraced(function* (spec: WorktreeSpec, folder: string) {
  const half = (yield* entries(spec.repository)).find((entry) => entry.folder === folder)
  if (half?.locked !== "initializing") return
  yield* must(spec.repository, "worktree", "remove", "--force", "--force", folder)
})

/** A repository that was moved leaves links behind that point nowhere: git mends them, and nothing else. */
const mendLinks = Effect.fnUntraced(function* (spec: WorktreeSpec, folder: string) {
  if (succeeded(yield* ask(folder, "rev-parse", "--is-inside-work-tree"))) return
  yield* must(spec.repository, "worktree", "repair", folder)
})

/** The agent's worktree, made if it is not there. */
export const prepare = Effect.fn("Worktree.prepare")(function* (spec: WorktreeSpec) {
  const prefix = yield* prefixOf(spec.repository)
  const folder = yield* realFolder(spec.folder)
  yield* discardHalfMade(spec, folder)
  const all = yield* entries(spec.repository)
  const there = all.find((entry) => entry.folder === folder && !entry.prunable)
  if (there !== undefined) yield* mendLinks(spec, folder)
  const branch = there === undefined ? yield* create(spec, folder, all) : there.branch
  const real = yield* realFolder(spec.folder)
  const cwd = path.resolve(real, prefix)
  const prepared: Prepared = { branch, folder: real, cwd: (yield* exists(cwd)) ? cwd : real }
  return prepared
})

/** The fate of a worktree that nobody needs any more. */
export type Removal =
  | { readonly _tag: "Removed" }
  | {
      readonly _tag: "Kept"
      readonly reason: "InUse" | "Uncommitted" | "Unfinished" | "Unmerged" | "NoBaseBranch" | "Locked" | "Unknown"
      readonly detail: string
    }

const kept = (reason: Extract<Removal, { _tag: "Kept" }>["reason"], detail: string): Removal => ({
  _tag: "Kept",
  reason,
  detail
})

/** Files of git's own that stand for something begun and not ended. */
const UNFINISHED = ["rebase-merge", "rebase-apply", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "BISECT_LOG"]

/** Work in the folder that would be lost with it. */
const workIn = Effect.fnUntraced(function* (folder: string) {
  const status = yield* must(folder, "status", "--porcelain", "--untracked-files=all", "--ignore-submodules=none")
  if (status !== "") return kept("Uncommitted", `not committed: ${status.trimEnd().split("\n").slice(0, 5).join(", ")}`)
  // files that git was told to look away from may have changed unseen
  const unwatched = (yield* must(folder, "ls-files", "-v")).split("\n").filter((line) => /^[a-zS] /.test(line))
  const hidden = yield* Effect.filter(unwatched, (line) => exists(path.join(folder, line.slice(2))))
  if (hidden.length > 0) return kept("Uncommitted", `git does not watch ${hidden[0]!.slice(2)} for changes`)
  const paths = yield* must(folder, "rev-parse", ...UNFINISHED.flatMap((name) => ["--git-path", name]))
  const [begun] = yield* Effect.filter(paths.trim().split("\n"), (file) => exists(path.resolve(folder, file)))
  return begun === undefined ? undefined : kept("Unfinished", `${path.basename(begun)} is under way`)
})

/** The full name of the branch that must have the work, or none: a commit alone keeps nothing reachable. */
const baseBranchOf = Effect.fnUntraced(function* ({ base, repository }: WorktreeSpec) {
  const { stdout } = yield* ask(repository, "rev-parse", "--symbolic-full-name", "--end-of-options", base ?? "HEAD")
  const name = stdout.trim().split("\n").at(-1) ?? ""
  return /^refs\/(heads|remotes)\//.test(name) ? name : undefined
})

/** The first commit that the base branch does not have. */
const unmerged = Effect.fnUntraced(function* (spec: WorktreeSpec, folder: string | undefined, tip: string | undefined) {
  const base = yield* baseBranchOf(spec)
  if (base === undefined || base === `refs/heads/${branchOf(spec.agent)}`)
    return kept("NoBaseBranch", `"${spec.base ?? "HEAD"}" is no branch that the work could be merged into`)
  const head = folder === undefined ? undefined : yield* commitOf(folder, "HEAD")
  for (const commit of [head, tip]) {
    if (commit === undefined) continue
    if (succeeded(yield* ask(spec.repository, "merge-base", "--is-ancestor", commit, base))) continue
    return kept("Unmerged", `${commit.slice(0, 12)} is not merged into ${base.replace(/^refs\/(heads|remotes)\//, "")}`)
  }
  return undefined
})

/** Deletes the branch, only where it was found merged, and from under no other checkout. */
const deleteBranch = Effect.fnUntraced(function* ({ agent, repository }: WorktreeSpec, tip: string | undefined) {
  const branch = branchOf(agent)
  const elsewhere = (yield* entries(repository)).some((entry) => entry.branch === branch)
  if (tip !== undefined && !elsewhere) yield* ask(repository, "update-ref", "-d", `refs/heads/${branch}`, tip)
})

/** Takes the worktree and its branch away, if no work can be lost by it. */
export const remove = Effect.fn("Worktree.remove")(function* (
  spec: WorktreeSpec
): Effect.fn.Return<Removal, WorktreeError, FileSystem.FileSystem> {
  const all = yield* entries(spec.repository)
  const folder = yield* realFolder(spec.folder)
  const entry = all.find((entry) => entry.folder === folder)
  if (entry === undefined) {
    return (yield* isEmpty(folder))
      ? { _tag: "Removed" }
      : kept("Unknown", `${folder} is no worktree of ${spec.repository}`)
  }
  if (entry.locked !== undefined) return kept("Locked", `it is locked: ${entry.locked}`)
  const users = yield* (yield* ProcessTable.WorkingIn)(folder)
  if (users === undefined) return kept("InUse", "this system does not tell whether a process works in it")
  if (users.length > 0) return kept("InUse", `process ${users[0]!.pid} works in it`)
  // read before the look at what is merged: what comes after it is not deleted
  const tip = yield* commitOf(spec.repository, `refs/heads/${branchOf(spec.agent)}`)
  const work = entry.prunable ? undefined : yield* workIn(folder)
  const lost = work ?? (yield* unmerged(spec, entry.prunable ? undefined : folder, tip))
  if (lost !== undefined) return lost

  // without --force: git looks once more
  const removed = yield* ask(spec.repository, "worktree", "remove", folder)
  if (removed.code !== 0) return kept("Unknown", removed.stderr)
  yield* deleteBranch(spec, tip)
  return { _tag: "Removed" }
})
