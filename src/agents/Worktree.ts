/**
 * Worktree: a checkout of its own for each agent, on the branch `agentd/<agent>`.
 *
 * Guarantees: git runs on the person's git folder, which no agent that is held can write, and
 * on the daemon's own store beside it; in the worktree itself no git runs. `prepare` makes it
 * or finds it, any number of times, and changes nothing in one that is there; it never touches the user's own checkout, nor a folder or
 * branch that it did not make; `remove` keeps whatever could hold work and says why.
 *
 * What counts as work: changed and untracked files, commits that the base branch
 * does not have, a rebase or merge under way, a process in the folder. Files that
 * `.gitignore` names do not: they go with the worktree.
 */
import { Effect, FileSystem, Option, Schema } from "effect"
import * as path from "node:path"
import * as ProcessTable from "../backends/process/ProcessTable.ts"
import type { Answer, Call } from "../git/Git.ts"
import * as Repository from "../git/Repository.ts"
import * as Store from "../git/Store.ts"
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
  /** Where the daemon's own git folders lie. */
  readonly stores: string
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

/** Git's troubles, as reasons for which an agent cannot have its worktree. */
const explained = <A, R>(effect: Effect.Effect<A, Store.Trouble, R>) =>
  Effect.catchTags(effect, {
    GitUnavailable: ({ message, remedy }) => fail("GitUnavailable", message, remedy),
    GitFailed: ({ message, remedy }) => fail("GitFailed", message, remedy)
  })

/** git trips over a worktree that another git is making beside it: that is over in a moment. */
const RACE = /failed to read \S*commondir/
const RACE_ENDS = Backoff.constant("50 millis")
const ask = Effect.fnUntraced(function* (store: Store.Store, call: Omit<Call, "gitDir">) {
  for (let tries = 0; ; tries++) {
    const answer = yield* explained(Store.ask({ ...call, gitDir: store.person.commonDir }, "person"))
    if (answer.code === 0 || tries >= 5 || !RACE.test(answer.stderr)) return answer
    yield* Effect.sleep(Backoff.wait(RACE_ENDS, tries + 1))
  }
})

/** Runs a command in the person's repository that must succeed. */
const must = Effect.fnUntraced(function* (store: Store.Store, call: Omit<Call, "gitDir">) {
  const answer = yield* ask(store, call)
  if (answer.code === 0) return answer.stdout
  const words = [call.command, ...(call.options ?? []), ...(call.names ?? [])]
  return yield* fail(
    "GitFailed",
    `git ${words.slice(0, 2).join(" ")} failed: ${answer.stderr}`,
    `see what "git -C ${store.person.top} ${words.join(" ")}" says`
  )
})

const worktree = (options: ReadonlyArray<string>, names?: ReadonlyArray<string>): Omit<Call, "gitDir"> => ({
  command: "worktree",
  options,
  names
})

const succeeded = ({ code }: Answer) => code === 0
const hasRef = (store: Store.Store, branch: string) =>
  Effect.map(
    ask(store, { command: "show-ref", options: ["--verify", "--quiet"], paths: [`refs/heads/${branch}`] }),
    succeeded
  )

/** The commit that a name of the person's stands for, or none. */
const commitOf = (store: Store.Store, name: string) => explained(Store.commitOf(store, name))

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

