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
import { Context, Effect, type FileSystem } from "effect"
import type { BackendError } from "../runs/Backend.ts"
import type { ProcessTree } from "../runs/process/ProcessTree.ts"
import type { Reaper } from "../runs/process/Reaper.ts"
import type { Environment } from "../runs/process/ChildProcess.ts"
import * as ChildEnvironment from "../runs/process/ChildEnvironment.ts"
import * as ConfinedCommand from "../runs/ConfinedCommand.ts"
import type { GoalConfig } from "../config/GoalConfig.ts"
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

export type Ended = Omit<ConfinedCommand.Ended, "left">

/** Runs a command. Returns undefined if the command exceeded its timeout and was killed. */
export type Run = (
  of: Command
) => Effect.Effect<Ended | undefined, BackendError, FileSystem.FileSystem | ProcessTree | Reaper>

/** The environment of a command: the daemon's variables that any program needs, and those of the project's config. */
export const environmentOf = (environment: Environment, { env, network }: Manner): Environment => ({
  ...ChildEnvironment.given(environment, { offline: !network }),
  GIT_TERMINAL_PROMPT: "0",
  ...env
})

const run: Run = Effect.fnUntraced(function* ({ command, environment, manner, ...of }) {
  return yield* ConfinedCommand.run({
    ...of,
    ...manner,
    line: command,
    listsLeft: false,
    runId: yield* Ids.runId,
    env: environmentOf(environment, manner),
    whose: "of the project's goals",
    requires: {
      who: "the project requires a sandbox for its checks",
      remedy: 'set goals.sandbox to "preferred"'
    }
  })
})

export const CheckCommand = Context.Reference<Run>("agentd/goals/CheckCommand", { defaultValue: () => run })
