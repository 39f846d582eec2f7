/**
 * RunPhases: the steps in which a run is ended, as a table. Pure.
 *
 *     Running ──► Interrupting ──► Closing ──► Signalled
 *        │             │              ▲            ▲
 *        ├─────────────┼──────────────┘            │
 *        └─────────────┴───────────────────────────┘
 *
 * Each phase has an action at its beginning: the turn is interrupted, the input is closed, SIGTERM is sent. A program
 * that works on nothing skips the first step. A program that is not ready, or whose turn agentd gave up, gets SIGTERM
 * at once: such a program would finish its work before it reads the end of its input.
 */

export type Phase = "Running" | "Interrupting" | "Closing" | "Signalled"

/** The program's work: a turn, nothing, or something that agentd no longer waits for. */
export type Work = "turn" | "none" | "other"

export type Signal =
  /** The run is to end. */
  | "stop"
  /** The program's work has changed. */
  | "change"
  /** The time of the phase is over. */
  | "lapse"

type Cell = Phase | { readonly [work in Work]: Phase }

export const TABLE: { readonly [phase in Phase]: { readonly [signal in Signal]: Cell } } = {
  Running: {
    stop: { turn: "Interrupting", none: "Closing", other: "Signalled" },
    change: "Running",
    lapse: "Running"
  },
  Interrupting: {
    stop: "Interrupting",
    change: { turn: "Interrupting", none: "Closing", other: "Signalled" },
    lapse: "Signalled"
  },
  Closing: { stop: "Closing", change: "Closing", lapse: "Signalled" },
  Signalled: { stop: "Signalled", change: "Signalled", lapse: "Signalled" }
}

export const next = (phase: Phase, signal: Signal, work: Work): Phase => {
  const cell = TABLE[phase][signal]
  return typeof cell === "string" ? cell : cell[work]
}
