/**
 * NoAnswer: decides whether a turn that its run ended normally has no answer, and why. Pure. All backends use this
 * rule.
 *
 * A turn with calls but without text has done its work and is complete. A turn with neither text nor calls has not
 * answered. A turn also has no answer if it ended after agentd refused its last call.
 */
import type { LiveRun } from "./LiveRun.ts"

export interface Why {
  readonly errorType: "no_answer" | "refused"
  readonly message: string
}

type Turn = Pick<LiveRun, "isCommand" | "isOwn" | "made" | "partial" | "refused">

/** The reason why the turn has no answer; undefined if it has one, or if no text was expected. */
export const whyNot = ({ isCommand, isOwn, made, partial, refused }: Turn, output: string): Why | undefined => {
  if (refused !== undefined && partial.partialOutput === undefined)
    return {
      errorType: "refused",
      message: `agentd denied its last call (${refused}), and the turn ended without an answer`
    }
  if (output.trim() !== "" || made > 0 || isCommand || isOwn) return undefined
  return { errorType: "no_answer", message: "the turn ended without text and without a call" }
}
