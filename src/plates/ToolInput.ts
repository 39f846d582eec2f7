/**
 * ToolInput: prepares the input of a tool call for display and for the log: JSON without known secrets, of bounded
 * length. The middle of a long input is replaced by a note that says how many characters are left out.
 */
import type { Redact } from "../core/event-log/Redact.ts"

/** Maximum length, in characters, of an input on the board. */
const MAX_INPUT = 2_000
/** Maximum length, in characters, of an input in the log. The log also has the hash of the whole input. */
const MAX_LOGGED = 128 * 1024

const bounded = (clean: string, most: number): string => {
  if (clean.length <= most) return clean
  const half = most / 2
  return `${clean.slice(0, half)}\n… ${clean.length - most} characters are left out …\n${clean.slice(-half)}`
}

/** Secrets are removed before the input is shortened, because half a secret would not be recognized. */
export const shownInput = (redact: Redact["Service"], json: string): string => bounded(redact.json(json), MAX_INPUT)

/** The input of a call that waits for approval. The user decides on it, so only registered secrets are masked. */
export const askedInput = (redact: Redact["Service"], json: string): string => bounded(redact.values(json), MAX_INPUT)

export const loggedInput = (redact: Redact["Service"], json: string): string => bounded(redact.json(json), MAX_LOGGED)
