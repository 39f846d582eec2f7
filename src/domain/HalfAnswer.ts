/**
 * HalfAnswer: an answer that was cut off at a limit on its length or its steps. Every place that shows it must mark it
 * as incomplete. Pure.
 */

/** Error types of a turn whose answer was cut off; the part that arrived is worth showing. */
const CUT: ReadonlySet<string> = new Set(["max_tokens", "max_turns", "max_turn_requests"])

export const isCut = (errorType: string): boolean => CUT.has(errorType)

export const MARK = "… (half an answer: it was cut off at a limit)"

export const isMarked = (text: string): boolean => text.endsWith(MARK)

/** The part that arrived, without the mark. */
export const partOf = (text: string): string => (isMarked(text) ? text.slice(0, -MARK.length).trimEnd() : text)

/** The part that arrived, with the mark; empty if nothing arrived. */
export const marked = (part: string): string => (part.trim() === "" ? "" : `${part.trimEnd()}\n${MARK}`)
