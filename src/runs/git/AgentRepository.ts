/**
 * AgentRepository: an agent's own repository. It borrows objects from the user's repository, which the agent can only
 * read. The agent's commits reach the user's repository through the daemon's store.
 *
 *     STATE/store/own/KEY       the repository that a folder borrows from, the agent's branch (AgentRepositoryRecord)
 *     FOLDER/.git               the agent's: only the agent writes it, and the daemon runs no git in it
 *     FOLDER/.git/refs/remotes  the user's branches: `main`, `origin/main`, `agentd/other`
 *     PERSON/refs/agentd/trees/KEY/…   the agent's commits and stashes, as of the last hand-over
 *
 * Guarantees: Git runs in an agent's git folder only while the folder is created, before any process can write it. The
 * user's branch is moved only if it is still where the daemon put it, or if the move is a fast-forward. A branch that
 * the user has checked out is not moved. The refs of the last hand-over protect borrowed objects from the user's `git
 * gc`. An interrupted creation is repeated.
 */
import { Effect, FileSystem } from "effect"
import * as path from "node:path"
import * as LargeFiles from "./LargeFiles.ts"
import { keyOf, recordOf } from "./AgentRepositoryRecord.ts"
import * as Repository from "./Repository.ts"
import {
  type Argv,
  ask,
  commitAt,
  heldIn,
  isAncestor,
  makeFolder,
  must,
  put,
  refsOf,
  type GitStore,
  takeOver,
  type Trouble,
  unwritable
} from "./GitStore.ts"

export interface Own {
  /** The git folder from which objects are borrowed. */
  readonly lender: string
  readonly branch: string
}

/** The record of an agent's repository; undefined if the folder is none. */
export const read = Effect.fnUntraced(function* (stores: string, folder: string) {
  const files = yield* FileSystem.FileSystem
  const text = yield* Effect.orElseSucceed(files.readFileString(recordOf(stores, folder)), () => "")
  const [lender, branch] = text.split("\n")
  return lender === undefined || branch === undefined || branch === "" ? undefined : ({ lender, branch } as Own)
})

const record = Effect.fnUntraced(
  function* (stores: string, folder: string, { branch, lender }: Own) {
    const files = yield* FileSystem.FileSystem
    const file = recordOf(stores, folder)
    yield* files.makeDirectory(path.dirname(file), { recursive: true, mode: 0o700 })
    yield* put(file, `${lender}\n${branch}\n`)
  },
  (recording, stores) => Effect.catchTag(recording, "PlatformError", unwritable(stores))
)

/** Settings that apply only to the user's git folder, and are therefore not copied. */
const BOUND =
  /^(core\.(repositoryformatversion|bare|worktree|logallrefupdates|fsmonitor|untrackedcache|splitindex|sharedrepository|sparsecheckout.*)|(extensions|include|includeif|gc|maintenance|index|branch|receive|uploadpack)\..*)$/

const quoted = (text: string): string =>
  `"${text.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n").replaceAll("\t", "\\t")}"`

/** Formats a setting for git's config file. A setting without a value means true. */
const line = (name: string, value: string | undefined): string => {
  const [first, last] = [name.indexOf("."), name.lastIndexOf(".")]
  const section = name.slice(0, first)
  const head = first === last ? `[${section}]` : `[${section} ${quoted(name.slice(first + 1, last))}]`
  return `${head}\n\t${name.slice(last + 1)}${value === undefined ? "" : ` = ${quoted(value)}`}\n`
}

/** Name of the remote in an agent's repository that means the user's repository. */
const REMOTE = "person"

/**
 * Returns the settings for an agent's repository: the user's local settings that are not in BOUND, the path of the
 * user's hooks, and the remote.
 */
const carried = Effect.fnUntraced(function* ({ person: { commonDir } }: GitStore) {
  const options = ["--null", "--show-scope", "--includes", "--list"]
  const answer = yield* ask({ gitDir: commonDir, command: "config", options, asPerson: true }, "person")
  const fields = answer.code === 0 ? answer.stdout.split("\0") : []
  const all = fields.flatMap((scope, at) => {
    const entry = fields[at + 1]
    if (at % 2 === 1 || entry === undefined || scope === "command") return []
    const end = entry.indexOf("\n")
    return [{ scope, name: end < 0 ? entry : entry.slice(0, end), value: end < 0 ? undefined : entry.slice(end + 1) }]
  })
  const local = all.filter(({ name, scope }) => scope === "local" && !BOUND.test(name.toLowerCase()))
  const hooks = all.some(({ name }) => name.toLowerCase() === "core.hookspath")
    ? []
    : [["core.hooksPath", path.join(commonDir, "hooks")] as const]
  const remote = [
    [`remote.${REMOTE}.url`, commonDir],
    [`remote.${REMOTE}.fetch`, "+refs/heads/*:refs/remotes/*"],
    [`remote.${REMOTE}.prune`, "false"],
    ["checkout.defaultRemote", REMOTE]
  ] as const
  return [
    ...local.map(({ name, value }) => line(name, value)),
    ...[["core.logAllRefUpdates", "true"] as const, ...hooks, ...remote].map(([name, value]) => line(name, value))
  ].join("")
})

