/**
 * UsageWindow: how a window of an account's use stands: how much of it is used, whether it is near its end, whether
 * that is worth a rune. Pure, without Effect.
 *
 * Guarantees: runes are few: a window that was not known, one that got worse by a level or a word, one that began anew
 * or got better some time after its last rune; never one for each request.
 */
import type { UsageWindow } from "../runs/gateway/LimitHeaders.ts"

/** As it was told last: `at` is ms since the epoch. */
export interface Noted extends UsageWindow {
  readonly at: number
}

/** Parts at which a person would want to know. */
const LEVELS = [0.5, 0.8, 0.95, 1]
/** From this part on it is near its end. */
export const NEAR = 0.8

const MINUTE = 60_000
/** A rate that tells of no end, and a window that tells of none, count for nothing so much later. */
const RATE_LASTS = 10 * MINUTE
const WINDOW_LASTS = 24 * 60 * MINUTE
/** The least time from one rune of a window to one that says that it got better: a rate does so each minute. */
const RATE_BETTER = 60 * MINUTE
const BETTER = MINUTE

/** Renews within minutes, and again and again. */
const isRate = ({ limit }: UsageWindow): boolean => limit !== undefined

/** Whether it has begun anew since it was told, or a clock that was ahead has told it. */
export const isOver = (window: Noted, now: number): boolean =>
  window.at > now + WINDOW_LASTS || now >= (window.resetsAt ?? window.at + (isRate(window) ? RATE_LASTS : WINDOW_LASTS))

const levelOf = ({ used = 0 }: UsageWindow): number => LEVELS.filter((level) => used >= level).length

const WORSE = ["allowed", "warning", "rejected"] as const

const wordOf = ({ status = "allowed" }: UsageWindow): number => WORSE.indexOf(status)

/** Whether a rune is due for what is told now. `known`: as the newest rune has it. */
export const isNews = (known: Noted | undefined, told: UsageWindow, now: number): boolean => {
  if (known === undefined) return true
  // a rate that began anew is not told each minute
  const isAnew = isOver(known, now) && !isRate(known)
  const [level, word] = isAnew ? [0, 0] : [levelOf(known), wordOf(known)]
  if (levelOf(told) > level || wordOf(told) > word) return true
  const isBetter = levelOf(told) < levelOf(known) || wordOf(told) < wordOf(known) || told.limit !== known.limit
  return isBetter && Math.abs(now - known.at) >= (isRate(known) ? RATE_BETTER : BETTER)
}

/** The newest ones, by name; the oldest go where there are too many. */
export const merged = (
  before: ReadonlyArray<Noted>,
  told: ReadonlyArray<Noted>,
  most: number
): ReadonlyArray<Noted> => {
  const all = new Map(before.map((window) => [window.name, window]))
  for (const window of told) {
    all.delete(window.name)
    all.set(window.name, window)
  }
  return [...all.values()].slice(-most)
}

/** Whether so much of it is used that a person would want to know. */
export const isNear = (window: Noted, now: number): boolean =>
  !isOver(window, now) && ((window.used ?? 0) >= NEAR || wordOf(window) > 0)

/** How much of it is used, in words: "93 %"; nothing was told: "not said". */
export const usedWords = (window: Noted, now: number): string => {
  if (isOver(window, now)) return "begun anew"
  const { limit, remaining, status, used } = window
  const part = used === undefined ? undefined : `${Math.floor(used * 100)} %`
  const rest = limit === undefined || remaining === undefined ? "" : ` (${remaining} of ${limit} left)`
  const word = status === undefined || status === "allowed" ? "" : status === "warning" ? ", warned of" : ", refused"
  return `${part ?? (word === "" ? "not said" : "")}${rest}${word}`.replace(/^, /u, "")
}

/** "five_hour 93 % used, until 2026-11-24T21:04:39.000Z". */
export const nearWords = (window: Noted): string => {
  const { name, resetsAt, status, used } = window
  const part =
    status === "rejected" ? "used up" : used === undefined ? "near its end" : `${Math.floor(used * 100)} % used`
  return `${name} ${part}${resetsAt === undefined ? "" : `, until ${new Date(resetsAt).toISOString()}`}`
}
