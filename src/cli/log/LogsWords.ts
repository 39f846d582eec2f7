/** LogsWords: levels and patterns as a person types them for `logs`. Pure. */
import { attempt } from "../../config/Attempt.ts"

/** As syslog counts them: the lower, the worse. */
export const LEVELS = ["emerg", "alert", "crit", "err", "warning", "notice", "info", "debug"] as const

const HABITS: { readonly [word: string]: number } = { error: 3, errors: 3, warn: 4, panic: 0 }

/** A level's number, by its name or number; undefined where there is none. */
export const levelOf = (text: string): number | undefined => {
  const word = text.trim().toLowerCase()
  const at = LEVELS.indexOf(word as never)
  if (at >= 0) return at
  if (/^[0-7]$/.test(word)) return Number(word)
  return Object.hasOwn(HABITS, word) ? HABITS[word] : undefined
}

/** As journalctl: a pattern without capitals finds both cases. Undefined: it is no pattern. */
export const patternOf = (text: string): RegExp | undefined =>
  attempt(() => new RegExp(text, text === text.toLowerCase() ? "iu" : "u"))
