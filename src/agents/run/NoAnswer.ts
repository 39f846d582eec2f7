/**
 * NoAnswer: why a turn that its run ended well has no answer. Pure. All backends use it.
 *
 * A turn that made a call and says nothing more has done its work, and is complete without words. A turn without words
 * and calls has not answered. Neither has a turn that ended after agentd itself refused its last call.
 */
import type { LiveRun } from "./LiveRun.ts"

export interface Why {
  readonly errorType: "no_answer" | "refused"
  readonly message: string
}

type Turn = Pick<LiveRun, "isCommand" | "isOwn" | "made" | "partial" | "refused">

/** Undefined if the turn has answered, or if no words were expected. */
export const whyNot = ({ isCommand, isOwn, made, partial, refused }: Turn, output: string): Why | undefined => {
  if (refused !== undefined && partial.partialOutput === undefined)
    return { errorType: "refused", message: `agentd refused its last call (${refused}), and the turn ended with that` }
  if (output.trim() !== "" || made > 0 || isCommand || isOwn) return undefined
  return { errorType: "no_answer", message: "the turn ended without a word or a call" }
}
