/**
 * CheckCommand: one command of a review's checks, run to its end. A reference: a simulation
 * says how commands end.
 *
 * Guarantees: the command has a limit of time, and no process of it is left, whatever
 * becomes of the daemon; what it prints is kept to its end, up to a limit.
 */
import { Context, Duration, Effect } from "effect"
import type { BackendError } from "../backends/Backend.ts"
import type { ProcessTree } from "../backends/process/ProcessTree.ts"
import type { Reaper } from "../backends/process/Reaper.ts"
import type { Environment, ExitStatus } from "../backends/process/ChildProcess.ts"
import * as RunProcess from "../backends/process/RunProcess.ts"
import * as Ids from "../domain/Ids.ts"

export interface Command {
  /** A line for `sh`. */
  readonly command: string
  readonly cwd: string
  /** ms */
  readonly timeout: number
  readonly store: string
  readonly environment: Environment
}

export interface Ended {
  readonly status: ExitStatus
  /** The end of what it wrote to both of its outputs. */
  readonly printed: string
}

/** Undefined where the command took too long, and was ended. */
export type Run = (of: Command) => Effect.Effect<Ended | undefined, BackendError, ProcessTree | Reaper>

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

const run: Run = Effect.fnUntraced(function* ({ command, cwd, environment, store, timeout }) {
  const child = yield* RunProcess.make({
    store,
    runId: yield* Ids.runId,
    argv: ["sh", "-c", command],
    cwd,
    env: RunProcess.inheritable(environment),
    grace: GRACE
  })
  const reading = Effect.all([tail(child.stdout), tail(child.stderr)], { concurrency: 2 })
  const done = Effect.zipWith(
    reading,
    child.exited,
    (texts, status): Ended => ({ status, printed: texts.join("\n").trim().slice(-KEPT) }),
    { concurrent: true }
  )
  const ended = yield* Effect.timeoutOption(done, timeout)
  return ended._tag === "Some" ? ended.value : undefined
}, Effect.scoped)

/** The service that runs a command; by default this machine does. */
export const CheckCommand = Context.Reference<Run>("agentd/goals/CheckCommand", { defaultValue: () => run })
