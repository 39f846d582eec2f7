/**
 * OwnRepository: the repository that an agent has for itself. Its objects are borrowed from the
 * person's repository, which the agent only reads; what the agent commits comes to the person by
 * the daemon's store.
 *
 *     STATE/store/own/KEY       the repository that a folder borrows from, and the agent's branch (OwnRecord)
 *     FOLDER/.git               the agent's: it alone writes there, and the daemon runs no git in it
 *     FOLDER/.git/refs/remotes  the person's branches: `main`, `origin/main`, `agentd/other`
 *     PERSON/refs/agentd/trees/KEY/…   all that the agent has committed and stashed, at the last hand-over
 *
 * Guarantees: git runs in an agent's git folder only while the folder is made, before any process
 * can write it; the person's branch moves only from where the daemon has put it, or forward; a
 * branch that a person has moved, or has checked out, stays. What a folder borrows is kept from a
 * person's `git gc` by the refs of the last hand-over. A folder that was cut off is made anew.
 */
import { Effect, FileSystem } from "effect"
import * as path from "node:path"
import * as LargeFiles from "./LargeFiles.ts"
import { keyOf, recordOf } from "./OwnRecord.ts"
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
  type Store,
  takeOver,
  type Trouble,
  unwritable
} from "./Store.ts"

export interface Own {
  /** The git folder whose objects it borrows. */
  readonly lender: string
  readonly branch: string
}

/** The record of a folder; undefined for one that is no agent's repository. */
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

/** Settings that are of the person's git folder, and of no other. */
const BOUND =
  /^(core\.(repositoryformatversion|bare|worktree|logallrefupdates|fsmonitor|untrackedcache|splitindex|sharedrepository|sparsecheckout.*)|(extensions|include|includeif|gc|maintenance|index|branch|receive|uploadpack)\..*)$/

const quoted = (text: string): string =>
  `"${text.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n").replaceAll("\t", "\\t")}"`

/** Writes a setting as git's file has it; without a value it is true. */
const line = (name: string, value: string | undefined): string => {
  const [first, last] = [name.indexOf("."), name.lastIndexOf(".")]
  const section = name.slice(0, first)
  const head = first === last ? `[${section}]` : `[${section} ${quoted(name.slice(first + 1, last))}]`
  return `${head}\n\t${name.slice(last + 1)}${value === undefined ? "" : ` = ${quoted(value)}`}\n`
}

/** The person's repository, by the name that an agent's git knows it by. */
const REMOTE = "person"

