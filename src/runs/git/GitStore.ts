/**
 * GitStore: a git folder of the daemon for each of the user's repositories, through which the daemon inspects agents'
 * work.
 *
 *     STORE/objects/info/alternates   the user's objects, which the store borrows
 *     STORE/refs/person/…             the user's branches, remotes and tags, as of the last fetch
 *     STORE/refs/agents/KEY/…         the current commit and branches of an agent's tree, as of the last fetch
 *     STORE/trees/KEY                 HEAD and index with which the daemon inspects that tree
 *
 * Guarantees: No agent can write to a git folder in which this module runs git. Every object of a fetched commit is
 * checked. The git process that sends commits is confined if the machine has a sandbox. An agent's tree is only read.
 * An interrupted operation can be repeated.
 */
import { Context, Effect, FileSystem, Option, Random, Schema, Stream } from "effect"
import { createHash } from "node:crypto"
import * as path from "node:path"
import * as Backoff from "../../core/supervision/Backoff.ts"
import { type Answer, type Call, git, type GitUnavailable } from "./Git.ts"
import { keyOf } from "./AgentRepositoryRecord.ts"
import * as Repository from "./Repository.ts"
import { quoted } from "../../config/ShellWord.ts"

/** Git ran and reported an error. */
export class GitFailed extends Schema.TaggedError<GitFailed>()("GitFailed", {
  message: Schema.String,
  remedy: Schema.String
}) {}

export type Argv = readonly [string, ...ReadonlyArray<string>]

/** A command that is confined and can be started. */
export interface Held {
  readonly argv: Argv
  /** Contents of the command's file descriptors 3, 4 and so on. */
  readonly handed: ReadonlyArray<Uint8Array>
}

/** Confines a command to a folder. `cwd`: its working directory, by default that folder. */
export type Hold = (argv: Argv, cwd?: string) => Effect.Effect<Held, GitUnavailable>

export interface Needs {
  readonly network?: boolean
  /** Further folders that the command can read. They must not include a folder that an agent named. */
  readonly shared?: ReadonlyArray<string>
  /** Further files and folders, each with its path inside the sandbox. They must not be ones that an agent named. */
  readonly mounts?: ReadonlyArray<{ readonly source: string; readonly target: string; readonly writable: boolean }>
  /** A home folder that is kept; by default the home is empty and deleted afterwards. */
  readonly home?: string | undefined
}

/** Creates a function that confines commands to a folder; undefined if this machine has no sandbox. */
export type Confine = (folder: string, needs?: Needs) => Effect.Effect<Hold | undefined>

/** How commands are confined; by default they are not. */
export const Confine = Context.Reference<Confine>("agentd/git/Confine", {
  defaultValue: () => () => Effect.undefined
})

export const unwritable = (folder: string) => (error: { readonly message: string }) =>
  Effect.fail(
    new GitFailed({
      message: `nothing could be written in ${folder}: ${error.message}`,
      remedy: "check that agentd's user may write there, and that the disk is not full"
    })
  )

export interface GitStore {
  readonly gitDir: string
  readonly person: Repository.Repository
}

/** Formats the complete config file for a git folder that the daemon creates. */
const settings = (of: {
  readonly bare: boolean
  readonly format: string | undefined
  readonly files: ReadonlyArray<readonly [name: string, value: string]>
}): string =>
  [
    "[core]",
    `\trepositoryformatversion = ${of.format === undefined ? 0 : 1}`,
    `\tbare = ${of.bare}`,
    "\tlogAllRefUpdates = false",
    ...of.files.map(([name, value]) => `\t${name} = ${value}`),
    ...(of.format === undefined ? [] : ["[extensions]", `\tobjectFormat = ${of.format}`]),
    ""
  ].join("\n")

/** Writes a file if its content differs. */
export const put = Effect.fnUntraced(function* (file: string, content: string) {
  const files = yield* FileSystem.FileSystem
  const now = yield* Effect.option(files.readFileString(file))
  if (Option.isSome(now) && now.value === content) return
  // a random name, because another fiber may write the same file at the same time
  const part = `${file}.${yield* Random.nextIntBetween(0, 2 ** 31)}.new`
  yield* files.writeFileString(part, content)
  yield* files.rename(part, file)
})

