/**
 * Checkpoint: the data that is stored with a checkpoint of a program that survives daemon restarts: the state of the
 * program's backend, and the state of the run's subscriber.
 */
import type { Effect } from "effect"
import type { Point, RunEvent } from "../Backend.ts"
import type { Before } from "./KeptProcess.ts"
import type { RunProcess } from "./RunProcess.ts"

interface Known<S> {
  readonly state: S
  readonly heard: unknown
}

/** The backend's state at the checkpoint. The caller must know the type of its own state. */
export const of = <S>({ before }: { readonly before: Pick<Before, "point"> | undefined }): Known<S> | undefined =>
  before?.point?.known as Known<S> | undefined

/** Returns the first events of a run whose output is read again from a checkpoint. */
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
