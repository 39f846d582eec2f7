/**
 * UsageWindow: usage windows of a provider's account, such as a five-hour limit. This file computes how much of a
 * window is used, whether the window is near its limit, and whether a change must be logged. Pure, without Effect.
 *
 * Guarantees: runes are rare; requests alone never cause one. A rune is written when a window is new, has reset, or
 * reached a worse level or status. When a window improves, a rune is written only if some time has passed since its
 * last rune.
 */
import type { UsageWindow } from "../runs/gateway/LimitHeaders.ts"

/** A usage window, as the provider last reported it. `at`: time of the report, in ms since the epoch. */
export interface Noted extends UsageWindow {
  readonly at: number
}

/** Used fractions of a window. When a window reaches one of them, a rune is written. */
const LEVELS = [0.5, 0.8, 0.95, 1]
/** Used fraction from which on a window counts as near its limit. */
export const NEAR = 0.8

const MINUTE = 60_000
/**
 * Time in ms after which a window without a reset time counts as over, from its last report: `RATE_LASTS` for rate
 * limits, `WINDOW_LASTS` for all others.
 */
const RATE_LASTS = 10 * MINUTE
const WINDOW_LASTS = 24 * 60 * MINUTE
/**
 * Minimum time in ms between a window's last rune and a rune that records an improvement of the window. For rate limits
 * it is longer, because they improve every minute.
 */
const RATE_BETTER = 60 * MINUTE
const BETTER = MINUTE

/** Returns true if the window is a rate limit, which resets every few minutes. */
const isRate = ({ limit }: UsageWindow): boolean => limit !== undefined

/** Returns true if the window is over, or if the time of its report is far in the future because a clock was wrong. */
export const isOver = (window: Noted, now: number): boolean =>
  window.at > now + WINDOW_LASTS || now >= (window.resetsAt ?? window.at + (isRate(window) ? RATE_LASTS : WINDOW_LASTS))

const levelOf = ({ used = 0 }: UsageWindow): number => LEVELS.filter((level) => used >= level).length

const WORSE = ["allowed", "warning", "rejected"] as const

const wordOf = ({ status = "allowed" }: UsageWindow): number => WORSE.indexOf(status)

/** Returns true if a rune must be written for the reported window `told`. `known`: the window as in its last rune. */
export const isNews = (known: Noted | undefined, told: UsageWindow, now: number): boolean => {
  if (known === undefined) return true
  // a rate limit resets every minute, and a reset alone is not logged
  const isAnew = isOver(known, now) && !isRate(known)
  const [level, word] = isAnew ? [0, 0] : [levelOf(known), wordOf(known)]
  if (levelOf(told) > level || wordOf(told) > word) return true
  const isBetter = levelOf(told) < levelOf(known) || wordOf(told) < wordOf(known) || told.limit !== known.limit
  return isBetter && Math.abs(now - known.at) >= (isRate(known) ? RATE_BETTER : BETTER)
}

/**
 * Merges new reports into the list of windows. The newest report for each window's name counts. If there are more than
 * `most` windows, the oldest are discarded.
 */
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

export const isNear = (window: Noted, now: number): boolean =>
  !isOver(window, now) && ((window.used ?? 0) >= NEAR || wordOf(window) > 0)

/** Describes how much of the window is used, such as "93 %"; "not reported" if the provider did not report it. */
export const usedWords = (window: Noted, now: number): string => {
  if (isOver(window, now)) return "has reset"
  const { limit, remaining, status, used } = window
  const part = used === undefined ? undefined : `${Math.floor(used * 100)} %`
  const rest = limit === undefined || remaining === undefined ? "" : ` (${remaining} of ${limit} left)`
  const word =
    status === undefined || status === "allowed" ? "" : status === "warning" ? ", near its limit" : ", rejected"
  return `${part ?? (word === "" ? "not reported" : "")}${rest}${word}`.replace(/^, /u, "")
}

/** Describes a window near its limit: "five_hour 93 % used, until 2026-11-24T21:04:39.000Z". */
export const nearWords = (window: Noted): string => {
  const { name, resetsAt, status, used } = window
  const part =
    status === "rejected" ? "used up" : used === undefined ? "near its end" : `${Math.floor(used * 100)} % used`
  return `${name} ${part}${resetsAt === undefined ? "" : `, until ${new Date(resetsAt).toISOString()}`}`
}
