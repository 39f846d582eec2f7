/**
 * UsageWindow: a usage window of a provider's account: how much of it is used, whether it is near its limit, and
 * whether a change deserves a rune. Pure, without Effect.
 *
 * Guarantees: runes are rare, never one per request. A rune is written for a window that is new, has reset, or got
 * worse by a level or a status. It is also written for one that got better some time after its last rune.
 */
import type { UsageWindow } from "../runs/gateway/LimitHeaders.ts"

/** The window as last reported; `at` is ms since the epoch. */
export interface Noted extends UsageWindow {
  readonly at: number
}

/** Used fractions at which a person would want to know. */
const LEVELS = [0.5, 0.8, 0.95, 1]
/** From this fraction on, a window is near its limit. */
export const NEAR = 0.8

const MINUTE = 60_000
/** Windows without a reset time expire this long after their report: first rates, then all others. */
const RATE_LASTS = 10 * MINUTE
const WINDOW_LASTS = 24 * 60 * MINUTE
/** Minimum time between a rune and one that says the window got better. Rates get better every minute. */
const RATE_BETTER = 60 * MINUTE
const BETTER = MINUTE

/** A rate limit resets within minutes, again and again. */
const isRate = ({ limit }: UsageWindow): boolean => limit !== undefined

/**
 * Whether the window has reset since it was reported, or its report has a time in the future because a clock was ahead.
 */
export const isOver = (window: Noted, now: number): boolean =>
  window.at > now + WINDOW_LASTS || now >= (window.resetsAt ?? window.at + (isRate(window) ? RATE_LASTS : WINDOW_LASTS))

const levelOf = ({ used = 0 }: UsageWindow): number => LEVELS.filter((level) => used >= level).length

const WORSE = ["allowed", "warning", "rejected"] as const

const wordOf = ({ status = "allowed" }: UsageWindow): number => WORSE.indexOf(status)

/** Whether the reported window deserves a rune. `known`: the window in the newest rune. */
export const isNews = (known: Noted | undefined, told: UsageWindow, now: number): boolean => {
  if (known === undefined) return true
  // a rate that has reset is not reported every minute
  const isAnew = isOver(known, now) && !isRate(known)
  const [level, word] = isAnew ? [0, 0] : [levelOf(known), wordOf(known)]
  if (levelOf(told) > level || wordOf(told) > word) return true
  const isBetter = levelOf(told) < levelOf(known) || wordOf(told) < wordOf(known) || told.limit !== known.limit
  return isBetter && Math.abs(now - known.at) >= (isRate(known) ? RATE_BETTER : BETTER)
}

/** The newest windows by name; if there are more than `most`, the oldest are discarded. */
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

/** Whether so much of the window is used that a person would want to know. */
export const isNear = (window: Noted, now: number): boolean =>
  !isOver(window, now) && ((window.used ?? 0) >= NEAR || wordOf(window) > 0)

/** How much of the window is used, in words: "93 %"; "not said" if nothing was reported. */
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
