/**
 * Store: the daemon's own git folder beside a person's repository, in which it looks at what
 * agents have done.
 *
 *     STORE/objects/info/alternates   the person's objects, which the store borrows
 *     STORE/refs/person/…             the person's branches, remotes and tags, at the last look
 *     STORE/refs/agents/KEY/…         what an agent's tree stood at, and the branches that it has, at the last look
 *     STORE/trees/KEY                 HEAD and index by which the daemon looks at that tree
 *
 * Guarantees: no agent can write a git folder in which git is run here; commits come by a fetch
 * that checks each object, from a sender that is confined where the machine can confine it; an
 * agent's tree is only read. What a git that was cut off has left is taken up again, any number
 * of times.
 */
import { Context, Effect, FileSystem, Option, Random, Schema, Stream } from "effect"
import { createHash } from "node:crypto"
import * as path from "node:path"
import * as Backoff from "../../core/supervision/Backoff.ts"
import { type Answer, type Call, git, type GitUnavailable } from "./Git.ts"
import { keyOf } from "./OwnRecord.ts"
import * as Repository from "./Repository.ts"

/** Git was run and refused. */
export class GitFailed extends Schema.TaggedError<GitFailed>()("GitFailed", {
  message: Schema.String,
  remedy: Schema.String
}) {}

export type Argv = readonly [string, ...ReadonlyArray<string>]

/** A command that is held, as it is started. */
export interface Held {
  readonly argv: Argv
  /** The content of its descriptors 3, 4 … */
  readonly handed: ReadonlyArray<Uint8Array>
}

/** Makes of a command one that is held in a folder; it begins in `cwd`, by default in that folder. */
export type Hold = (argv: Argv, cwd?: string) => Effect.Effect<Held, GitUnavailable>

export interface Needs {
  /** Whether it is to have the network. */
  readonly network?: boolean
  /** Folders that it reads besides: never one that an agent named. */
  readonly shared?: ReadonlyArray<string>
}

/** Makes of commands such as are held in a folder; undefined where this machine has nothing that holds them. */
export type Confine = (folder: string, needs?: Needs) => Effect.Effect<Hold | undefined>

/** The machine's confinement; by default there is none. */
export const Confine = Context.Reference<Confine>("agentd/git/Confine", {
  defaultValue: () => () => Effect.undefined
})

/** Explains that a folder of the daemon's own cannot be written. */
export const unwritable = (folder: string) => (error: { readonly message: string }) =>
  Effect.fail(
    new GitFailed({
      message: `nothing could be written in ${folder}: ${error.message}`,
      remedy: "see that agentd's user may write there, and that the disk is not full"
    })
  )

export interface Store {
  readonly gitDir: string
  readonly person: Repository.Repository
}

/** The whole of a git folder's settings: written by the daemon, so nothing else can be in them. */
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

/** Writes a file that does not have that content yet. */
export const put = Effect.fnUntraced(function* (file: string, content: string) {
  const files = yield* FileSystem.FileSystem
  const now = yield* Effect.option(files.readFileString(file))
  if (Option.isSome(now) && now.value === content) return
  // another fiber may be at the same file
  const part = `${file}.${yield* Random.nextIntBetween(0, 2 ** 31)}.new`
  yield* files.writeFileString(part, content)
  yield* files.rename(part, file)
})

/** Settings of the person's that say how a file of the checkout looks, and the values that are words of git's. */
const FILES = "^core\\.(autocrlf|eol|filemode|ignorecase|symlinks|precomposeunicode)$"
const VALUES = /^core\.([a-z]+)\n(true|false|input|lf|crlf|native)$/

/** Reads those settings as the person's repository and home have them: without them a clean tree would look changed. */
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