/** Refspecs that give the user's branches in the store their names in an agent's repository. */
const SHOWN = [
  "+refs/person/heads/*:refs/remotes/*",
  "+refs/person/remotes/*:refs/remotes/*",
  // not forced: a tag of the agent is not overwritten
  "refs/person/tags/*:refs/tags/*"
]

/** Creates an agent's git folder with the agent's branch at a commit, and with the user's current branches. */
const makeOwn = Effect.fnUntraced(function* (
  store: GitStore,
  gitDir: string,
  { branch, ref }: { readonly branch: string; readonly ref: string | undefined }
) {
  const more = yield* carried(store)
  yield* makeFolder(gitDir, { bare: false, borrows: store.person, head: `ref: refs/heads/${branch}`, more })
  const into = { gitDir, command: "fetch", options: ["--update-head-ok"] } as const
  if (ref !== undefined) yield* must({ ...into, names: [store.gitDir, `+${ref}:refs/heads/${branch}`] })
  // refs whose names conflict, such as `origin` and `origin/main`, are skipped
  for (const shown of SHOWN) yield* ask({ ...into, names: [store.gitDir, shown] })
})

/**
 * Ref that points to the commit from which a folder is being created. If the ref still exists, the creation was
 * interrupted, and no agent has worked there yet.
 */
const makingOf = (folder: string): string => `refs/making/${keyOf(folder)}`

export const isHalfMade = (store: GitStore, folder: string) =>
  Effect.map(commitAt(store, makingOf(folder)), (commit) => commit !== undefined)

/** Creates an agent's repository. Anything in the folder is deleted first. */
export const make = Effect.fnUntraced(function* (
  store: GitStore,
  stores: string,
  folder: string,
  { branch, commit }: { readonly branch: string; readonly commit: string }
) {
  const files = yield* FileSystem.FileSystem
  const gitDir = path.join(folder, ".git")
  const ref = makingOf(folder)
  const inStore = { gitDir: store.gitDir, command: "update-ref" } as const
  yield* must({ ...inStore, names: [ref, commit] })
  yield* files
    .remove(folder, { recursive: true, force: true })
    .pipe(
      Effect.andThen(files.makeDirectory(folder, { recursive: true, mode: 0o700 })),
      Effect.catchTag("PlatformError", unwritable(folder))
    )
  yield* makeOwn(store, gitDir, { branch, ref })
  // this runs the user's filters; older gits do not accept --end-of-options here, but a full commit id cannot be
  // mistaken for an option
  yield* must({ gitDir, workTree: folder, command: "reset", options: [commit], asPerson: true })
  yield* record(stores, folder, { lender: store.person.commonDir, branch })
  yield* must({ ...inStore, options: ["-d"], names: [ref] })
})

/** Refs of the branches and the stash in an agent's repository. */
const WORK = ["heads/", "stash"]

/**
 * Fetches all commits of an agent into the store, and returns the agent's current commit. `tags`: whether to fetch
 * tags, too.
 */
export const take = (store: GitStore, folder: string, tags: boolean) =>
  takeOver(store, folder, tags ? [...WORK, "tags/"] : WORK)

/** Lists the names of the refs that were fetched from a folder. */
const taken = (store: GitStore, folder: string) =>
  Effect.map(
    must({
      gitDir: store.gitDir,
      command: "for-each-ref",
      options: ["--format=%(refname)"],
      names: [`${refsOf(folder)}/`]
    }),
    (lines) => lines.split("\n").filter((name) => name !== "")
  )

/** Maximum number of refs of one agent that are copied to the user's repository. */
const MOST_REFS = 500

/**
 * Copies the fetched refs to the user's repository. There they protect borrowed objects from `git gc`, and the user can
 * find them. If there are too many refs, copies only the agent's branch and its current commit.
 */
