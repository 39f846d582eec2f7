/**
 * CheckCommand: runs one command of a review's checks to its end. The service can be replaced: a simulation decides how
 * commands end.
 *
 * Guarantees: the command runs code that agents wrote. If the machine has a sandbox, the command is confined to its
 * folder, as agents' tools are. Without a sandbox, it runs only if the project does not require one, and the outcome
 * says so. Of the daemon's environment variables, the command gets only those that any program needs, and no API key.
 * Its time, memory, processes and disk writes are limited. None of its processes survives, even if the daemon ends.
 * Only the end of its output is kept, up to a limit.
 */
import { Context, Duration, Effect, type FileSystem } from "effect"
import { BackendError } from "../runs/Backend.ts"
import type { ProcessTree } from "../runs/process/ProcessTree.ts"
import type { Reaper } from "../runs/process/Reaper.ts"
import type { Environment, ExitStatus } from "../runs/process/ChildProcess.ts"
import * as ChildEnvironment from "../runs/process/ChildEnvironment.ts"
import * as RunLimits from "../runs/process/RunLimits.ts"
import * as RunProcess from "../runs/process/RunProcess.ts"
import type { GoalConfig } from "../config/GoalConfig.ts"
import { Confine } from "../runs/git/GitStore.ts"
import * as Repository from "../runs/git/Repository.ts"
import * as Ids from "../domain/Ids.ts"

export interface Command {
  /** A command line for `sh`. */
  readonly command: string
  readonly cwd: string
  /** Timeout of the command, ms. */
  readonly timeout: number
  readonly store: string
  /** The daemon's environment variables. Only a few are passed to the command. */
  readonly environment: Environment
  readonly manner: Manner
  /** Additional folders that a sandboxed command can read. */
  readonly shared: ReadonlyArray<string>
}

export type Manner = Pick<GoalConfig, "env" | "limits" | "network" | "sandbox">

export interface Ended {
  readonly status: ExitStatus
  /** The end of stdout and stderr together. */
  readonly printed: string
  /** Whether the command ran in a sandbox. */
  readonly held: boolean
}

/** Runs a command. Returns undefined if the command exceeded its timeout and was killed. */
export type Run = (
  of: Command
) => Effect.Effect<Ended | undefined, BackendError, FileSystem.FileSystem | ProcessTree | Reaper>

/** Maximum length of a command's output, in characters. If the output is longer, its end is kept. */
const KEPT = 4_000
const GRACE = Duration.seconds(5)

/** Reads to the end. Returns the last `KEPT` characters. */
const tail = Effect.fnUntraced(function* (pipe: RunProcess.RunProcess["stdout"]) {
  const decoder = new TextDecoder()
  let kept = ""
  for (let chunk = yield* pipe.read; chunk !== undefined; chunk = yield* pipe.read) {
    kept = (kept + decoder.decode(chunk, { stream: true })).slice(-KEPT)
  }
  return kept
})

/** The environment of a command: the daemon's variables that any program needs, and those of the project's config. */
export const environmentOf = (environment: Environment, { env, network }: Manner): Environment => ({
  ...ChildEnvironment.given(environment, { offline: !network }),
  GIT_TERMINAL_PROMPT: "0",
  ...env
})

const unheld = new BackendError({
  message: "the project requires a sandbox for its checks, and none works on this machine",
  remedy: 'install bubblewrap (see: agentd doctor), or set goals.sandbox to "preferred"',
  fatal: false
})

const run: Run = Effect.fnUntraced(function* ({ command, cwd, environment, manner, shared, store, timeout }) {
  // the sandbox covers the whole checkout, as a command may use files outside its folder
  const top = (yield* Repository.find(cwd))?.top ?? cwd
  const confine = yield* (yield* Confine)(top, { network: manner.network, shared })
  if (confine === undefined && manner.sandbox === "required") return yield* unheld
  const line = ["sh", "-c", command] as const
  const held: Pick<RunProcess.RunProcessSpec, "argv" | "handed"> =
    confine === undefined
      ? { argv: line }
      : yield* Effect.mapError(
          confine(line, cwd),
          ({ message, remedy }) => new BackendError({ message, remedy, fatal: false })
        )
  const runId = yield* Ids.runId
  const child = yield* RunProcess.make({
    store,
    runId,
    ...held,
    cwd,
    env: environmentOf(environment, manner),
    grace: GRACE
  })
  const reading = Effect.all([tail(child.stdout), tail(child.stderr)], { concurrency: 2 })
  const done = Effect.zipWith(
    reading,
    child.exited,
    (texts, status): Ended => ({
      status,
      printed: texts.join("\n").trim().slice(-KEPT),
      held: confine !== undefined
    }),
    { concurrent: true }
  )
  const { passed } = yield* RunLimits.RunLimits
  const over = Effect.map(passed({ runId, cwd: top, limits: manner.limits }), (passed): Ended => ({
    status: { code: null, signal: "SIGKILL" },
    printed: RunLimits.sentence(passed, "of the project's goals"),
    held: confine !== undefined
  }))
  const ended = yield* Effect.timeoutOption(Effect.raceFirst(done, over), timeout)
  return ended._tag === "Some" ? ended.value : undefined
}, Effect.scoped)

export const CheckCommand = Context.Reference<Run>("agentd/goals/CheckCommand", { defaultValue: () => run })
