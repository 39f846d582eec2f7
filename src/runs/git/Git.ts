/**
 * Git: one git command of the daemon's, run to its end. No other module of the daemon starts git.
 *
 * Guarantees: git reads no settings but those of the git folder that the call names, which
 * no agent can write; what settings could make git execute is switched off by name besides;
 * the environment is a list of its own, of the daemon's there is nothing in it but PATH; only
 * the listed commands are run, with flags that keep them out of submodules, drivers and hooks;
 * no protocol is allowed but `file`, and that only for a fetch or push; a name can be no option.
 * What git prints is kept up to a limit, and it ends within a limit, of memory, of the processor's time, of what it
 * prints and of the files that it lists, too: what an agent has committed may unfold to anything. It ends with its asker.
 */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Config, Context, Data, Effect, Option, Schema, Stream } from "effect"
import { ChildProcess, ChildProcessSpawner } from "effect/process"

/** Git could not be run at all. */
export class GitUnavailable extends Schema.TaggedError<GitUnavailable>()("GitUnavailable", {
  message: Schema.String,
  remedy: Schema.String
}) {}

export interface Answer {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** Every setting that could make git execute something, enter another repository or believe another file. */
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
 * The commands that there are, each with the flags that no setting can stand for: `.gitmodules`
 * overrules `diff.ignoreSubmodules`, the flag wins.
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
  // before a commit is unfolded: its entries are counted
  "ls-tree": ["-r", "-t", "-z", "--name-only"],
  "merge-base": [],
  "merge-tree": [],
  // from the store into an agent's repository, by a receiver that is held there
  push: ["--quiet", "--no-verify", "--no-recurse-submodules"],
  "read-tree": [],
  // it writes files: only in a tree of the daemon's own, whose git folder was made anew for that
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
  /** The files that are looked at; an agent may have written them. */
  readonly workTree?: string | undefined
  readonly command: Command
  readonly options?: ReadonlyArray<string> | undefined
  /** Commits, refs, a repository to fetch from: none of them can be an option. */
  readonly names?: ReadonlyArray<string> | undefined
  readonly paths?: ReadonlyArray<string> | undefined
  /**
   * With the settings of the person's home besides: for what their filters take part in (Git LFS), in a repository
   * whose settings no agent can write.
   */
  readonly asPerson?: boolean | undefined
  /** The part of its output that is kept is enough: git is ended there, and that is no failure. */
  readonly cuts?: boolean | undefined
}

export type Run = (call: Call) => Effect.Effect<Answer, GitUnavailable>

/** A checkout of a large repository takes minutes to be looked at. */
const TIME_LIMIT = "10 minutes"

/** Most that each process of a git command may use. */
export interface Bounds {
  /** Bytes of memory that it writes; files that it maps are not counted. */
  readonly memory: number
  /** Seconds of a processor. */
  readonly processor: number
  /** Bytes that it prints. */
  readonly output: number
  /** Files and folders of a commit that is unfolded. */
  readonly entries: number
}

/** The bounds of this machine's git. */
export const Bounds = Context.Reference<Bounds>("agentd/git/Bounds", {
  defaultValue: () => ({ memory: 2 * 1024 ** 3, processor: 300, output: 64 * 1024 ** 2, entries: 2_000_000 })
})

/** A shell sets the bounds and becomes git; where a machine knows one of them not, the other holds. */
const BOUNDED = 'ulimit -d "$1" 2>/dev/null; ulimit -t "$2" 2>/dev/null; shift 2; exec git "$@"'
/** Of a shell that finds no git. */
const NOT_FOUND = new Set([126, 127])
/** Of what git prints, characters; what comes after is read and not kept. */
export const OUTPUT_LIMIT = 1_048_576

/** The arguments as git gets them. */
export const argumentsOf = ({ command, names, options = [], paths }: Call): ReadonlyArray<string> => [
  command,
  ...COMMANDS[command],
  ...options,
  ...(names === undefined ? [] : ["--end-of-options", ...names]),
  ...(paths === undefined ? [] : ["--", ...paths])
]

/** Settings that would hide what the person's home says of files. */
const OF_FILES = new Set(["core.attributesFile", "core.excludesFile"])

/** The variables by which git reads no settings but the repository's. The home is a place where nothing can ever lie. */
const ALONE = {
  HOME: "/dev/null",
  XDG_CONFIG_HOME: "/dev/null",
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_CONFIG_SYSTEM: "/dev/null",
  GIT_CONFIG_GLOBAL: "/dev/null",
  GIT_ATTR_NOSYSTEM: "1"
}

/** The whole environment. `daemon`: the two variables of it that git may have. */
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
    // looking at a tree must lock nothing
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

/** All of it is read, not all of it kept: an unread pipe would stop git. */
const text = <E>(bytes: Stream.Stream<Uint8Array, E>) =>
  Stream.runFold(
    Stream.decodeText(bytes),
    () => "",
    (kept, chunk) => (kept.length < OUTPUT_LIMIT ? kept + chunk : kept)
  )

/** The output is as long as is kept. */
class Enough extends Data.TaggedError("Enough")<{ readonly stdout: string }> {}

interface Reading {
  readonly text: string
  readonly decoder: InstanceType<typeof TextDecoder>
  readonly size: number
  readonly entries: number
}

/** Reads it up to its bounds. */
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
      // names are counted, and not kept
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
    remedy: "install git and see that it is in the daemon's PATH"
  })

/** Explains that a command was past its bounds. */
const ended = (call: Call, why: string) =>
  new GitUnavailable({
    message: `git ${call.command} in ${placeOf(call)} was ended: ${why}`,
    remedy: "look at it by hand: what an agent has committed may unfold to anything"
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
          ? ended(call, "it needs more of the processor's time than it may have")
          : unavailable(call, error.message)
    ),
    Effect.provide(NodeServices.layer)
  )

/** The service that runs git; by default this machine's. */
export const Git = Context.Reference<Run>("agentd/git/Git", { defaultValue: () => run })

/** Any exit code is an answer; that git cannot be run, or does not end, is the failure. */
export const git = (call: Call): Effect.Effect<Answer, GitUnavailable> => Effect.flatMap(Git, (run) => run(call))
