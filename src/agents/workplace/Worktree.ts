/**
 * Worktree: a checkout for each agent on the branch `agentd/<agent>`, with its own git repository.
 *
 * Guarantees: In an existing worktree, git runs only inside a sandbox. The agent's commits reach the user's repository
 * through the daemon's store. `prepare` finds or creates the worktree. It can be repeated, and changes no file in an
 * existing worktree. It never changes the user's own checkout, or a folder or branch that it did not create. Stale git
 * locks are removed only in the agent's repository, never in the user's. Linked worktrees, which older versions
 * created, are converted to repositories with all their contents. `remove` keeps a worktree that may contain work, and
 * reports why.
 *
 * Work means: changed and untracked files, a stash, and commits that the base branch does not have. Commits on other
 * branches and tags also count, if no branch of the user contains them. A rebase or merge in progress and a process
 * that runs in the folder count too. Files that `.gitignore` names do not count: they are deleted with the worktree.
 */
import { Clock, Effect, FileSystem, Option, Schema } from "effect"
import * as path from "node:path"
import * as ProcessTable from "../../runs/process/ProcessTable.ts"
import * as LargeFiles from "../../runs/git/LargeFiles.ts"
import * as AgentRepository from "../../runs/git/AgentRepository.ts"
import * as Repository from "../../runs/git/Repository.ts"
import * as GitStore from "../../runs/git/GitStore.ts"

export class WorktreeError extends Schema.TaggedError<WorktreeError>()("WorktreeError", {
  reason: Schema.Literals([
    "GitUnavailable",
    "NotARepository",
    "NoCommits",
    "NoSuchBase",
    "BranchInUse",
    "BranchBlocked",
    "FolderTaken",
    "Unreadable",
    "FolderDenied",
    "Locked",
    "Submodules",
    "SetupFailed",
    "GitFailed"
  ]),
  message: Schema.String,
  remedy: Schema.String
}) {}

export interface WorktreeSpec {
  /** The project's root: the repository's root, or a folder in it. Absolute. */
  readonly repository: string
  /** The folder of the daemon's own git repositories. */
  readonly stores: string
  /** The folder of the worktree, which need not exist yet. Absolute. */
  readonly folder: string
  readonly agent: string
  /** A branch or commit; if omitted, HEAD of the user's checkout. */
  readonly base?: string | undefined
  /** Untracked files and folders that agentd has put there, which are no work. Relative to `folder`. */
  readonly placed?: ReadonlyArray<string> | undefined
  /** Reports an unexpected state to the user. `needs`: true if the user must act on it. */
  readonly tell?: ((text: string, needs: boolean) => Effect.Effect<void>) | undefined
}

export interface Prepared {
  /** The current branch: `agentd/<agent>`, or another that the agent switched to; undefined if HEAD is detached. */
  readonly branch: string | undefined
  readonly folder: string
  /** The project's root in the worktree; differs from `folder` if the project is a subfolder of its repository. */
  readonly cwd: string
}

export const branchOf = (agent: string): string => `agentd/${agent}`

const fail = (reason: WorktreeError["reason"], message: string, remedy: string) =>
  Effect.fail(new WorktreeError({ reason, message, remedy }))

const explained = <A, R>(effect: Effect.Effect<A, GitStore.Trouble, R>) =>
  Effect.catchTags(effect, {
    GitUnavailable: ({ message, remedy }) => fail("GitUnavailable", message, remedy),
    GitFailed: ({ message, remedy }) => fail("GitFailed", message, remedy)
  })

/** The commit that a name refers to; undefined if there is none in the user's repository. */
const commitOf = (store: GitStore.GitStore, name: string) => explained(GitStore.commitOf(store, name))

const exists = (file: string) =>
  Effect.flatMap(FileSystem.FileSystem, (files) => Effect.orElseSucceed(files.exists(file), () => false))

/** The path without symbolic links, as git writes it. The folder need not exist yet. */
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
      `the folder for worktrees could not be created: ${message}`,
      `make sure that agentd's user may write to ${folder}`
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