const entries = (store: Store.Store) =>
  Effect.flatMap(must(store, worktree(["list", "--porcelain"])), (list) =>
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

/** The store beside the project's repository. */
const storeOf = Effect.fnUntraced(function* ({ repository, stores }: WorktreeSpec) {
  const store = yield* explained(Store.open(stores, repository))
  if (store !== undefined) return store
  return yield* fail(
    "NotARepository",
    `${repository} is in no git checkout`,
    'make it one (git init, then a commit), or set "worktree": false for the agent'
  )
})

/** Nothing but the branch `agentd` itself forbids all `agentd/…`: git keeps branches as files. */
const checkBranch = Effect.fnUntraced(function* (store: Store.Store, spec: WorktreeSpec, all: ReadonlyArray<Entry>) {
  const branch = branchOf(spec.agent)
  const other = all.find((entry) => entry.branch === branch && !entry.prunable)
  if (other !== undefined) {
    return yield* fail(
      "BranchInUse",
      `the branch ${branch} is checked out in ${other.folder}`,
      `switch that checkout to another branch (git -C ${other.folder} switch …), or rename the agent`
    )
  }
  if (yield* hasRef(store, "agentd")) {
    return yield* fail(
      "BranchBlocked",
      `a branch named "agentd" keeps git from making ${branch}`,
      "rename it: git branch -m agentd some-other-name"
    )
  }
})

const baseOf = Effect.fnUntraced(function* (store: Store.Store, { base, repository }: WorktreeSpec) {
  const commit = yield* commitOf(store, base ?? "HEAD")
  if (commit !== undefined) return commit
  return base === undefined
    ? yield* fail("NoCommits", `${repository} has no commit yet to start a worktree from`, "make a first commit")
    : yield* fail("NoSuchBase", `there is no commit or branch "${base}"`, "correct worktree.base in agentd.jsonc")
})

const create = Effect.fnUntraced(function* (
  store: Store.Store,
  spec: WorktreeSpec,
  folder: string,
  all: ReadonlyArray<Entry>
) {
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
  yield* checkBranch(store, spec, all)
  yield* makeFolder(path.dirname(folder))
  // --force only lets it take the place of its own entry, whose folder is gone: the rest is checked above
  const add = ["add", "--quiet", ...(stale === undefined ? [] : ["--force"])]
  // the person's filters make the files: those of their home, too
  const made = (options: ReadonlyArray<string>, from: string) =>
    must(store, { ...worktree([...add, ...options], [folder, from]), asPerson: true })
  if (yield* hasRef(store, branch)) yield* made([], branch)
  else yield* made(["--no-track", "-b", branch], yield* baseOf(store, spec))
  return branch
})

/** Git locks a worktree while it makes it: one that was cut off there has never been worked in. */
const discardHalfMade = Effect.fnUntraced(function* (store: Store.Store, folder: string) {
  const half = (yield* entries(store)).find((entry) => entry.folder === folder)
  if (half?.locked !== "initializing") return
  yield* must(store, worktree(["remove", "--force", "--force"], [folder]))
})

/** A repository that was moved leaves links behind that point nowhere: git mends them, and nothing else. */
const mendLinks = Effect.fnUntraced(function* (store: Store.Store, folder: string) {
  const found = yield* Repository.find(folder)
  if (found?.top === folder && found.commonDir === store.person.commonDir) return
  yield* must(store, worktree(["repair"], [folder]))
})

/** The agent's worktree, made if it is not there. */
export const prepare = Effect.fn("Worktree.prepare")(function* (spec: WorktreeSpec) {
  const store = yield* storeOf(spec)
  const folder = yield* realFolder(spec.folder)
  yield* discardHalfMade(store, folder)
  const all = yield* entries(store)
  const there = all.find((entry) => entry.folder === folder && !entry.prunable)
  if (there !== undefined) yield* mendLinks(store, folder)
  const branch = there === undefined ? yield* create(store, spec, folder, all) : there.branch
  const real = yield* realFolder(spec.folder)
  const cwd = path.resolve(real, store.person.prefix)
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

/** Most names of files that are told. */
const MOST_NAMED = 5

/** Work in the folder that would be lost with it. */
const workIn = Effect.fnUntraced(function* (store: Store.Store, folder: string, commit: string | undefined) {
  const changes = yield* explained(Store.changes(store, folder, "all", commit))
  if (changes.length > 0) return kept("Uncommitted", `not committed: ${changes.slice(0, MOST_NAMED).join(", ")}`)
  // a repository in it is not looked into: what it holds may be in no other
  for (const file of yield* explained(Store.embedded(store, folder)))
    if (yield* exists(path.join(folder, file, ".git")))
      return kept("Uncommitted", `${file} is a repository of its own, which may hold work`)
  const gitDir = (yield* Repository.find(folder))?.gitDir ?? folder
  const [begun] = yield* Effect.filter(UNFINISHED, (name) => exists(path.join(gitDir, name)))
  return begun === undefined ? undefined : kept("Unfinished", `${begun} is under way`)
})

/** The full name of the branch that must have the work, or none: a commit alone keeps nothing reachable. */
const baseBranchOf = Effect.fnUntraced(function* (store: Store.Store, base = "HEAD") {
  const ref = (yield* explained(Store.refOf(store, base)))?.ref ?? ""
  return /^refs\/person\/(heads|remotes)\//.test(ref) ? ref : undefined
})

/** The first commit that the base branch does not have. */
const unmerged = Effect.fnUntraced(function* (
  store: Store.Store,
  spec: WorktreeSpec,
  head: string | undefined,
  tip: string | undefined
) {
  const base = yield* baseBranchOf(store, spec.base)
  if (base === undefined || base === `refs/person/heads/${branchOf(spec.agent)}`)
    return kept("NoBaseBranch", `"${spec.base ?? "HEAD"}" is no branch that the work could be merged into`)
  for (const commit of [head, tip]) {
    if (commit === undefined || (yield* explained(Store.isAncestor(store, commit, base)))) continue
    const name = base.replace(/^refs\/person\/(heads|remotes)\//, "")
    return kept("Unmerged", `${commit.slice(0, 12)} is not merged into ${name}`)
  }
  return undefined
})

/** Deletes the branch, only where it was found merged, and from under no other checkout. */
const deleteBranch = Effect.fnUntraced(function* (store: Store.Store, agent: string, tip: string | undefined) {
  const branch = branchOf(agent)
  const elsewhere = (yield* entries(store)).some((entry) => entry.branch === branch)
  if (tip !== undefined && !elsewhere)
    yield* ask(store, { command: "update-ref", options: ["-d"], names: [`refs/heads/${branch}`, tip] })
})

/** Takes the worktree and its branch away, if no work can be lost by it. */
export const remove = Effect.fn("Worktree.remove")(function* (
  spec: WorktreeSpec
): Effect.fn.Return<Removal, WorktreeError, FileSystem.FileSystem> {
  const store = yield* storeOf(spec)
  const all = yield* entries(store)
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
  const tip = yield* commitOf(store, `refs/heads/${branchOf(spec.agent)}`)
  const head = entry.prunable ? undefined : yield* explained(Store.takeOver(store, folder))
  const work = entry.prunable ? undefined : yield* workIn(store, folder, head)
  const lost = work ?? (yield* unmerged(store, spec, head, tip))
  if (lost !== undefined) return lost

  // by force: git's own look would enter repositories in it, and run their filters
  const removed = yield* ask(store, worktree(["remove", "--force"], [folder]))
  if (removed.code !== 0) return kept("Unknown", removed.stderr)
  yield* deleteBranch(store, spec.agent, tip)
  return { _tag: "Removed" }
})
