/**
 * TruncatedAnswer: marks an agent's answer that was cut off because its length or number of steps is limited. Every view
 * that shows the answer must show this mark. Pure.
 */

/** Error types of turns whose answer was cut off. The part of the answer that arrived is shown to the user. */
const CUT: ReadonlySet<string> = new Set(["max_tokens", "max_turns", "max_turn_requests"])

export const isCut = (errorType: string): boolean => CUT.has(errorType)

export const MARK = "… (half an answer: it was cut off at a limit)"

export const isMarked = (text: string): boolean => text.endsWith(MARK)

export const partOf = (text: string): string => (isMarked(text) ? text.slice(0, -MARK.length).trimEnd() : text)

/** Adds the mark to an answer that was cut off; empty if no part of the answer arrived. */
export const marked = (part: string): string => (part.trim() === "" ? "" : `${part.trimEnd()}\n${MARK}`)