const storeOf = Effect.fnUntraced(function* ({ repository, stores }: WorktreeSpec) {
  const store = yield* explained(GitStore.open(stores, repository))
  if (store !== undefined) return store
  return yield* fail(
    "NotARepository",
    `${repository} is not in a git checkout`,
    'create one (git init, then a commit), or set "worktree": false for the agent'
  )
})

/**
 * Fails if git cannot create the agent's branch. Git stores branches as files, so a branch `agentd` blocks all
 * `agentd/…`.
 */
const checkBranch = Effect.fnUntraced(function* (store: GitStore.GitStore, spec: WorktreeSpec, folder: string) {
  const branch = branchOf(spec.agent)
  const all = yield* Repository.checkouts(store.person)
  const other = all.find((one) => one.branch === branch && one.folder !== folder)
  if (other !== undefined) {
    return yield* fail(
      "BranchInUse",
      `the branch ${branch} is checked out in ${other.folder}`,
      `switch that checkout to another branch (git -C ${other.folder} switch …), or rename the agent`
    )
  }
  if ((yield* commitOf(store, "refs/heads/agentd")) !== undefined) {
    return yield* fail(
      "BranchBlocked",
      `a branch named "agentd" prevents git from creating ${branch}`,
      "rename it: git branch -m agentd some-other-name"
    )
  }
})

const baseOf = Effect.fnUntraced(function* (store: GitStore.GitStore, { base, repository }: WorktreeSpec) {
  const commit = yield* commitOf(store, base ?? "HEAD")
  if (commit !== undefined) return commit
  return base === undefined
    ? yield* fail("NoCommits", `${repository} has no commit yet to start a worktree from`, "make a first commit")
    : yield* fail("NoSuchBase", `there is no commit or branch "${base}"`, "correct worktree.base in agentd.jsonc")
})

/** The git folder of a linked worktree, which an older version created in the user's repository. */
const linkedOf = Effect.fnUntraced(function* (store: GitStore.GitStore, folder: string) {
  const linked = (yield* Repository.linked(store.person)).find((one) => one.folder === folder)
  if (linked === undefined) return undefined
  const locked = yield* exists(path.join(linked.gitDir, "locked"))
  return { ...linked, isLocked: locked, isThere: yield* exists(path.join(folder, ".git")) }
})

/**
 * The commit at which a new worktree starts: the tip of the agent's branch if it has unmerged work, otherwise the base.
 */
const beginningOf = Effect.fnUntraced(function* (store: GitStore.GitStore, spec: WorktreeSpec) {
  const left = yield* commitOf(store, `refs/heads/${branchOf(spec.agent)}`)
  if (left === undefined) return yield* baseOf(store, spec)
  const base = yield* Effect.option(baseOf(store, spec))
  if (Option.isSome(base) && (yield* explained(GitStore.isAncestor(store, left, base.value)))) return base.value
  yield* told(
    spec,
    `it starts at ${left.slice(0, 12)}, because the branch ${branchOf(spec.agent)} has work that is not merged`,
    true
  )
  return left
})

/** Reports an unexpected state to the user, and in the daemon's own log. */
export const told = ({ agent, tell }: WorktreeSpec, text: string, needs: boolean) =>
  Effect.andThen(Effect.logWarning(`${agent}: ${text}`), tell?.(text, needs) ?? Effect.void)

/** Names of the lock files with which git excludes other git processes while it writes. */
const LOCKS = ["index.lock", "HEAD.lock", "config.lock", "packed-refs.lock", "shallow.lock"]
/** Minimum age of a lock that is removed, ms. The git process of a younger lock may still be running. */
const FRESH_LOCK = 2_000
const MAX_REFS = 10_000

