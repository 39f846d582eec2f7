/**
 * LineProtocol: the contract between LineRun, the loop of every run, and a protocol of lines that a program speaks.
 *
 * A protocol is the state of one process, computed from the lines that the process wrote and the inputs that agentd
 * gave it. It reads no clock and starts nothing. Therefore a later daemon restores it from the same lines and inputs:
 * each line that agentd writes is stored with a note, which contains no text written by the user or an agent.
 */
import type { Decision, RunEvent } from "../Backend.ts"
import type { Fault } from "../Fault.ts"
import type * as FileContents from "../FileContents.ts"
import type { Outcome } from "../Outcome.ts"
import type { ExitStatus } from "../process/ChildProcess.ts"

/** A note about a line that agentd wrote. `reply`: a line that the protocol itself had to send while it read output. */
export interface Note {
  readonly say: string
  /** Id of the turn whose input the line contains. */
  readonly turnId?: string
}

/** A line for the process, without its end. */
export interface Said<N extends Note> {
  readonly text: string
  readonly note: N
}

export interface Heard<N extends Note> {
  readonly events: ReadonlyArray<RunEvent>
  /** Lines to write to the process now. */
  readonly says: ReadonlyArray<Said<N>>
}

/** The next step that the process must take: become ready, continue the turn, or report on its subagents. */
export type Wait = "ready" | "answer" | "report"

export type End =
  | { readonly _tag: "Completed"; readonly output: string }
  | { readonly _tag: "Interrupted" }
  | { readonly _tag: "Failed"; readonly fault: Fault }
  /** The process has ended. The end of the run ends the turn, so the protocol reports no end of the turn. */
  | { readonly _tag: "Exited" }

export interface Input {
  readonly turnId: string
  /** A random UUID for the input. */
  readonly uuid: string
  readonly text: string
  readonly files: FileContents.Contents
  /** Paths of the files that were found; empty if the protocol takes their contents. */
  readonly paths: ReadonlyArray<string>
}

export interface LineProtocol<N extends Note> {
  /** Id of the session; undefined until it is known. */
  readonly session: string | undefined
  /** Id of the active turn; undefined if no turn is active. */
  readonly turnId: string | undefined
  /** True if agentd gave the active turn. The process then takes no further input. */
  readonly isGiven: boolean
  readonly isInterrupted: boolean
  /** True if the process is ready. A process that ends earlier has failed to start. */
  readonly isUp: boolean
  /** True if the process is ready and works on nothing. */
  readonly isIdle: boolean
  /** The step that is due. Undefined if no step is due, a call is running, or the user was asked. */
  readonly waits: Wait | undefined
  /** The fault that ended the last turn. It ends the run. */
  readonly fault: Fault | undefined
  /** The state for a later daemon; undefined if the process is not idle. */
  readonly known: unknown
  /** Handles a line of the process; undefined if it is no message of the protocol. `now`: ms since the epoch. */
  readonly take: (line: string, now: number) => Heard<N> | undefined
  /** Lines that a new process gets before its first input. */
  readonly opening: () => ReadonlyArray<Said<N>>
  /** Begins a turn. */
  readonly give: (input: Input) => ReadonlyArray<Said<N>>
  readonly interrupt: () => ReadonlyArray<Said<N>>
  readonly answer: (callId: string, decision: Decision) => ReadonlyArray<Said<N>>
  /** Stops waiting for a call. */
  readonly forget: (callId: string) => void
  /** Requests another model or mode. `answered` gets the reason for a refusal; undefined if the request succeeded. */
  readonly choose: (
    kind: "model" | "mode",
    name: string,
    answered: (refusal: string | undefined) => void
  ) => ReadonlyArray<Said<N>>
  /** Ends a turn whose subagents have ended, although the process has not reported on them. */
  readonly settle: () => ReadonlyArray<RunEvent>
  /** Ends the turn for a reason that the process did not report. */
  readonly end: (end: End) => ReadonlyArray<RunEvent>
  /** Repeats an input that an earlier daemon gave the process. */
  readonly recall: (note: N) => void
  /**
   * Outcome of a process that ended before it was ready. "gone": the session that it should resume does not exist.
   * `said`: its last lines of standard error.
   */
  readonly birth: (status: ExitStatus, said: string) => Outcome | "gone"
}
