/** LogsWords: levels and patterns as a person types them for `agentd log --text`. Pure. */
import { attempt } from "../../config/Attempt.ts"

/** The levels of syslog: a lower number is more severe. */
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

/** Like journalctl: a pattern without capitals ignores case. Undefined: the pattern is invalid. */
export const patternOf = (text: string): RegExp | undefined =>
  attempt(() => new RegExp(text, text === text.toLowerCase() ? "iu" : "u"))