/** Paths of the lock files of refs, relative to the git folder. Symbolic links are not followed. */
const refLocks = Effect.fnUntraced(function* (gitDir: string) {
  const files = yield* FileSystem.FileSystem
  const found: Array<string> = []
  const folders = ["refs"]
  for (let at = 0; at < folders.length && at < MAX_REFS; at++) {
    const folder = path.join(gitDir, folders[at]!)
    if (Option.isSome(yield* Effect.option(files.readLink(folder)))) continue
    // the path may be a file: the list of names is then empty
    for (const name of yield* Effect.orElseSucceed(files.readDirectory(folder), () => [])) {
      const below = path.join(folders[at]!, name)
      if (name.endsWith(".lock")) found.push(below)
      else folders.push(below)
    }
  }
  return found
})

/** Removes locks that a killed git process left in the agent's repository: they would block every later git command. */
const unlock = Effect.fnUntraced(function* (spec: WorktreeSpec, folder: string) {
  const files = yield* FileSystem.FileSystem
  const gitDir = path.join(folder, ".git")
  const locks = yield* Effect.filter([...LOCKS, ...(yield* refLocks(gitDir))], (name) =>
    exists(path.join(gitDir, name))
  )
  if (locks.length === 0) return
  const ageOf = Effect.fnUntraced(function* (name: string) {
    const info = yield* Effect.option(files.stat(path.join(gitDir, name)))
    const at = Option.getOrUndefined(Option.flatMap(info, ({ mtime }) => mtime))?.getTime()
    return at === undefined ? 0 : Math.abs((yield* Clock.currentTimeMillis) - at)
  })
  // give a git process that may still be running the time to finish
  if ((yield* Effect.forEach(locks, ageOf)).some((age) => age < FRESH_LOCK)) yield* Effect.sleep(FRESH_LOCK)
  if ((yield* (yield* ProcessTable.WorkingIn)(folder))?.length !== 0) return
  for (const name of locks) {
    if ((yield* ageOf(name)) < FRESH_LOCK) continue
    yield* Effect.ignore(files.remove(path.join(gitDir, name)))
    yield* told(spec, `agentd removed ${path.join(gitDir, name)}, which a killed git process had left`, false)
  }
})

const create = Effect.fnUntraced(function* (store: GitStore.GitStore, spec: WorktreeSpec, folder: string) {
  const half = yield* explained(AgentRepository.isHalfMade(store, folder))
  if (!half && !(yield* isEmpty(folder))) {
    return yield* fail(
      "FolderTaken",
      `${folder} is in the way: it is not empty, and agentd did not create its git folder`,
      "check its contents, then move it away; agentd never deletes files that it does not know"
    )
  }
  yield* checkBranch(store, spec, folder)
  yield* makeFolder(path.dirname(folder))
  const branch = branchOf(spec.agent)
  const commit = yield* beginningOf(store, spec)
  yield* explained(AgentRepository.make(store, spec.stores, folder, { branch, commit }))
})

/** Converts a linked worktree, which an older version created, to a repository of the agent, with all its contents. */
const remake = Effect.fnUntraced(function* (store: GitStore.GitStore, spec: WorktreeSpec, folder: string) {
  const linked = yield* linkedOf(store, folder)
  if (linked === undefined) return
  if (linked.isLocked) {
    return yield* fail(
      "Locked",
      linked.isThere
        ? `the worktree ${folder} is locked`
        : `the worktree ${folder} is missing but locked: its disk may not be mounted`,
      `restore it, or give it up: git -C ${spec.repository} worktree unlock ${folder}`
    )
  }
  if (linked.isThere) {
    const { commonDir, gitDir } = (yield* Repository.find(folder)) ?? {}
    const isOurs = commonDir === store.person.commonDir && gitDir === linked.gitDir
    if (isOurs && (yield* exists(path.join(gitDir, "modules")))) {
      return yield* fail(
        "Submodules",
        `${folder} is a worktree of ${spec.repository} with submodules, which an older version of agentd created`,
        `commit its changes, then: git -C ${spec.repository} worktree remove --force ${folder}; the agent continues from its branch`
      )
    }
    if (!isOurs && (yield* AgentRepository.read(spec.stores, folder)) === undefined) return
    if (isOurs) yield* explained(AgentRepository.remake(store, spec.stores, folder, gitDir, branchOf(spec.agent)))
  }
  const files = yield* FileSystem.FileSystem
  yield* Effect.ignore(files.remove(linked.gitDir, { recursive: true }))
})