/** A git folder without commits that borrows objects. */
export const makeFolder = Effect.fnUntraced(
  function* (
    gitDir: string,
    of: {
      readonly bare: boolean
      readonly borrows: Pick<Repository.Repository, "commonDir">
      readonly head: string
      /** Settings besides, as git writes them. */
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
    // the last: with it git takes the folder for a repository
    yield* put(path.join(gitDir, "HEAD"), `${of.head}\n`)
  },
  (making, gitDir) => Effect.catchTag(making, "PlatformError", unwritable(gitDir))
)

/** Another git holds a lock for a moment, or was cut off while it held it. */
const LOCKED = /cannot lock ref|\.lock': File exists|failed to read/
const LOCK_ENDS = Backoff.constant("50 millis")
const LOCK_TRIES = 10

/** The owner of the git folder that a command runs on: in the person's another git may rightfully hold a lock for long. */
export type Whose = "daemon" | "person"

/** The lock that git complains of, where it lies in that folder. */
const lockIn = (folder: string, { stderr }: Answer): string | undefined => {
  const file = /'([^'\n]+\.lock)': File exists/.exec(stderr)?.[1]
  return file !== undefined && path.resolve(file).startsWith(`${folder}/`) ? file : undefined
}

/**
 * Git's answer, whatever it is. A lock that another git holds is waited for; one that stays in a folder of the daemon's
 * own was left by a git that died with an earlier daemon: only one daemon runs, and its commands are brief there.
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
    remedy: `see whether ${gitDir} is in order, and the disk`
  })

/** Runs a command that must succeed, and gives what git prints. */
export const must = Effect.fnUntraced(function* (call: Call, whose: Whose = "daemon") {
  const answer = yield* ask(call, whose)
  return answer.code === 0 ? answer.stdout : yield* failed(call, answer)
})

const BRANCHES = ["heads", "remotes", "tags"].map((kind) => `+refs/${kind}/*:refs/person/${kind}/*`)

/** The store of the repository in which a folder lies, with the person's branches as they stand; undefined without one. */
export const open = Effect.fnUntraced(function* (stores: string, folder: string) {
  const person = yield* Repository.find(folder)
  if (person === undefined) return undefined
  const { commonDir } = person
  const top = path.basename(commonDir) === ".git" ? path.dirname(commonDir) : commonDir
  const store: Store = { person, gitDir: path.join(stores, keyOf(top)) }
  yield* makeFolder(store.gitDir, { bare: true, borrows: person, head: "ref: refs/heads/none" })
  yield* must({ gitDir: store.gitDir, command: "fetch", options: ["--prune"], names: [commonDir, ...BRANCHES] })
  return store
})

/** The commit that a name of the store's stands for. */
export const commitAt = Effect.fnUntraced(function* ({ gitDir }: Pick<Store, "gitDir">, name: string) {
  const call: Call = { gitDir, command: "rev-parse", options: ["--verify", "--quiet"], names: [`${name}^{commit}`] }
  const answer = yield* ask(call)
  if (answer.code === 0) return answer.stdout.trim()
  return answer.code === 1 ? undefined : yield* failed(call, answer)
})

/** The refs of the store that a person's word for a commit may mean, the likeliest first. */
const meanings = (word: string, head: Repository.Head | undefined): ReadonlyArray<string> => {
  if (word === "HEAD") return head === undefined ? [] : [head.commit ?? `refs/person/heads/${head.branch}`]
  if (word.startsWith("refs/")) return [word.replace("refs/", "refs/person/")]
  const ids = /^[0-9a-f]{7,64}$/.test(word) ? [word] : []
  return [...["heads", "remotes", "tags"].map((kind) => `refs/person/${kind}/${word}`), ...ids]
}

/** The ref of the store that a person's word for a commit means, without what follows the word (`~2`). */
export const refOf = Effect.fnUntraced(function* (store: Store, name: string) {
  const [, word = name, more = ""] = /^([^~^:]+)(.*)$/.exec(name) ?? []
  for (const ref of meanings(word, yield* Repository.headOf(store.person.gitDir))) {
    const commit = yield* commitAt(store, `${ref}${more}`)
    if (commit !== undefined) return { ref: more === "" ? ref : commit, commit }
  }
  return undefined
})

/** The commit that a person's word means: a branch, a tag, HEAD, a commit. */
export const commitOf = (store: Store, name: string) => Effect.map(refOf(store, name), (found) => found?.commit)