/**
 * The user's settings for how git represents files in a checkout. VALUES contains only values that git itself defines.
 */
const FILES = "^core\\.(autocrlf|eol|filemode|ignorecase|symlinks|precomposeunicode)$"
const VALUES = /^core\.([a-z]+)\n(true|false|input|lf|crlf|native)$/

/**
 * Reads the settings FILES from the user's repository and home folder. Without them, a clean tree would look changed.
 */
const filesOf = Effect.fnUntraced(function* (commonDir: string) {
  const answer = yield* git({
    gitDir: commonDir,
    command: "config",
    options: ["--null", "--get-regexp", FILES],
    asPerson: true
  })
  if (answer.code !== 0) return []
  return answer.stdout.split("\0").flatMap((entry) => {
    const [, name, value] = VALUES.exec(entry) ?? []
    return name === undefined || value === undefined ? [] : [[name, value] as const]
  })
})

/** Creates a git folder without commits that borrows objects from another git folder. */
export const makeFolder = Effect.fnUntraced(
  function* (
    gitDir: string,
    of: {
      readonly bare: boolean
      readonly borrows: Pick<Repository.Repository, "commonDir">
      readonly head: string
      /** Further settings in the format of git's config file. */
      readonly more?: string
    }
  ) {
    const files = yield* FileSystem.FileSystem
    const { commonDir } = of.borrows
    for (const name of ["objects/info", "objects/pack", "refs/heads"])
      yield* files.makeDirectory(path.join(gitDir, name), { recursive: true, mode: 0o700 })
    const config = yield* Effect.orElseSucceed(files.readFileString(path.join(commonDir, "config")), () => "")
    const format = /^[ \t]*objectformat *= *(sha256)\b/im.exec(config)?.[1]?.toLowerCase()
    const looks = yield* filesOf(commonDir)
    yield* put(path.join(gitDir, "config"), settings({ bare: of.bare, format, files: looks }) + (of.more ?? ""))
    const excluded = yield* Effect.option(files.readFileString(path.join(commonDir, "info/exclude")))
    if (Option.isSome(excluded)) {
      yield* files.makeDirectory(path.join(gitDir, "info"), { recursive: true, mode: 0o700 })
      yield* put(path.join(gitDir, "info/exclude"), excluded.value)
    }
    yield* put(path.join(gitDir, "objects/info/alternates"), `${path.join(commonDir, "objects")}\n`)
    const shallow = yield* Effect.option(files.readFileString(path.join(commonDir, "shallow")))
    if (Option.isSome(shallow)) yield* put(path.join(gitDir, "shallow"), shallow.value)
    // written last: with HEAD, git accepts the folder as a repository
    yield* put(path.join(gitDir, "HEAD"), `${of.head}\n`)
  },
  (making, gitDir) => Effect.catchTag(making, "PlatformError", unwritable(gitDir))
)

/** Error messages that mean: another git process holds a lock for a moment, or was killed while it held one. */
const LOCKED = /cannot lock ref|\.lock': File exists|failed to read/
const LOCK_ENDS = Backoff.constant("50 millis")
const LOCK_TRIES = 10

/**
 * The owner of the git folder in which a command runs. In the user's folder, another git process may hold a lock for a
 * long time.
 */
export type Whose = "daemon" | "person"

/** Returns the path of the lock file in git's error message, if the file is in `folder`. */
const lockIn = (folder: string, { stderr }: Answer): string | undefined => {
  const file = /'([^'\n]+\.lock)': File exists/.exec(stderr)?.[1]
  return file !== undefined && path.resolve(file).startsWith(`${folder}/`) ? file : undefined
}

/**
 * Runs git and returns its result, even if git failed. If another git process holds a lock, retries. If a lock remains
 * in a folder of the daemon, a git process of an earlier daemon left it, and it is removed. This is safe, because only
 * one daemon runs and its commands there are brief.
 */
