/** RunEnd: determines what the end of a run's program means, in the same way for every protocol. Pure. */
import type { Outcome } from "./Outcome.ts"
import type { ExitStatus } from "./process/ChildProcess.ts"

/** The facts about the end of a program. */
export interface End {
  readonly status: ExitStatus
  /** Set if processes of the run could not be ended. */
  readonly survived: Outcome | undefined
  /** The fault for which agentd ended the run. */
  readonly verdict: Outcome | undefined
  /** True if agentd ended the run. */
  readonly isAsked: boolean
  /** True if a turn was active when the program ended. */
  readonly isActive: boolean
  /** True if the program had become ready. */
  readonly isUp: boolean
  /** Describes the end in one line. */
  readonly words: string
}

/** Returns the outcome of the run. `birth`: the outcome of a program that ended before it was ready. */
export const outcomeOf = <A>(end: End, birth: () => A): Outcome | A => {
  const { isActive, isAsked, isUp, status, survived, verdict, words } = end
  if (survived !== undefined) return survived
  if (verdict !== undefined) return verdict
  if (isAsked && !isActive) return { _tag: "Success" }
  if (!isUp) return isAsked ? { _tag: "Success" } : birth()
  return !isActive && status.code === 0 ? { _tag: "Success" } : { _tag: "Error", detail: words }
}

const howOf = ({ code, signal }: ExitStatus): string => {
  if (signal !== null) return `was killed by ${signal}`
  // the keeper died before the program, so nobody saw its status
  return code === null ? "ended, and it is not known how" : `ended with exit code ${code}`
}

/** Describes how a program ended. `said`: its last line of standard error. */
export const wordsOf = (name: string, status: ExitStatus, said: string): string => {
  const how = howOf(status)
  return `${name} ${how}${said === "" ? "" : `: ${said}`}`
}
