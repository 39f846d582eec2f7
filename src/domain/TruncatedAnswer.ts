/**
 * TruncatedAnswer: marks an agent's answer that was cut off at a limit of its length or of the number of steps. Every
 * view that shows the answer must show this mark. Pure.
 */

/** Error types of turns whose answer was cut off. The user sees the part of the answer that arrived. */
const CUT: ReadonlySet<string> = new Set(["max_tokens", "max_turns", "max_turn_requests"])

export const isCut = (errorType: string): boolean => CUT.has(errorType)

export const MARK = "… (half an answer: it was cut off at a limit)"

export const isMarked = (text: string): boolean => text.endsWith(MARK)

export const partOf = (text: string): string => (isMarked(text) ? text.slice(0, -MARK.length).trimEnd() : text)

/** Adds the mark to the part of a cut-off answer that arrived. Returns an empty string if no part arrived. */
export const marked = (part: string): string => (part.trim() === "" ? "" : `${part.trimEnd()}\n${MARK}`)