export const isAncestor = Effect.fnUntraced(function* ({ gitDir }: Store, older: string, newer: string) {
  const call: Call = { gitDir, command: "merge-base", options: ["--is-ancestor"], names: [older, newer] }
  const answer = yield* ask(call)
  return answer.code <= 1 ? answer.code === 0 : yield* failed(call, answer)
})

/** A word of a shell's. */
const quoted = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`

/**
 * The program at the other end, in a folder that an agent writes, as a line for a shell: git's own, held in the folder;
 * undefined where this machine holds nothing.
 */
export const heldIn = Effect.fnUntraced(
  function* (store: Store, folder: string, program: Argv) {
    const hold = yield* (yield* Confine)(folder)
    if (hold === undefined) return undefined
    const { argv, handed } = yield* hold(program)
    const files = yield* FileSystem.FileSystem
    const senders = path.join(store.gitDir, "senders")
    yield* files.makeDirectory(senders, { recursive: true, mode: 0o700 })
    // git starts the sender by a shell: what it is to read from descriptors comes from files of the store's
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

/** Git's words for a repository without a commit. */
const UNBORN = /couldn't find remote ref HEAD/

/** The refs of the store that are of a folder. */
export const refsOf = (folder: string): string => `refs/agents/${keyOf(folder)}`

/** Takes the commit over at which the checkout of that folder stands, `besides` more; undefined where there is none. `sends`: by which program. */
export const takeOver = Effect.fnUntraced(function* (
  store: Store,
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
  /** Of the daemon's own, with an index of the commit at which the tree stands. */
  readonly gitDir: string
  readonly workTree: string
}

/** An index by which a checkout is looked at, as it stands at that commit; `by`: one of its own. */
export const look = Effect.fnUntraced(function* (store: Store, top: string, commit: string, by = "") {
  const of: Looked = { gitDir: path.join(store.gitDir, "trees", `${keyOf(top)}${by}`), workTree: top }
  if ((yield* Repository.firstLine(path.join(of.gitDir, "HEAD"))) !== commit) yield* lookFrom(of.gitDir, commit)
  yield* ask({ ...of, command: "update-index", options: ["-q", "--refresh"] })
  return of
})

/** The lines of `git status` for the checkout of that folder, beside the commit at which it stands. */
export const changes = Effect.fnUntraced(function* (
  store: Store,
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

/** The lines of `git status`, and those of them that are of files of Git LFS as their pointers say. */
export const status = Effect.fnUntraced(function* (of: Looked, untracked: "all" | "no") {
  const said = yield* must({
    ...of,
    command: "status",
    options: ["--porcelain", `--untracked-files=${untracked}`, "-z"]
  })
  const lines = said.split("\0").filter((line) => line !== "")
  return { lines, pointed: yield* pointedOf(of, lines) }
})

/** Most bytes of a file that is compared with its pointer. */
const MAX_POINTED = 1024 ** 3
const MAX_POINTER = 1_024

/** Most changed files that are looked at for that. */
const MOST_POINTED = 1_000

/** The lines of files that Git LFS keeps and that are what their pointers say: no filter runs here, so they look changed. */
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

/** Whether a file's content is what its pointer in the index names; where that cannot be told, it is not. */
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

/** The paths at which the commit that a tree was last looked at from has other repositories. */
export const embedded = Effect.fnUntraced(function* (store: Store, folder: string) {
  const gitDir = path.join(store.gitDir, "trees", keyOf(folder))
  const said = yield* must({ gitDir, command: "ls-files", options: ["--stage", "-z"] })
  return said.split("\0").flatMap((line) => (line.startsWith("160000 ") ? [line.slice(line.indexOf("\t") + 1)] : []))
})

/** Fails where the commit has more entries than this program unfolds: they are counted as git lists them. */
export const count = (gitDir: string, commit: string) => must({ gitDir, command: "ls-tree", names: [commit] })

/** Makes the git folder by which a tree is looked at, with an index of that commit. */
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