/** The settings that the person's repository has, as far as they are not of its place; its hooks; where it lies. */
const carried = Effect.fnUntraced(function* ({ person: { commonDir } }: Store) {
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

/** The refs of the store that the person's branches are, and their names in an agent's repository. */
const SHOWN = [
  "+refs/person/heads/*:refs/remotes/*",
  "+refs/person/remotes/*:refs/remotes/*",
  // a tag of the agent's stays
  "refs/person/tags/*:refs/tags/*"
]

/** A git folder for an agent, on its branch at a commit, with the person's branches as they stand. */
const makeOwn = Effect.fnUntraced(function* (
  store: Store,
  gitDir: string,
  { branch, ref }: { readonly branch: string; readonly ref: string | undefined }
) {
  const more = yield* carried(store)
  yield* makeFolder(gitDir, { bare: false, borrows: store.person, head: `ref: refs/heads/${branch}`, more })
  const into = { gitDir, command: "fetch", options: ["--update-head-ok"] } as const
  if (ref !== undefined) yield* must({ ...into, names: [store.gitDir, `+${ref}:refs/heads/${branch}`] })
  // names that exclude each other (`origin`, `origin/main`) are left out
  for (const shown of SHOWN) yield* ask({ ...into, names: [store.gitDir, shown] })
})

/** The commit that a folder is being made of: with it, the folder was cut off, and nobody has worked there yet. */
const makingOf = (folder: string): string => `refs/making/${keyOf(folder)}`

/** Whether the folder was cut off while it was made. */
export const isHalfMade = (store: Store, folder: string) =>
  Effect.map(commitAt(store, makingOf(folder)), (commit) => commit !== undefined)

/** Makes the folder with the agent's repository in it, at a commit. Whatever lies there is gone. */
export const make = Effect.fnUntraced(function* (
  store: Store,
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
  // the person's filters make the files; a full name, that no option is like: older gits know no end of options here
  yield* must({ gitDir, workTree: folder, command: "reset", options: [commit], asPerson: true })
  yield* record(stores, folder, { lender: store.person.commonDir, branch })
  yield* must({ ...inStore, options: ["-d"], names: [ref] })
})

/** The branches and the stash of an agent's repository. */
const WORK = ["heads/", "stash"]

/** Takes everything over that an agent has committed: its commit. `tags`: those, too. */
export const take = (store: Store, folder: string, tags: boolean) =>
  takeOver(store, folder, tags ? [...WORK, "tags/"] : WORK)

/** The refs of what was taken over from a folder. */
const taken = (store: Store, folder: string) =>
  Effect.map(
    must({
      gitDir: store.gitDir,
      command: "for-each-ref",
      options: ["--format=%(refname)"],
      names: [`${refsOf(folder)}/`]
    }),
    (lines) => lines.split("\n").filter((name) => name !== "")
  )

/** Most refs that an agent puts into the person's repository. */
const MOST_REFS = 500

/**
 * Puts what was taken over where the person finds it, and where no `git gc` takes away what the agent borrows; of too
 * much only the agent's branch and where it stands.
 */
const give = Effect.fnUntraced(function* (store: Store, folder: string, branch: string) {
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

/** Moves the person's branch of that name to where the agent has it, if nobody else has moved it. */
const moveBranch = Effect.fnUntraced(function* (store: Store, folder: string, branch: string) {
  const tip = yield* commitAt(store, `${refsOf(folder)}/heads/${branch}`)
  if (tip === undefined) return
  const theirs = yield* commitAt(store, `refs/person/heads/${branch}`)
  const given = `refs/given/${keyOf(folder)}`
  const before = yield* commitAt(store, given)
  // a branch that a person has deleted stays so until there is more
  if (theirs === tip || (theirs === undefined && before === tip)) return
  if (theirs !== undefined && theirs !== before && !(yield* isAncestor(store, theirs, tip))) return
  if ((yield* Repository.checkouts(store.person)).some((one) => one.branch === branch)) return
  yield* must({ gitDir: store.gitDir, command: "update-ref", names: [given, tip] })
  const names = [`refs/heads/${branch}`, tip, theirs ?? ""]
  // who has moved it in this moment has it
  yield* ask({ gitDir: store.person.commonDir, command: "update-ref", names }, "person")
})

/**
 * Takes over what an agent has committed, and hands it over to the person's repository: the commit at which its tree
 * stands. In a checkout that is no agent's repository, the commit alone is taken over.
 */
export const handOver = Effect.fnUntraced(function* (store: Store, stores: string, folder: string) {
  const top = (yield* Repository.find(folder))?.top ?? folder
  const own = yield* read(stores, top)
  if (own === undefined) return yield* takeOver(store, folder)
  const commit = yield* take(store, top, false)
  yield* LargeFiles.carry(path.join(top, ".git"), own.lender)
  yield* give(store, top, own.branch)
  yield* moveBranch(store, top, own.branch)
  return commit
})

/** Shows the agent the person's branches as they stand, where this machine can hold the git that writes them. */
export const refresh = Effect.fnUntraced(function* (store: Store, folder: string) {
  const receiver = yield* heldIn(store, folder, ["git-receive-pack"])
  if (receiver === undefined) return
  // what the agent's repository refuses, the agent does not see
  yield* ask({
    gitDir: store.gitDir,
    command: "push",
    options: [`--receive-pack=${receiver}`],
    names: [folder, ...SHOWN]
  })
})

const PLAIN = ["core.hooksPath=/dev/null", "commit.gpgSign=false", "user.name=agentd", "user.email=agentd@localhost"]
const GIT = ["git", ...PLAIN.flatMap((setting) => ["-c", setting])].join(" ")
/** Commits what is not committed, then sends. */
const SAVES: Argv = [
  "sh",
  "-c",
  `(${GIT} add --all && ${GIT} commit --quiet --no-verify -m "not committed when its goal ended") >&2; exec git-upload-pack "$1"`,
  "sh"
]
/** Receives what the branch is to be at that is checked out, with its files; refuses where one of these is changed. */
const MOVES: Argv = ["sh", "-c", `exec ${GIT} -c receive.denyCurrentBranch=updateInstead receive-pack "$1"`, "sh"]

/**
 * Takes the branch that an agent is on back to a commit of its past, if `keep` says so of all that is there, with what
 * was not committed. Where this machine cannot hold the git that does it, all stays.
 */
export const takeBack = Effect.fnUntraced(function* (
  store: Store,
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

/** A commit of the agent's, taken over, that no branch of the person's has. */
export const stranded = Effect.fnUntraced(function* (store: Store, folder: string) {
  const options = ["--max-count=1", "--format=%H", `--glob=${refsOf(folder)}/*`, "--not", "--glob=refs/person/*"]
  const found = yield* must({ gitDir: store.gitDir, command: "log", options })
  return found.trim() === "" ? undefined : found.trim()
})

/** Removes the folder, and what is recorded of it. */
export const clear = Effect.fnUntraced(function* (store: Store, stores: string, folder: string, branch: string) {
  const files = yield* FileSystem.FileSystem
  const gone = (file: string) =>
    Effect.catchTag(files.remove(file, { recursive: true, force: true }), "PlatformError", unwritable(file))
  yield* gone(folder)
  yield* gone(recordOf(stores, folder))
  for (const name of yield* taken(store, folder))
    yield* must({ gitDir: store.gitDir, command: "update-ref", options: ["-d"], names: [name] })
  yield* give(store, folder, branch)
})

/** Files of a linked worktree's git folder that are of its place, or that git would obey. */
const OF_PLACE = new Set(["commondir", "gitdir", "locked", "config", "config.worktree", "hooks", "objects", "info"])

const remadeOf = (stores: string, folder: string): string => `${recordOf(stores, folder)}.git`

/** Makes a linked worktree of the person's repository a repository of the agent's own: each file of it stays. */
export const remake = Effect.fnUntraced(
  function* (store: Store, stores: string, folder: string, linked: string, branch: string) {
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

/** Ends what was cut off in `remake`, between its last two steps. */
export const endRemake = Effect.fnUntraced(
  function* (stores: string, folder: string) {
    const files = yield* FileSystem.FileSystem
    const gitDir = remadeOf(stores, folder)
    if (!(yield* files.exists(path.join(gitDir, "HEAD")))) return
    if (!(yield* files.exists(path.join(folder, ".git")))) yield* files.rename(gitDir, path.join(folder, ".git"))
  },
  (ending, _stores, folder) => Effect.catchTag(ending, "PlatformError", unwritable(folder))
)

/** Brings a folder back to its lender, which was moved. */
export const lendFrom = Effect.fnUntraced(
  function* (store: Store, stores: string, folder: string, branch: string) {
    const { commonDir: lender } = store.person
    yield* put(path.join(folder, ".git/objects/info/alternates"), `${path.join(lender, "objects")}\n`)
    yield* record(stores, folder, { lender, branch })
  },
  (mending, _store, _stores, folder) => Effect.catchTag(mending, "PlatformError", unwritable(folder))
)
