/** LogsWords: parses levels and patterns of `agentd log --text`. Pure. */
import { attempt } from "../../config/Attempt.ts"

/** Names of syslog's levels; the index is the level's number. A lower number is more severe. */
export const LEVELS = ["emerg", "alert", "crit", "err", "warning", "notice", "info", "debug"] as const

const HABITS: { readonly [word: string]: number } = { error: 3, errors: 3, warn: 4, panic: 0 }

/** The number of a level, by its name or number; undefined if there is no such level. */
export const levelOf = (text: string): number | undefined => {
  const word = text.trim().toLowerCase()
  const at = LEVELS.indexOf(word as never)
  if (at >= 0) return at
  if (/^[0-7]$/.test(word)) return Number(word)
  return Object.hasOwn(HABITS, word) ? HABITS[word] : undefined
}

/** As in journalctl, a pattern without capital letters ignores case. Undefined: the pattern is invalid. */
export const patternOf = (text: string): RegExp | undefined =>
  attempt(() => new RegExp(text, text === text.toLowerCase() ? "iu" : "u"))
