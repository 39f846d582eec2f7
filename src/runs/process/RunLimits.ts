/**
 * RunLimits: what one run may use of the machine, and who says that it used more.
 *
 * Guarantees: a run that passes a limit is named, with the limit, by how much, and what to do; everything that it
 * started is ended at once, and nothing else. By default nothing is held: `RunWatch` does.
 */
import { Context, Effect } from "effect"
import type { LimitsConfig } from "../../config/LimitsConfig.ts"
import { shown } from "../../config/ByteCount.ts"
import type { Outcome } from "../Outcome.ts"

export interface Limited {
  readonly runId: string
  /** None for a check of a goal, which has no home. */
  readonly agent?: string
  readonly cwd: string
  readonly limits?: LimitsConfig | undefined
}

export interface Passed {
  readonly limit: "memory" | "tasks" | "disk"
  readonly used: number
  readonly most: number
}

/** Pure: what a person is told, in one line; `whose` limits they are. */
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
        `raise limits.tasks ${whose} in agentd.jsonc, or see what starts so many`
      )
    case "disk":
      return (
        `it wrote ${shown(used)} to its folder, ${shown(used - most)} above the limit of ${shown(most)}, and was ended: ` +
        `remove what it wrote there, or raise limits.disk ${whose} in agentd.jsonc`
      )
  }
}

/** Passing a limit counts as an error of the agent's. */
export const outcomeOf = (passed: Passed): Outcome => ({ _tag: "Error", detail: sentence(passed) })

export interface RunLimits {
  /** Waits until the run has passed a limit; by then its processes are being ended. Interrupted when the run is over. */
  readonly passed: (run: Limited) => Effect.Effect<Passed>
  readonly held: boolean
  /** For a person: how limits are held, or why not. */
  readonly how: string
}

export const RunLimits = Context.Reference<RunLimits>("agentd/backends/process/RunLimits", {
  defaultValue: () => ({ passed: () => Effect.never, held: false, how: "nothing holds the limits of runs here" })
})