const give = Effect.fnUntraced(function* (store: GitStore, folder: string, branch: string) {
  const [from, to] = [refsOf(folder), `refs/agentd/trees/${keyOf(folder)}`]
  const names = yield* taken(store, folder)
  const few = ["head", `heads/${branch}`].filter((name) => names.includes(`${from}/${name}`))
  const given = names.length > MOST_REFS ? few : ["*"]
  if (names.length > MOST_REFS)
    yield* Effect.logWarning(`${folder} has more than ${MOST_REFS} branches: only ${branch} is handed over`)
  const specs = given.map((name) => `+${from}/${name}:${to}/${name}`)
  const call = { gitDir: store.person.commonDir, command: "fetch", options: ["--prune"] } as const
  yield* must({ ...call, names: [store.gitDir, ...specs] }, "person")
})

/** Moves the user's branch with this name to the agent's commit, unless somebody else has moved the branch. */
const moveBranch = Effect.fnUntraced(function* (store: GitStore, folder: string, branch: string) {
  const tip = yield* commitAt(store, `${refsOf(folder)}/heads/${branch}`)
  if (tip === undefined) return
  const theirs = yield* commitAt(store, `refs/person/heads/${branch}`)
  const given = `refs/given/${keyOf(folder)}`
  const before = yield* commitAt(store, given)
  // a branch that the user has deleted is not restored until the agent has new commits
  if (theirs === tip || (theirs === undefined && before === tip)) return
  if (theirs !== undefined && theirs !== before && !(yield* isAncestor(store, theirs, tip))) return
  if ((yield* Repository.checkouts(store.person)).some((one) => one.branch === branch)) return
  yield* must({ gitDir: store.gitDir, command: "update-ref", names: [given, tip] })
  const names = [`refs/heads/${branch}`, tip, theirs ?? ""]
  // fails if somebody moves the branch at this moment; their move is kept
  yield* ask({ gitDir: store.person.commonDir, command: "update-ref", names }, "person")
})

/**
 * Fetches an agent's commits and copies them to the user's repository. Returns the agent's current commit. If the
 * checkout is not an agent's repository, fetches only its current commit.
 */
export const handOver = Effect.fnUntraced(function* (store: GitStore, stores: string, folder: string) {
  const top = (yield* Repository.find(folder))?.top ?? folder
  const own = yield* read(stores, top)
  if (own === undefined) return yield* takeOver(store, folder)
  const commit = yield* take(store, top, false)
  yield* LargeFiles.carry(path.join(top, ".git"), own.lender)
  yield* give(store, top, own.branch)
  yield* moveBranch(store, top, own.branch)
  return commit
})

/**
 * Updates the user's branches in the agent's repository, if this machine can confine the git process that writes them.
 */
export const refresh = Effect.fnUntraced(function* (store: GitStore, folder: string) {
  const receiver = yield* heldIn(store, folder, ["git-receive-pack"])
  if (receiver === undefined) return
  // `ask` instead of `must`: if the agent's repository rejects a ref, that ref is only missing there
  yield* ask({
    gitDir: store.gitDir,
    command: "push",
    options: [`--receive-pack=${receiver}`],
    names: [folder, ...SHOWN]
  })
})

const PLAIN = ["core.hooksPath=/dev/null", "commit.gpgSign=false", "user.name=agentd", "user.email=agentd@localhost"]
const GIT = ["git", ...PLAIN.flatMap((setting) => ["-c", setting])].join(" ")
/** Shell command that commits uncommitted changes and then sends the commits. */
const SAVES: Argv = [
  "sh",
  "-c",
  `(${GIT} add --all && ${GIT} commit --quiet --no-verify -m "not committed when its goal ended") >&2; exec git-upload-pack "$1"`,
  "sh"
]
/**
 * Shell command that receives a new commit for the checked-out branch and updates its files. Fails if one of these
 * files has uncommitted changes.
 */
const MOVES: Argv = ["sh", "-c", `exec ${GIT} -c receive.denyCurrentBranch=updateInstead receive-pack "$1"`, "sh"]

/**
 * Resets the agent's current branch to an earlier commit, and discards later and uncommitted changes. First saves
 * everything, and asks `keep` whether the saved commit is safe. Does nothing if this machine cannot confine git.
 */
