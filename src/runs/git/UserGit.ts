/**
 * UserGit: runs git as the user does in a terminal, with the user's settings, hooks and permissions. Used only by CLI
 * commands, never by the daemon.
 *
 * Guarantees: Environment variables that select a repository are removed (GIT_DIR …; git sets them if a hook calls the
 * command).
 */
import { Effect, Stream } from "effect"
import { ChildProcess, ChildProcessSpawner } from "effect/process"
import { type Answer, GitUnavailable } from "./Git.ts"

/**
 * Environment variables from `git rev-parse --local-env-vars`, and others that change in which repository or folder git
 * works.
 */
const REPOSITORY_VARIABLES = `GIT_ALTERNATE_OBJECT_DIRECTORIES GIT_CEILING_DIRECTORIES GIT_COMMON_DIR GIT_CONFIG
GIT_CONFIG_COUNT GIT_CONFIG_PARAMETERS GIT_DIR GIT_GRAFT_FILE GIT_IMPLICIT_WORK_TREE GIT_INDEX_FILE
GIT_INTERNAL_SUPER_PREFIX GIT_NAMESPACE GIT_NO_REPLACE_OBJECTS GIT_OBJECT_DIRECTORY GIT_PREFIX GIT_QUARANTINE_PATH
GIT_REPLACE_REF_BASE GIT_SHALLOW_FILE GIT_WORK_TREE`.split(/\s+/)

const environment = {
  ...Object.fromEntries(REPOSITORY_VARIABLES.map((name) => [name, undefined])),
  // English output, because commands parse it
  LC_ALL: "C"
}

/** Runs git. Every exit code counts as a result. Fails only if git cannot be run. */
export const run = Effect.fnUntraced(
  function* (folder: string, ...args: ReadonlyArray<string>) {
    const spawner = yield* ChildProcessSpawner.ChildProcessSpawner
    const handle = yield* spawner.spawn(
      ChildProcess.make("git", ["-C", folder, ...args], { env: environment, extendEnv: true, stdin: "ignore" })
    )
    const text = (bytes: typeof handle.stdout) => Stream.mkString(Stream.decodeText(bytes))
    const [stdout, stderr, code] = yield* Effect.all([text(handle.stdout), text(handle.stderr), handle.exitCode], {
      concurrency: "unbounded"
    })
    const answer: Answer = { code: Number(code), stdout, stderr: stderr.trim() }
    return answer
  },
  Effect.scoped,
  Effect.catchTag("PlatformError", ({ message }) =>
    Effect.fail(
      new GitUnavailable({
        message: `git could not be run: ${message}`,
        remedy: "install git, and check that it is in the PATH"
      })
    )
  )
)