/** The stored record of the agent's repository; undefined if the repository is not complete. */
const wholeOf = Effect.fnUntraced(function* (store: GitStore.GitStore, { stores }: WorktreeSpec, folder: string) {
  yield* explained(AgentRepository.endRemake(stores, folder))
  const own = yield* AgentRepository.read(stores, folder)
  if (own === undefined || (yield* explained(AgentRepository.isHalfMade(store, folder)))) return undefined
  const found = yield* Repository.find(folder)
  // the agent may have replaced its repository with a link or a file
  return found?.top === folder && found.gitDir === path.join(folder, ".git") ? own : undefined
})

export const prepare = Effect.fn("Worktree.prepare")(function* (spec: WorktreeSpec) {
  const store = yield* storeOf(spec)
  const folder = yield* realFolder(spec.folder)
  yield* remake(store, spec, folder)
  const own = yield* wholeOf(store, spec, folder)
  if (own === undefined) yield* create(store, spec, folder)
  else if (own.lender !== store.person.commonDir)
    yield* explained(AgentRepository.lendFrom(store, spec.stores, folder, own.branch))
  if (own !== undefined) yield* unlock(spec, folder)
  yield* gives(store, spec, folder)
  if (own !== undefined) yield* explained(AgentRepository.refresh(store, folder))
  const real = yield* realFolder(spec.folder)
  const cwd = path.resolve(real, store.person.prefix)
  const head = yield* Repository.headOf(path.join(folder, ".git"))
  const parts = yield* Effect.forEach(["objects", "refs"], (name) => exists(path.join(folder, ".git", name)))
  if (head === undefined || !parts.every(Boolean)) {
    const why = head === undefined ? "its HEAD names neither a branch nor a commit" : "its objects or refs are gone"
    const remedy = "repair it with git, or move it away: the agent starts a new one from its branch"
    return yield* fail("Unreadable", `the repository ${folder} is broken: ${why}`, remedy)
  }
  const prepared: Prepared = { branch: head.branch, folder: real, cwd: (yield* exists(cwd)) ? cwd : real }
  return prepared
})

/**
 * Copies the agent's commits to the user's repository. If that fails, the commits stay where they are until the next
 * call.
 */
const gives = (store: GitStore.GitStore, { agent, stores }: WorktreeSpec, folder: string) =>
  Effect.catch(Effect.asVoid(AgentRepository.handOver(store, stores, folder)), ({ message }) =>
    Effect.logWarning(`the commits of ${agent} in ${folder} could not be transferred: ${message}`)
  )

/** Copies the agent's commits to the user's repository, if the agent has a repository of its own. */
export const handOver = Effect.fn("Worktree.handOver")(function* (spec: WorktreeSpec) {
  const folder = yield* realFolder(spec.folder)
  if ((yield* AgentRepository.read(spec.stores, folder)) === undefined) return
  const store = yield* storeOf(spec)
  // a failed run is repeated in the same folder, where it may have left locks: these must be removed first
  if ((yield* wholeOf(store, spec, folder)) !== undefined) yield* unlock(spec, folder)
  yield* gives(store, spec, folder)
})

/** Names of files that git tracks and that differ from the last commit. */
export const changed = Effect.fn("Worktree.changed")(function* (spec: WorktreeSpec) {
  const store = yield* storeOf(spec)
  const folder = yield* realFolder(spec.folder)
  return (yield* explained(GitStore.changes(store, folder, "no"))).map((line) => line.slice(3))
})

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

/** Files and folders by which git marks an unfinished operation. */
const UNFINISHED = ["rebase-merge", "rebase-apply", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "BISECT_LOG"]