export const ask = Effect.fnUntraced(function* (call: Call, whose: Whose = "daemon") {
  for (let tries = 0; ; tries++) {
    const answer = yield* git(call)
    if (answer.code === 0 || tries > LOCK_TRIES || !LOCKED.test(answer.stderr)) return answer
    const lock = tries === LOCK_TRIES && whose === "daemon" ? lockIn(call.gitDir, answer) : undefined
    if (lock !== undefined)
      yield* Effect.ignore(Effect.flatMap(FileSystem.FileSystem, (files) => files.remove(lock, { force: true })))
    yield* Effect.sleep(Backoff.wait(LOCK_ENDS, tries + 1))
  }
})

export const failed = ({ command, gitDir }: Call, { stderr, stdout }: Answer) =>
  new GitFailed({
    message: `git ${command} failed: ${stderr || stdout.slice(0, 500)}`,
    remedy: `check ${gitDir} and the disk for damage`
  })

export const must = Effect.fnUntraced(function* (call: Call, whose: Whose = "daemon") {
  const answer = yield* ask(call, whose)
  return answer.code === 0 ? answer.stdout : yield* failed(call, answer)
})

const BRANCHES = ["heads", "remotes", "tags"].map((kind) => `+refs/${kind}/*:refs/person/${kind}/*`)

/** Opens the store of a repository, and fetches the user's current branches; undefined if there is no repository. */
export const open = Effect.fnUntraced(function* (stores: string, folder: string) {
  const person = yield* Repository.find(folder)
  if (person === undefined) return undefined
  const { commonDir } = person
  const top = path.basename(commonDir) === ".git" ? path.dirname(commonDir) : commonDir
  const store: GitStore = { person, gitDir: path.join(stores, keyOf(top)) }
  yield* makeFolder(store.gitDir, { bare: true, borrows: person, head: "ref: refs/heads/none" })
  yield* must({ gitDir: store.gitDir, command: "fetch", options: ["--prune"], names: [commonDir, ...BRANCHES] })
  return store
})

/** Id of the commit with this name; undefined if there is none. */
export const commitAt = Effect.fnUntraced(function* ({ gitDir }: Pick<GitStore, "gitDir">, name: string) {
  const call: Call = { gitDir, command: "rev-parse", options: ["--verify", "--quiet"], names: [`${name}^{commit}`] }
  const answer = yield* ask(call)
  if (answer.code === 0) return answer.stdout.trim()
  return answer.code === 1 ? undefined : yield* failed(call, answer)
})

/** Lists the store's refs that the user can mean by a commit's name, most likely first. */
const meanings = (word: string, head: Repository.Head | undefined): ReadonlyArray<string> => {
  if (word === "HEAD") return head === undefined ? [] : [head.commit ?? `refs/person/heads/${head.branch}`]
  if (word.startsWith("refs/")) return [word.replace("refs/", "refs/person/")]
  const ids = /^[0-9a-f]{7,64}$/.test(word) ? [word] : []
  return [...["heads", "remotes", "tags"].map((kind) => `refs/person/${kind}/${word}`), ...ids]
}

/**
 * Finds the ref in the store that the user means by a commit's name. If the name has a suffix such as `~2`, `ref` is
 * the commit id.
 */
export const refOf = Effect.fnUntraced(function* (store: GitStore, name: string) {
  const [, word = name, more = ""] = /^([^~^:]+)(.*)$/.exec(name) ?? []
  for (const ref of meanings(word, yield* Repository.headOf(store.person.gitDir))) {
    const commit = yield* commitAt(store, `${ref}${more}`)
    if (commit !== undefined) return { ref: more === "" ? ref : commit, commit }
  }
  return undefined
})

/** Finds the commit that the user gives as a branch, tag, HEAD or commit id. */
export const commitOf = (store: GitStore, name: string) => Effect.map(refOf(store, name), (found) => found?.commit)

export const isAncestor = Effect.fnUntraced(function* ({ gitDir }: GitStore, older: string, newer: string) {
  const call: Call = { gitDir, command: "merge-base", options: ["--is-ancestor"], names: [older, newer] }
  const answer = yield* ask(call)
  return answer.code <= 1 ? answer.code === 0 : yield* failed(call, answer)
})

