/**
 * Git: runs one git command for the daemon and waits for its end. No other module of the daemon starts git.
 *
 * Guarantees: Git reads only the settings of the git folder that the call names, which no agent can write. Settings
 * that could make git execute something are also disabled by name. From the daemon's environment, git gets only PATH,
 * and HOME if the call needs the user's settings. Only the listed commands are run, with flags that disable submodules,
 * drivers and hooks. The only allowed protocol is `file`, and only for fetch and push. A name is never interpreted as
 * an option.
 *
 * Output is stored up to a limit. Memory, CPU time, run time, printed bytes and listed files are limited, too, because
 * an agent's commit can unpack to any size. If the caller is interrupted, the command is ended.
 */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Config, Context, Data, Effect, Option, Schema, Stream } from "effect"
import { ChildProcess, ChildProcessSpawner } from "effect/process"

/** Git could not be started. */
export class GitUnavailable extends Schema.TaggedError<GitUnavailable>()("GitUnavailable", {
  message: Schema.String,
  remedy: Schema.String
}) {}

export interface Answer {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** Safe values for every setting with which git could run a program, enter another repository or trust another file. */
export const SETTINGS: ReadonlyArray<readonly [name: string, value: string]> = [
  ["core.hooksPath", "/dev/null"],
  ["core.fsmonitor", "false"],
  ["core.untrackedCache", "false"],
  ["core.sshCommand", "false"],
  ["core.askPass", "false"],
  ["core.gitProxy", ""],
  ["core.editor", "false"],
  ["sequence.editor", "false"],
  ["core.pager", "cat"],
  ["core.alternateRefsCommand", "true"],
  ["credential.helper", ""],
  ["diff.external", ""],
  ["gpg.program", "false"],
  ["gpg.ssh.program", "false"],
  ["gpg.x509.program", "false"],
  ["gpg.ssh.defaultKeyCommand", ""],
  ["log.showSignature", "false"],
  ["commit.gpgSign", "false"],
  ["tag.gpgSign", "false"],
  ["merge.verifySignatures", "false"],
  ["merge.stat", "false"],
  ["gc.auto", "0"],
  ["gc.recentObjectsHook", ""],
  ["maintenance.auto", "false"],
  ["receive.autogc", "false"],
  ["core.attributesFile", "/dev/null"],
  ["core.excludesFile", "/dev/null"],
  ["core.quotePath", "false"],
  ["core.protectHFS", "true"],
  ["core.protectNTFS", "true"],
  ["safe.bareRepository", "explicit"],
  ["submodule.recurse", "false"],
  ["diff.ignoreSubmodules", "all"],
  ["diff.submodule", "short"],
  ["status.submoduleSummary", "false"],
  ["fetch.recurseSubmodules", "false"],
  ["push.recurseSubmodules", "no"],
  ["fetch.writeCommitGraph", "false"],
  ["protocol.allow", "never"],
  ["transfer.fsckObjects", "true"],
  ["fetch.fsckObjects", "true"],
  ["transfer.bundleURI", "false"],
  ["advice.detachedHead", "false"],
  ["color.ui", "false"],
  ["user.name", "agentd"],
  ["user.email", "agentd@localhost"]
]

const QUIET = ["--no-ext-diff", "--no-textconv"] as const

/**
 * Allowed commands, each with its fixed flags. A setting is not always enough: `.gitmodules` overrides
 * `diff.ignoreSubmodules`, but not the flag.
 */
const COMMANDS = {
  "cat-file": [],
  "check-attr": [],
  "commit-tree": [],
  config: [],
  "diff-index": [...QUIET, "--ignore-submodules=all", "--no-color"],
  fetch: ["--quiet", "--no-recurse-submodules", "--no-auto-maintenance", "--no-write-fetch-head", "--no-tags"],
  "for-each-ref": [],
  log: [...QUIET, "--no-show-signature"],
  "ls-files": [],
  // counts a commit's entries before it is unpacked
  "ls-tree": ["-r", "-t", "-z", "--name-only"],
  "merge-base": [],
  "merge-tree": [],
  // used only to push from the store into an agent's repository, to a confined receiver
  push: ["--quiet", "--no-verify", "--no-recurse-submodules"],
  "read-tree": [],
  // writes files: used only in a work tree whose git folder the daemon has just created
  reset: ["--quiet", "--hard"],
  "rev-parse": [],
  status: ["--ignore-submodules=all"],
  "update-index": [],
  "update-ref": []
} satisfies { readonly [command: string]: ReadonlyArray<string> }

export type Command = keyof typeof COMMANDS

export interface Call {
  /** A git folder that no agent can write. */
  readonly gitDir: string
  /** Folder with the files to compare. An agent may have written these files. */
  readonly workTree?: string | undefined
  readonly command: Command
  readonly options?: ReadonlyArray<string> | undefined
  /** Arguments: commits, refs, or a repository to fetch from. None of them is interpreted as an option. */
  readonly names?: ReadonlyArray<string> | undefined
  readonly paths?: ReadonlyArray<string> | undefined
  /**
   * True if settings in the user's home folder are read too, for commands that need filters (Git LFS). Only for
   * repositories whose settings no agent can write.
   */
  readonly asPerson?: boolean | undefined
  /** If true, git is ended once the output limit is reached, and that is not an error. */
  readonly cuts?: boolean | undefined
}

export type Run = (call: Call) => Effect.Effect<Answer, GitUnavailable>

/** Timeout for a git command. Comparing the checkout of a large repository takes minutes. */
const TIME_LIMIT = "10 minutes"

/** Limits for each process of a git command. */
export interface Bounds {
  /** Maximum size of allocated memory, bytes. Mapped files are not counted. */
  readonly memory: number
  /** Maximum CPU time, seconds. */
  readonly processor: number
  /** Maximum size of the printed output, bytes. */
  readonly output: number
  /** Maximum number of files and folders in a commit that is checked out. */
  readonly entries: number
}

export const Bounds = Context.Reference<Bounds>("agentd/git/Bounds", {
  defaultValue: () => ({ memory: 2 * 1024 ** 3, processor: 300, output: 64 * 1024 ** 2, entries: 2_000_000 })
})

/**
 * Shell script that sets the limits and is then replaced by git. If a system does not support one limit, the other
 * still applies.
 */
const BOUNDED = 'ulimit -d "$1" 2>/dev/null; ulimit -t "$2" 2>/dev/null; shift 2; exec git "$@"'
/** Exit codes of the shell if git was not found. */
const NOT_FOUND = new Set([126, 127])
/** Maximum length of the output that is stored, characters. The rest is read and discarded. */
export const OUTPUT_LIMIT = 1_048_576

export const argumentsOf = ({ command, names, options = [], paths }: Call): ReadonlyArray<string> => [
  command,
  ...COMMANDS[command],
  ...options,
  ...(names === undefined ? [] : ["--end-of-options", ...names]),
  ...(paths === undefined ? [] : ["--", ...paths])
]

/** Settings among the fixed ones that would override the user's own settings for files. */
const OF_FILES = new Set(["core.attributesFile", "core.excludesFile"])

/** Variables that make git read only the repository's settings. HOME is a path in which no file can exist. */
const ALONE = {
  HOME: "/dev/null",
  XDG_CONFIG_HOME: "/dev/null",
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_CONFIG_SYSTEM: "/dev/null",
  GIT_CONFIG_GLOBAL: "/dev/null",
  GIT_ATTR_NOSYSTEM: "1"
}

/** Environment variables for git. `daemon`: the daemon's PATH and HOME. */
export const environmentOf = (
  { asPerson = false, command, gitDir, workTree }: Call,
  daemon: { readonly path: string; readonly home: string | undefined }
): { readonly [name: string]: string } => {
  const isFetch = command === "fetch" || command === "push"
  const settings = [
    ...SETTINGS.filter(([name]) => !asPerson || !OF_FILES.has(name)),
    ...(isFetch ? [["protocol.file.allow", "always"] as const] : [])
  ]
  return {
    PATH: daemon.path,
    ...(asPerson ? (daemon.home === undefined ? {} : { HOME: daemon.home }) : ALONE),
    LC_ALL: "C",
    GIT_DIR: gitDir,
    ...(workTree === undefined ? {} : { GIT_WORK_TREE: workTree }),
    GIT_TEMPLATE_DIR: "",
    GIT_TERMINAL_PROMPT: "0",
    GIT_ASKPASS: "false",
    SSH_ASKPASS: "false",
    GIT_SSH_COMMAND: "false",
    GIT_EDITOR: "false",
    GIT_PAGER: "cat",
    GIT_NO_LAZY_FETCH: "1",
    GIT_NO_REPLACE_OBJECTS: "1",
    // comparing files must not take a lock
    GIT_OPTIONAL_LOCKS: "0",
    GIT_PROTOCOL_FROM_USER: "0",
    GIT_ALLOW_PROTOCOL: isFetch ? "file" : "none",
    GIT_CONFIG_COUNT: String(settings.length),
    ...Object.fromEntries(
      settings.flatMap(([name, value], n) => [
        [`GIT_CONFIG_KEY_${n}`, name],
        [`GIT_CONFIG_VALUE_${n}`, value]
      ])
    )
  }
}

/**
 * Reads all output but stores only the first OUTPUT_LIMIT characters. If the rest were not read, the full pipe would
 * block git.
 */
const text = <E>(bytes: Stream.Stream<Uint8Array, E>) =>
  Stream.runFold(
    Stream.decodeText(bytes),
    () => "",
    (kept, chunk) => (kept.length < OUTPUT_LIMIT ? kept + chunk : kept)
  )

/** Raised when the stored output has reached its limit. */
class Enough extends Data.TaggedError("Enough")<{ readonly stdout: string }> {}

interface Reading {
  readonly text: string
  readonly decoder: InstanceType<typeof TextDecoder>
  readonly size: number
  readonly entries: number
}

const output = <E>(bytes: Stream.Stream<Uint8Array, E>, call: Call, bounds: Bounds) =>
  Stream.runFoldEffect(
    bytes,
    (): Reading => ({ text: "", decoder: new TextDecoder(), size: 0, entries: 0 }),
    (read, chunk): Effect.Effect<Reading, Enough | GitUnavailable> => {
      const { decoder } = read
      const kept = read.text.length < OUTPUT_LIMIT ? read.text + decoder.decode(chunk, { stream: true }) : read.text
      if (call.cuts === true && kept.length >= OUTPUT_LIMIT) return Effect.fail(new Enough({ stdout: kept }))
      const [size, entries] = [read.size + chunk.length, read.entries + namesIn(call, chunk)]
      if (entries > bounds.entries) return Effect.fail(ended(call, `it has more than ${bounds.entries} files`))
      // names are only counted, not stored
      return size > bounds.output && call.command !== "ls-tree"
        ? Effect.fail(ended(call, `it prints more than ${Math.ceil(bounds.output / 1024 ** 2)} MiB`))
        : Effect.succeed({ text: kept, decoder, size, entries })
    }
  ).pipe(Effect.map(({ text: kept }) => kept))

const namesIn = ({ command }: Call, chunk: Uint8Array): number => {
  let count = 0
  if (command === "ls-tree") for (const byte of chunk) if (byte === 0) count += 1
  return count
}

const placeOf = ({ gitDir, workTree }: Call): string => workTree ?? gitDir

const unavailable = (call: Call, why: string) =>
  new GitUnavailable({
    message: `git ${call.command} in ${placeOf(call)} could not be run: ${why}`,
    remedy: "install git, and check that it is in the daemon's PATH"
  })

/** The error for a command that exceeded its limits. */
const ended = (call: Call, why: string) =>
  new GitUnavailable({
    message: `git ${call.command} in ${placeOf(call)} was ended: ${why}`,
    remedy: "inspect it by hand: an agent's commit can unpack to any size"
  })

const OUT_OF_TIME = /SIGXCPU|SIGKILL/
const OUT_OF_MEMORY = /out of memory|memory exhausted|cannot allocate memory/i

const run: Run = (call) =>
  Effect.gen(function* () {
    const spawner = yield* ChildProcessSpawner.ChildProcessSpawner
    const path = yield* Config.withDefault(Config.String("PATH"), "/usr/bin:/bin")
    const home = Option.getOrUndefined(yield* Config.option(Config.String("HOME")))
    const most = yield* Bounds
    const { memory, processor } = most
    const bounds = [String(Math.ceil(memory / 1024)), String(processor)]
    const handle = yield* spawner.spawn(
      ChildProcess.make("/bin/sh", ["-c", BOUNDED, "git", ...bounds, ...argumentsOf(call)], {
        cwd: call.workTree ?? call.gitDir,
        env: environmentOf(call, { path, home }),
        extendEnv: false,
        stdin: "ignore",
        forceKillAfter: "5 seconds"
      })
    )
    const said = [output(handle.stdout, call, most), text(handle.stderr), handle.exitCode] as const
    const [stdout, stderr, code] = yield* Effect.all(said, { concurrency: "unbounded" })
    if (NOT_FOUND.has(code)) return yield* unavailable(call, stderr.trim())
    if (code !== 0 && OUT_OF_MEMORY.test(stderr))
      return yield* ended(call, `it needs more than ${Math.ceil(memory / 1024 ** 2)} MiB of memory`)
    return { code: Number(code), stdout, stderr: stderr.trim() }
  }).pipe(
    Effect.catchTag("Enough", ({ stdout }) => Effect.succeed({ code: 0, stdout, stderr: "" })),
    Effect.scoped,
    Effect.timeout(TIME_LIMIT),
    Effect.mapError((error) =>
      error._tag === "GitUnavailable"
        ? error
        : OUT_OF_TIME.test(error.message)
          ? ended(call, "it exceeded its CPU time limit")
          : unavailable(call, error.message)
    ),
    Effect.provide(NodeServices.layer)
  )

/** Runs git; by default this machine's git. */
export const Git = Context.Reference<Run>("agentd/git/Git", { defaultValue: () => run })

/** Runs a command for which every exit code is a result. Fails only if git cannot be run or exceeds a limit. */
export const git = (call: Call): Effect.Effect<Answer, GitUnavailable> => Effect.flatMap(Git, (run) => run(call))
