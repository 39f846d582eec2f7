/** LogsWords: parses the levels and patterns that are passed to `agentd log --text`. Pure. */
import { attempt } from "../../config/Attempt.ts"

/** The names of syslog's levels. A level's number is its index; lower numbers are more severe. */
export const LEVELS = ["emerg", "alert", "crit", "err", "warning", "notice", "info", "debug"] as const

const HABITS: { readonly [word: string]: number } = { error: 3, errors: 3, warn: 4, panic: 0 }

/** The number of a level, from its name or number; undefined if there is no such level. */
export const levelOf = (text: string): number | undefined => {
  const word = text.trim().toLowerCase()
  const at = LEVELS.indexOf(word as never)
  if (at >= 0) return at
  if (/^[0-7]$/.test(word)) return Number(word)
  return Object.hasOwn(HABITS, word) ? HABITS[word] : undefined
}

/** Parses a pattern; undefined if it is invalid. As in journalctl, a pattern without capital letters ignores case. */
export const patternOf = (text: string): RegExp | undefined =>
  attempt(() => new RegExp(text, text === text.toLowerCase() ? "iu" : "u"))
