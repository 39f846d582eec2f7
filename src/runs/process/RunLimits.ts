/**
 * RunLimits: the resource limits of one run, and the service that reports that a run exceeded them.
 *
 * Guarantees: A run that exceeds a limit is reported with the limit, the excess, and the remedy. All processes of this
 * run are ended at once, and no others. By default no limit is enforced; `RunWatch` enforces them.
 */
import { Context, Effect } from "effect"
import type { LimitsConfig } from "../../config/LimitsConfig.ts"
import { shown } from "../../config/ByteCount.ts"
import type { Outcome } from "../Outcome.ts"

export interface Limited {
  readonly runId: string
  /** The agent's name; undefined for a check of a goal, because a check has no home folder. */
  readonly agent?: string
  readonly cwd: string
  readonly limits?: LimitsConfig | undefined
}

export interface Passed {
  readonly limit: "memory" | "tasks" | "disk"
  readonly used: number
  readonly most: number
}

/** Formats the message for the user, in one line. `whose`: whose limits they are. Pure. */
export const sentence = ({ limit, most, used }: Passed, whose = "of the agent"): string => {
  switch (limit) {
    case "memory":
      return (
        `its processes used ${shown(used)} of memory, ${shown(used - most)} above the limit of ${shown(most)}, and were ended: ` +
        `raise limits.memory ${whose} in agentd.jsonc, or give it less to do at once`
      )
    case "tasks":
      return (
        `it had ${used} processes and threads, ${used - most} above the limit of ${most}, and they were ended: ` +
        `raise limits.tasks ${whose} in agentd.jsonc, or find out what starts so many`
      )
    case "disk":
      return (
        `it wrote ${shown(used)} to its folder, ${shown(used - most)} above the limit of ${shown(most)}, and was ended: ` +
        `remove what it wrote there, or raise limits.disk ${whose} in agentd.jsonc`
      )
  }
}

/** Outcome of a run that exceeded a limit, which counts as an error of the agent. */
export const outcomeOf = (passed: Passed): Outcome => ({ _tag: "Error", detail: sentence(passed) })

export interface RunLimits {
  /**
   * Waits until the run exceeds a limit. When this returns, the run's processes are already being ended. Interrupt the
   * wait when the run is over.
   */
  readonly passed: (run: Limited) => Effect.Effect<Passed>
  readonly held: boolean
  /** Describes for the user how limits are enforced, or why they are not. */
  readonly how: string
}

export const RunLimits = Context.Reference<RunLimits>("agentd/backends/process/RunLimits", {
  defaultValue: () => ({ passed: () => Effect.never, held: false, how: "the limits of runs are not enforced here" })
})
