/**
 * LimitsConfig: the resources of the machine that a run, or a check of a goal, may use. Every
 * default is filled in.
 */
import { Schema } from "effect"
import { whole, withDefault } from "./Fields.ts"
import { Size } from "./Size.ts"

export const LimitsConfig = Schema.Struct({
  memory: Size.pipe(withDefault("4 GB", "The memory of all its processes together. A run that takes more is ended.")),
  tasks: whole(10, 100_000).pipe(
    withDefault(1000, "How many processes and threads it may have. A run that has more is ended.")
  ),
  cpuWeight: whole(1, 100).pipe(
    withDefault(100, "Its share of the processor where others want it, too: 100 is an equal one, 50 half of that.")
  ),
  disk: Size.pipe(
    withDefault("10 GB", "How much it may add to its folder and, confined, to its home. A run that adds more is ended.")
  )
})
export type LimitsConfig = typeof LimitsConfig.Type