const MOST_NAMED = 5

/** Describes the work that would be lost if the folder were deleted; undefined if there is none. */
const workIn = Effect.fnUntraced(function* (
  store: GitStore.GitStore,
  folder: string,
  commit: string | undefined,
  placed: ReadonlyArray<string>
) {
  const isPlaced = (line: string) =>
    line.startsWith("?? ") && placed.some((name) => line === `?? ${name}` || line.startsWith(`?? ${name}/`))
  const changes = (yield* explained(GitStore.changes(store, folder, "all", commit))).filter((line) => !isPlaced(line))
  if (changes.length > 0) return kept("Uncommitted", `not committed: ${changes.slice(0, MOST_NAMED).join(", ")}`)
  // an embedded repository is not examined: it may contain work that exists nowhere else, so the worktree is kept
  for (const file of yield* explained(GitStore.embedded(store, folder)))
    if (yield* exists(path.join(folder, file, ".git")))
      return kept("Uncommitted", `${file} is a separate repository, which may contain work`)
  const gitDir = path.join(folder, ".git")
  const left = yield* LargeFiles.carry(gitDir, store.person.commonDir)
  if (left > 0) return kept("Unmerged", `${left} files of Git LFS in it are not in your repository`)
  const [begun] = yield* Effect.filter(UNFINISHED, (name) => exists(path.join(gitDir, name)))
  return begun === undefined ? undefined : kept("Unfinished", `${begun} is in progress`)
})

/**
 * Full name of the branch into which work is merged. Undefined if the base is a commit, because nothing can be merged
 * into a commit.
 */
const baseBranchOf = Effect.fnUntraced(function* (store: GitStore.GitStore, base = "HEAD") {
  const ref = (yield* explained(GitStore.refOf(store, base)))?.ref ?? ""
  return /^refs\/person\/(heads|remotes)\//.test(ref) ? ref : undefined
})

/**
 * Finds work that is not in the base branch: one of `commits`, or a commit on another branch, on a tag or in the stash.
 */