/**
 * Builds the command line for git's program at the other end of a transfer, confined to an agent's folder. Undefined if
 * this machine has no sandbox.
 */
export const heldIn = Effect.fnUntraced(
  function* (store: GitStore, folder: string, program: Argv) {
    const hold = yield* (yield* Confine)(folder)
    if (hold === undefined) return undefined
    const { argv, handed } = yield* hold(program)
    const files = yield* FileSystem.FileSystem
    const senders = path.join(store.gitDir, "senders")
    yield* files.makeDirectory(senders, { recursive: true, mode: 0o700 })
    // git starts the sender through a shell, so the data for file descriptors comes from files in the store
    const redirects: Array<string> = []
    for (const [n, bytes] of handed.entries()) {
      const file = path.join(senders, `${keyOf(folder)}.${n + 3}`)
      yield* files.writeFile(file, bytes)
      redirects.push(`${n + 3}<${quoted(file)}`)
    }
    return [...redirects, ...argv.map(quoted)].join(" ")
  },
  (making, { gitDir }) => Effect.catchTag(making, "PlatformError", unwritable(gitDir))
)

/** Part of git's message for a repository without a commit. */
const UNBORN = /couldn't find remote ref HEAD/

/** Prefix of the refs in the store that belong to a folder. */
export const refsOf = (folder: string): string => `refs/agents/${keyOf(folder)}`

/**
 * Fetches the current commit of a folder's checkout; undefined if there is no commit. `besides`: prefixes of further
 * refs to fetch. `sends`: command line of the git program that sends the commits.
 */
export const takeOver = Effect.fnUntraced(function* (
  store: GitStore,
  folder: string,
  besides: ReadonlyArray<string> = [],
  sends: Argv = ["git-upload-pack"]
) {
  const found = yield* Repository.find(folder)
  if (found === undefined) return undefined
  const { top } = found
  const ref = `${refsOf(top)}/head`
  const sender = yield* heldIn(store, top, sends)
  const call: Call = {
    gitDir: store.gitDir,
    command: "fetch",
    options: ["--prune", ...(sender === undefined ? [] : [`--upload-pack=${sender}`])],
    names: [top, `+HEAD:${ref}`, ...besides.map((kind) => `+refs/${kind}*:${refsOf(top)}/${kind}*`)]
  }
  const answer = yield* ask(call)
  if (answer.code === 0) return yield* commitAt(store, ref)
  return UNBORN.test(answer.stderr) ? undefined : yield* failed(call, answer)
})

export interface Looked {
  /** The daemon's git folder for a tree, with an index of the tree's commit. */
  readonly gitDir: string
  readonly workTree: string
}

/**
 * Prepares an index with which a checkout is compared with `commit`. `by`: suffix of the git folder's name, for a
 * separate index.
 */
export const look = Effect.fnUntraced(function* (store: GitStore, top: string, commit: string, by = "") {
  const of: Looked = { gitDir: path.join(store.gitDir, "trees", `${keyOf(top)}${by}`), workTree: top }
  if ((yield* Repository.firstLine(path.join(of.gitDir, "HEAD"))) !== commit) yield* lookFrom(of.gitDir, commit)
  yield* ask({ ...of, command: "update-index", options: ["-q", "--refresh"] })
  return of
})

/**
 * Returns the lines of `git status` for a folder's checkout, compared with `commit` (default: its current commit). Git
 * LFS files that match their pointers are left out.
 */
export const changes = Effect.fnUntraced(function* (
  store: GitStore,
  folder: string,
  untracked: "all" | "no",
  commit?: string | undefined
) {
  const found = yield* Repository.find(folder)
  const base = commit ?? (yield* takeOver(store, folder))
  if (found === undefined || base === undefined) return []
  const of = yield* look(store, found.top, base)
  const { lines, pointed } = yield* status(of, untracked)
  return lines.filter((line) => !pointed.has(line))
})

