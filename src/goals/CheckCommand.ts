/**
 * CheckCommand: one command of a review's checks, run to its end. A reference: a simulation
 * says how commands end.
 *
 * Guarantees: the command is code of agents', and is held in its folder like a tool of theirs
 * where the machine has a sandbox; where it has none, it runs only if the project does not
 * require one, and the outcome says so. The command sees no variable of the daemon's but those
 * that any program needs: no key. The command has a limit of time, of memory, of processes and of what it
 * writes, and no process of it is left, whatever becomes of the daemon; what it prints is kept to its end, up to a limit.
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
import { Confine } from "../runs/git/Store.ts"
import * as Repository from "../runs/git/Repository.ts"
import * as Ids from "../domain/Ids.ts"

export interface Command {
  /** A line for `sh`. */
  readonly command: string
  readonly cwd: string
  /** ms */
  readonly timeout: number
  readonly store: string
  /** The daemon's, of which little is handed on. */
  readonly environment: Environment
  readonly manner: Manner
  /** Folders that it reads besides, where it is held. */
  readonly shared: ReadonlyArray<string>
}

/** The project's settings for checks. */
export type Manner = Pick<GoalConfig, "env" | "limits" | "network" | "sandbox">

export interface Ended {
  readonly status: ExitStatus
  /** The end of what it wrote to both of its outputs. */
  readonly printed: string
  /** Whether a sandbox held it. */
  readonly held: boolean
}

/** Undefined where the command took too long, and was ended. */
export type Run = (
  of: Command
) => Effect.Effect<Ended | undefined, BackendError, FileSystem.FileSystem | ProcessTree | Reaper>

/** Characters that are kept of a command's output, from its end. */
const KEPT = 4_000
const GRACE = Duration.seconds(5)

/** Reads a pipe to its end and keeps the last of it. */
const tail = Effect.fnUntraced(function* (pipe: RunProcess.RunProcess["stdout"]) {
  const decoder = new TextDecoder()
  let kept = ""
  for (let chunk = yield* pipe.read; chunk !== undefined; chunk = yield* pipe.read) {
    kept = (kept + decoder.decode(chunk, { stream: true })).slice(-KEPT)
  }
  return kept
})

/** The daemon's variables that any program needs, and those of the config. */
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
  // the whole checkout: a command in a folder of it may look around there
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

/** The service that runs a command; by default this machine does. */
export const CheckCommand = Context.Reference<Run>("agentd/goals/CheckCommand", { defaultValue: () => run })
