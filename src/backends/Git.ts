/**
 * Git: one git command, run to its end.
 *
 * Guarantees: none of the repository's hooks runs, nor any file system monitor; the
 * variables by which git finds a repository (GIT_DIR, GIT_INDEX_FILE …: set when agentd
 * is started from a hook) do not mislead it; it asks nobody for anything; its messages
 * are in English; what it prints is kept up to a limit; it ends within a limit.
 */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Context, Effect, Schema, Stream } from "effect"
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

/** A checkout of a large repository, with its filters, takes minutes. */
const TIME_LIMIT = "10 minutes"
const OUTPUT_LIMIT = 1_048_576

const SETTINGS = ["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "advice.detachedHead=false"]

/** `git rev-parse --local-env-vars`, and what else changes where or what a command acts on. */
const REPOSITORY_VARIABLES = [
  "GIT_ALTERNATE_OBJECT_DIRECTORIES",
  "GIT_CEILING_DIRECTORIES",
  "GIT_COMMON_DIR",
  "GIT_CONFIG",
  "GIT_CONFIG_COUNT",
  "GIT_CONFIG_PARAMETERS",
  "GIT_DIR",
  "GIT_GRAFT_FILE",
  "GIT_IMPLICIT_WORK_TREE",
  "GIT_INDEX_FILE",
  "GIT_INTERNAL_SUPER_PREFIX",
  "GIT_NAMESPACE",
  "GIT_NO_REPLACE_OBJECTS",
  "GIT_OBJECT_DIRECTORY",
  "GIT_PREFIX",
  "GIT_QUARANTINE_PATH",
  "GIT_REPLACE_REF_BASE",
  "GIT_SHALLOW_FILE",
  "GIT_TEMPLATE_DIR",
  "GIT_WORK_TREE"
]

const environment = {
  ...Object.fromEntries(REPOSITORY_VARIABLES.map((name) => [name, undefined])),
  GIT_TERMINAL_PROMPT: "0",
  // looking at a worktree must not lock its index against the agent in it
  GIT_OPTIONAL_LOCKS: "0",
  LC_ALL: "C"
}

/** All of it is read, not all of it kept: an unread pipe would stop git. */
const text = <E>(bytes: Stream.Stream<Uint8Array, E>) =>
  Stream.runFold(
    Stream.decodeText(bytes),
    () => "",
    (kept, chunk) => (kept.length < OUTPUT_LIMIT ? kept + chunk : kept)
  )

export type Run = (folder: string, args: ReadonlyArray<string>) => Effect.Effect<Answer, GitUnavailable>

const run: Run = (folder, args) =>
  Effect.gen(function* () {
    const spawner = yield* ChildProcessSpawner.ChildProcessSpawner
    const handle = yield* spawner.spawn(
      ChildProcess.make("git", [...SETTINGS, "-C", folder, ...args], {
        env: environment,
        extendEnv: true,
        stdin: "ignore",
        forceKillAfter: "5 seconds"
      })
    )
    const [stdout, stderr, code] = yield* Effect.all([text(handle.stdout), text(handle.stderr), handle.exitCode], {
      concurrency: "unbounded"
    })
    return { code: Number(code), stdout, stderr: stderr.trim() }
  }).pipe(
    Effect.scoped,
    Effect.timeout(TIME_LIMIT),
    Effect.mapError(
      ({ message }) =>
        new GitUnavailable({
          message: `git ${args[0]} in ${folder} could not be run: ${message}`,
          remedy: "install git and see that it is in the daemon's PATH"
        })
    ),
    Effect.provide(NodeServices.layer)
  )

/** The service that runs git; by default this machine's. */
export const Git = Context.Reference<Run>("agentd/backends/Git", { defaultValue: () => run })

/** Any exit code is an answer; that git cannot be run, or does not end, is the failure. */
export const git = (folder: string, ...args: ReadonlyArray<string>): Effect.Effect<Answer, GitUnavailable> =>
  Effect.flatMap(Git, (run) => run(folder, args))