const unmerged = Effect.fnUntraced(function* (
  store: GitStore.GitStore,
  spec: WorktreeSpec,
  commits: ReadonlyArray<string | undefined>
) {
  const base = yield* baseBranchOf(store, spec.base)
  if (base === undefined || base === `refs/person/heads/${branchOf(spec.agent)}`)
    return kept("NoBaseBranch", `"${spec.base ?? "HEAD"}" is not a branch that the work could be merged into`)
  for (const commit of commits) {
    if (commit === undefined || (yield* explained(GitStore.isAncestor(store, commit, base)))) continue
    const name = base.replace(/^refs\/person\/(heads|remotes)\//, "")
    return kept("Unmerged", `${commit.slice(0, 12)} is not merged into ${name}`)
  }
  const elsewhere = yield* explained(AgentRepository.stranded(store, spec.folder))
  if (elsewhere === undefined) return undefined
  return kept(
    "Unmerged",
    `${elsewhere.slice(0, 12)}, of another branch, a tag or the stash, is in none of your branches`
  )
})

/** Deletes the branch only if it still points to `tip` and no other checkout uses it. */
const deleteBranch = Effect.fnUntraced(function* (store: GitStore.GitStore, agent: string, tip: string | undefined) {
  const branch = branchOf(agent)
  const elsewhere = (yield* Repository.checkouts(store.person)).some((one) => one.branch === branch)
  if (tip === undefined || elsewhere) return
  const call = { gitDir: store.person.commonDir, command: "update-ref", options: ["-d"] } as const
  yield* explained(GitStore.ask({ ...call, names: [`refs/heads/${branch}`, tip] }, "person"))
})

/** A branch that agentd created in a user's repository. */
export interface Branch {
  readonly repository: string
  readonly agent: string
  readonly tip: string
  /** Time of the branch's last commit, ms since the epoch. */
  readonly at: number
}

/** Branches `agentd/…` of a repository that are merged into its HEAD and are not checked out. */
export const mergedBranches = Effect.fn("Worktree.mergedBranches")(function* (stores: string, repository: string) {
  const store = yield* explained(GitStore.open(stores, repository))
  const head = store === undefined ? undefined : yield* commitOf(store, "HEAD")
  if (store === undefined || head === undefined) return []
  const prefix = `refs/person/heads/${branchOf("")}`
  const options = ["--format=%(refname) %(objectname) %(committerdate:unix)", `--merged=${head}`]
  const call = { gitDir: store.gitDir, command: "for-each-ref", options, names: [prefix] } as const
  const lines = (yield* explained(GitStore.must(call))).split("\n").filter((line) => line !== "")
  const used = new Set((yield* Repository.checkouts(store.person)).map(({ branch }) => branch))
  return lines.flatMap((line): ReadonlyArray<Branch> => {
    const [ref = "", tip = "", at] = line.split(" ")
    const agent = ref.slice(prefix.length)
    return used.has(branchOf(agent)) ? [] : [{ repository, agent, tip, at: Number(at) * 1_000 }]
  })
})

/** Deletes the branch if it still points to the same commit. */
export const removeBranch = Effect.fn("Worktree.removeBranch")(function* (stores: string, branch: Branch) {
  const store = yield* explained(GitStore.open(stores, branch.repository))
  if (store !== undefined) yield* deleteBranch(store, branch.agent, branch.tip)
})

interface Removable {
  readonly _tag: "Removable"
  readonly store: GitStore.GitStore
  readonly folder: string
  /**
   * Tip of the agent's branch. Read before the check for unmerged work, so that a commit made after the check is not
   * deleted.
   */
  readonly tip: string | undefined
}

const judged = Effect.fnUntraced(function* (
  spec: WorktreeSpec
): Effect.fn.Return<Removal | Removable, WorktreeError, FileSystem.FileSystem> {
  const store = yield* storeOf(spec)
  const folder = yield* realFolder(spec.folder)
  yield* remake(store, spec, folder)
  const own = yield* wholeOf(store, spec, folder)
  const half = yield* explained(AgentRepository.isHalfMade(store, folder))
  if (own === undefined && !half) {
    return (yield* isEmpty(folder))
      ? { _tag: "Removed" }
      : kept("Unknown", `${folder} contains no repository that agentd created`)
  }
  const users = yield* (yield* ProcessTable.WorkingIn)(folder)
  if (users === undefined) return kept("InUse", "this system cannot tell whether a process is working in it")
  if (users.length > 0) return kept("InUse", `process ${users[0]!.pid} is working in it`)
  const branch = branchOf(spec.agent)
  const tip = yield* commitOf(store, `refs/heads/${branch}`)
  const head = half ? undefined : yield* explained(AgentRepository.take(store, folder, true))
  const mine = yield* explained(GitStore.commitAt(store, `${GitStore.refsOf(folder)}/heads/${branch}`))
  const work = half ? undefined : yield* workIn(store, folder, head, spec.placed ?? [])
  const lost = work ?? (yield* unmerged(store, { ...spec, folder }, [head, mine, tip]))
  if (lost !== undefined) return lost
  return { _tag: "Removable", store, folder, tip }
})

/** Why the worktree must be kept; undefined if no work would be lost. */
export const keptFor = Effect.fn("Worktree.keptFor")(function* (spec: WorktreeSpec) {
  const found = yield* judged(spec)
  return found._tag === "Kept" ? found : undefined
})

export const remove = Effect.fn("Worktree.remove")(function* (
  spec: WorktreeSpec
): Effect.fn.Return<Removal, WorktreeError, FileSystem.FileSystem> {
  const found = yield* judged(spec)
  if (found._tag !== "Removable") return found
  const { folder, store, tip } = found
  yield* explained(AgentRepository.clear(store, spec.stores, folder, branchOf(spec.agent)))
  yield* deleteBranch(store, spec.agent, tip)
  return { _tag: "Removed" }
})