export const takeBack = Effect.fnUntraced(function* (
  store: GitStore,
  stores: string,
  folder: string,
  of: { readonly to: string; readonly keep: (tip: string) => Effect.Effect<boolean, Trouble, FileSystem.FileSystem> }
) {
  const top = (yield* Repository.find(folder))?.top ?? folder
  const branch = (yield* Repository.headOf(path.join(top, ".git")))?.branch
  const receiver = yield* heldIn(store, top, MOVES)
  if (branch === undefined || receiver === undefined || (yield* read(stores, top)) === undefined) return
  yield* takeOver(store, top, WORK, SAVES)
  const tip = yield* handOver(store, stores, top)
  if (tip === undefined || !(yield* of.keep(tip))) return
  const options = [`--receive-pack=${receiver}`]
  yield* must({ gitDir: store.gitDir, command: "push", options, names: [top, `+${of.to}:refs/heads/${branch}`] })
})

/** Finds a fetched commit of the agent that is on none of the user's branches; undefined if there is none. */
export const stranded = Effect.fnUntraced(function* (store: GitStore, folder: string) {
  const options = ["--max-count=1", "--format=%H", `--glob=${refsOf(folder)}/*`, "--not", "--glob=refs/person/*"]
  const found = yield* must({ gitDir: store.gitDir, command: "log", options })
  return found.trim() === "" ? undefined : found.trim()
})

/** Removes an agent's folder, with its record and its refs. */
export const clear = Effect.fnUntraced(function* (store: GitStore, stores: string, folder: string, branch: string) {
  const files = yield* FileSystem.FileSystem
  const gone = (file: string) =>
    Effect.catchTag(files.remove(file, { recursive: true, force: true }), "PlatformError", unwritable(file))
  yield* gone(folder)
  yield* gone(recordOf(stores, folder))
  for (const name of yield* taken(store, folder))
    yield* must({ gitDir: store.gitDir, command: "update-ref", options: ["-d"], names: [name] })
  yield* give(store, folder, branch)
})

/**
 * Files in the git folder of a linked work tree that are not copied: they apply only to that work tree, or git would
 * obey them.
 */
const OF_PLACE = new Set(["commondir", "gitdir", "locked", "config", "config.worktree", "hooks", "objects", "info"])

const remadeOf = (stores: string, folder: string): string => `${recordOf(stores, folder)}.git`

/** Converts a linked work tree of the user's repository into an agent's own repository. Its files are not changed. */
export const remake = Effect.fnUntraced(
  function* (store: GitStore, stores: string, folder: string, linked: string, branch: string) {
    const files = yield* FileSystem.FileSystem
    const gitDir = remadeOf(stores, folder)
    const on = (yield* Repository.headOf(linked))?.branch ?? branch
    yield* files.remove(gitDir, { recursive: true, force: true })
    yield* makeOwn(store, gitDir, { branch: on, ref: undefined })
    for (const name of new Set([on, branch])) {
      const ref = `refs/person/heads/${name}`
      if ((yield* commitAt(store, ref)) === undefined) continue
      const names = [store.gitDir, `+${ref}:refs/heads/${name}`]
      yield* must({ gitDir, command: "fetch", options: ["--update-head-ok"], names })
    }
    for (const name of yield* files.readDirectory(linked))
      if (!OF_PLACE.has(name)) yield* files.copy(path.join(linked, name), path.join(gitDir, name), { overwrite: true })
    yield* record(stores, folder, { lender: store.person.commonDir, branch })
    yield* files.remove(path.join(folder, ".git"))
    yield* files.rename(gitDir, path.join(folder, ".git"))
  },
  (remaking, _store, _stores, folder) => Effect.catchTag(remaking, "PlatformError", unwritable(folder))
)

/** Completes a `remake` that was interrupted between its last two steps. */
export const endRemake = Effect.fnUntraced(
  function* (stores: string, folder: string) {
    const files = yield* FileSystem.FileSystem
    const gitDir = remadeOf(stores, folder)
    if (!(yield* files.exists(path.join(gitDir, "HEAD")))) return
    if (!(yield* files.exists(path.join(folder, ".git")))) yield* files.rename(gitDir, path.join(folder, ".git"))
  },
  (ending, _stores, folder) => Effect.catchTag(ending, "PlatformError", unwritable(folder))
)

/** Updates a folder when the repository from which it borrows has been moved to another path. */
export const lendFrom = Effect.fnUntraced(
  function* (store: GitStore, stores: string, folder: string, branch: string) {
    const { commonDir: lender } = store.person
    yield* put(path.join(folder, ".git/objects/info/alternates"), `${path.join(lender, "objects")}\n`)
    yield* record(stores, folder, { lender, branch })
  },
  (mending, _store, _stores, folder) => Effect.catchTag(mending, "PlatformError", unwritable(folder))
)
