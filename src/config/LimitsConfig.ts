/**
 * LimitsConfig: limits for the machine's resources that a run, or a check of a goal, can use. All defaults are filled
 * in.
 */
import { Schema } from "effect"
import { whole, withDefault } from "./Fields.ts"
import { Size } from "./Size.ts"

export const LimitsConfig = Schema.Struct({
  memory: Size.pipe(
    withDefault("4 GB", "Maximum memory of all its processes together. A run that uses more is ended.")
  ),
  tasks: whole(10, 100_000).pipe(
    withDefault(1000, "Maximum number of processes and threads. A run that has more is ended.")
  ),
  cpuWeight: whole(1, 100).pipe(
    withDefault(100, "Its share of the processor when others need it, too: 100 is an equal share, 50 is half of that.")
  ),
  disk: Size.pipe(
    withDefault(
      "10 GB",
      "How much data it may add to its folder and, in a sandbox, to its home. A run that adds more is ended."
    )
  )
})
export type LimitsConfig = typeof LimitsConfig.Type
