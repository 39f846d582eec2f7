/**
 * ToolInput: what a tool is called with, as a person may see it: JSON without known
 * secrets, bounded. The middle of a long one is left out, and said to be.
 */
import type { Redact } from "../event-log/Redact.ts"

/** Characters that are shown. */
const MAX_INPUT = 2_000

/** Scrubbed before it is cut: half a secret would be known no more. */
export const shownInput = (redact: Redact["Service"], json: string): string => {
  const clean = redact.json(json)
  if (clean.length <= MAX_INPUT) return clean
  const half = MAX_INPUT / 2
  return `${clean.slice(0, half)}\n… ${clean.length - MAX_INPUT} characters are left out …\n${clean.slice(-half)}`
}
