/**
 * ToolInput: what a tool is called with, as a person may see it: JSON without known
 * secrets, bounded. The middle of a long one is left out, and said to be.
 */
import type { Redact } from "../core/event-log/Redact.ts"

/** Characters that are shown at a glance. */
const MAX_INPUT = 2_000
/** Characters of an input in the log, which has the hash of the whole beside it. */
const MAX_LOGGED = 128 * 1024

const bounded = (clean: string, most: number): string => {
  if (clean.length <= most) return clean
  const half = most / 2
  return `${clean.slice(0, half)}\n… ${clean.length - most} characters are left out …\n${clean.slice(-half)}`
}

/** Scrubbed before it is cut: half a secret would be known no more. */
export const shownInput = (redact: Redact["Service"], json: string): string => bounded(redact.json(json), MAX_INPUT)

/** The same of what asks for leave: of what a person decides, only registered secrets are masked. */
export const askedInput = (redact: Redact["Service"], json: string): string => bounded(redact.values(json), MAX_INPUT)

export const loggedInput = (redact: Redact["Service"], json: string): string => bounded(redact.json(json), MAX_LOGGED)
