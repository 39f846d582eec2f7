/**
 * Check: a group of promises, held against what happens. It is told of durable runes and of
 * what is seen outside; of the code it knows nothing but the names of runes.
 */
import type { RunEvent } from "../../../src/runs/Backend.ts"
import type { Rune } from "../../../src/core/event-log/Rune.ts"
import type { Letter } from "../world/Mail.ts"
import type { Seen } from "../world/Processes.ts"

export interface Check {
  /** In the order of the log, each once, before the daemon hears that it is durable. */
  rune?(rune: Rune): void
  spawned?(process: Seen): void
  given?(process: Seen, turnId: string, text: string): void
  said?(process: Seen, event: RunEvent): void
  gone?(process: Seen): void
  mailed?(letter: Letter): void
  /** Whether all is done that has to be done in the end. */
  isDone?(): boolean
  /** Faults are over and all had time: what is not done now is never done. */
  atRest?(): void
}

/** The verdicts of a check. */
export interface Verdicts {
  /** ms since the world began. */
  readonly now: number
  readonly broken: (promise: string, detail: string) => void
  /** Seen at least once: what no seed ever sees is not tested. */
  readonly sometimes: (what: string) => void
}
