/**
 * HalfAnswer: an answer that was cut off at a limit of its length or its steps: whoever shows it
 * says that it is half. Pure.
 */

/** Errors of a turn that cut an answer off; what came of it is worth showing. */
const CUT: ReadonlySet<string> = new Set(["max_tokens", "max_turns", "max_turn_requests"])

export const isCut = (errorType: string): boolean => CUT.has(errorType)

export const MARK = "… (half an answer: it was cut off at a limit)"

export const isMarked = (text: string): boolean => text.endsWith(MARK)

/** The part that came, without the mark. */
export const partOf = (text: string): string => (isMarked(text) ? text.slice(0, -MARK.length).trimEnd() : text)

/** The part that came, marked; empty where nothing came. */
export const marked = (part: string): string => (part.trim() === "" ? "" : `${part.trimEnd()}\n${MARK}`)
