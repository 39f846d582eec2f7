/**
 * RestPoint: what is kept with a point of a program that outlives daemons: what its backend knew by then, and what the
 * hearer of its run knew.
 */
import type { Effect } from "effect"
import type { Point, RunEvent } from "../Backend.ts"
import type { Before } from "./KeptProcess.ts"
import type { RunProcess } from "./RunProcess.ts"

interface Known<S> {
  readonly state: S
  readonly heard: unknown
}

/** Of a program that is read from a point on. Only whoever kept it knows its state's form. */
export const of = <S>({ before }: { readonly before: Pick<Before, "point"> | undefined }): Known<S> | undefined =>
  before?.point?.known as Known<S> | undefined

/** The first events of a run that is heard from a point on. */
export const again = (program: Pick<RunProcess, "before" | "pid">, sessionId?: string): ReadonlyArray<RunEvent> => {
  const known = of(program)
  if (known === undefined) return []
  const { heard } = known
  return [
    { _tag: "Started", pid: program.pid, sessionId },
    { _tag: "Recalled", heard }
  ]
}

export const keep = ({ keep }: RunProcess, { state, ...point }: Point, heard: unknown): Effect.Effect<void> =>
  keep({ ...point, known: { state, heard } })