/** Status of a checkout. `pointed`: the lines about Git LFS files whose content matches their pointer. */
export const status = Effect.fnUntraced(function* (of: Looked, untracked: "all" | "no") {
  const said = yield* must({
    ...of,
    command: "status",
    options: ["--porcelain", `--untracked-files=${untracked}`, "-z"]
  })
  const lines = said.split("\0").filter((line) => line !== "")
  return { lines, pointed: yield* pointedOf(of, lines) }
})

/** Maximum size of a file that is compared with its pointer, bytes. */
const MAX_POINTED = 1024 ** 3
const MAX_POINTER = 1_024

/** Maximum number of changed files that are compared with their pointers. */
const MOST_POINTED = 1_000

/**
 * Selects the lines about Git LFS files whose content matches their pointer. Git reports them as changed because no
 * filter runs here.
 */
const pointedOf = Effect.fnUntraced(function* (of: Looked, lines: ReadonlyArray<string>) {
  const changed = lines.filter((line) => line.startsWith(" M ")).slice(0, MOST_POINTED)
  if (changed.length === 0) return new Set<string>()
  const paths = changed.map((line) => line.slice(3))
  const said = (yield* must({ ...of, command: "check-attr", options: ["-z", "filter"], paths })).split("\0")
  const kept = new Set(said.flatMap((file, at) => (at % 3 === 0 && said[at + 2] === "lfs" ? [file] : [])))
  return new Set(
    yield* Effect.filter(changed, (line) =>
      kept.has(line.slice(3)) ? isPointed(of, line.slice(3)) : Effect.succeed(false)
    )
  )
})

/** Whether a file's content matches its Git LFS pointer in the index. False if that cannot be determined. */
const isPointed = Effect.fnUntraced(
  function* (of: Looked, file: string) {
    const pointer = yield* must({ ...of, command: "cat-file", options: ["blob"], names: [`:${file}`] })
    const [, oid, size] = /^oid sha256:([0-9a-f]{64})\nsize ([0-9]+)$/m.exec(pointer.slice(0, MAX_POINTER)) ?? []
    const files = yield* FileSystem.FileSystem
    const found = yield* files.stat(path.join(of.workTree, file))
    const is = Number(found.size)
    if (found.type !== "File" || is > MAX_POINTED || String(is) !== size) return false
    const hash = createHash("sha256")
    yield* Stream.runForEach(files.stream(path.join(of.workTree, file)), (bytes) =>
      Effect.sync(() => void hash.update(bytes))
    )
    return hash.digest("hex") === oid
  },
  Effect.orElseSucceed(() => false)
)

/** Lists the paths of embedded repositories in the commit with which the tree was last compared. */
export const embedded = Effect.fnUntraced(function* (store: GitStore, folder: string) {
  const gitDir = path.join(store.gitDir, "trees", keyOf(folder))
  const said = yield* must({ gitDir, command: "ls-files", options: ["--stage", "-z"] })
  return said.split("\0").flatMap((line) => (line.startsWith("160000 ") ? [line.slice(line.indexOf("\t") + 1)] : []))
})

/**
 * Counts the entries of a commit. Fails if there are more than `Bounds` allows. Git only lists the entries and does not
 * unpack them.
 */
export const count = (gitDir: string, commit: string) => must({ gitDir, command: "ls-tree", names: [commit] })

/** Creates the git folder for comparing a tree, with an index of the tree's commit. */
const lookFrom = Effect.fnUntraced(
  function* (gitDir: string, commit: string) {
    const files = yield* FileSystem.FileSystem
    yield* files.makeDirectory(gitDir, { recursive: true, mode: 0o700 })
    yield* put(path.join(gitDir, "commondir"), "../..\n")
    yield* files.remove(path.join(gitDir, "index.lock"), { force: true })
    yield* put(path.join(gitDir, "HEAD"), "ref: refs/heads/none\n")
    yield* count(gitDir, commit)
    yield* must({ gitDir, command: "read-tree", names: [commit] })
    yield* put(path.join(gitDir, "HEAD"), `${commit}\n`)
  },
  (making, gitDir) => Effect.catchTag(making, "PlatformError", unwritable(gitDir))
)

export type Trouble = GitFailed | GitUnavailable
