/**
 * NoAnswer: why a turn that its run ended well has answered nothing. Pure: the one place for all backends.
 *
 * A turn that made a call and says nothing more has done its work, and is complete without words. One that says
 * nothing and calls nothing has not answered; nor has one whose last call agentd itself refused, and that ended there.
 */
import type { LiveRun } from "./LiveRun.ts"

export interface Why {
  readonly errorType: "no_answer" | "refused"
  readonly message: string
}

type Turn = Pick<LiveRun, "isCommand" | "isOwn" | "made" | "partial" | "refused">

/** Undefined: it has, or nobody asked it for words. */
export const whyNot = ({ isCommand, isOwn, made, partial, refused }: Turn, output: string): Why | undefined => {
  if (refused !== undefined && partial.partialOutput === undefined)
    return { errorType: "refused", message: `agentd refused its last call (${refused}), and the turn ended with that` }
  if (output.trim() !== "" || made > 0 || isCommand || isOwn) return undefined
  return { errorType: "no_answer", message: "the turn ended without a word or a call" }
}
