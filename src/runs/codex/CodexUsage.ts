/**
 * CodexUsage: turns the usage and the limits that Codex reports into events. Pure.
 *
 * Guarantees: no token is emitted twice. Codex reports the sum of a thread and the usage of its newest request. The
 * latter is emitted whenever the sum has changed. A sum that is reported while no turn is active belongs to an earlier
 * process.
 */
import type { RunEvent } from "../Backend.ts"
import { epoch, type ToldWindows, type UsageWindow } from "../gateway/LimitHeaders.ts"
import type { RateLimits, TokenUsage } from "./CodexMessages.ts"

/** Sums of the threads, by thread id. Stored with a checkpoint, for a daemon that resumes the process. */
export type KnownUsage = ReadonlyArray<readonly [thread: string, total: number]>

/** Maximum number of threads (subagents have their own ones) whose sums are kept. */
const MAX_THREADS = 256

/** Names of the windows of a subscription, by their length in minutes. */
const NAMES: { readonly [minutes: number]: string } = { 300: "five_hour", 10_080: "seven_day" }

export class CodexUsage {
  private readonly sums: Map<string, number>

  constructor(known: KnownUsage = []) {
    this.sums = new Map(known)
  }

  get known(): KnownUsage {
    return [...this.sums]
  }

  /** Handles a report. `isMain`: false for the thread of a subagent. */
  told(
    thread: string,
    { last, modelContextWindow, total }: TokenUsage,
    { isActive, isMain, model }: { readonly isActive: boolean; readonly isMain: boolean; readonly model: string }
  ): ReadonlyArray<RunEvent> {
    const isKnown = this.sums.get(thread) === total.totalTokens
    this.sums.delete(thread)
    this.sums.set(thread, total.totalTokens)
    if (this.sums.size > MAX_THREADS) this.sums.delete(this.sums.keys().next().value!)
    if (isKnown || !isActive) return []
    const { cacheWriteInputTokens, cachedInputTokens, inputTokens, outputTokens } = last
    const window = modelContextWindow ?? undefined
    return [
      {
        _tag: "Usage",
        inputTokens,
        outputTokens,
        ...(cachedInputTokens ? { cacheRead: cachedInputTokens } : {}),
        ...(cacheWriteInputTokens ? { cacheWrite: cacheWriteInputTokens } : {}),
        ...(model === "" || !isMain ? {} : { model }),
        ...(isMain ? { context: { used: inputTokens, ...(window === undefined ? {} : { window }) } } : {})
      }
    ]
  }
}

const windowOf = (short: string, window: RateLimits["primary"]): ReadonlyArray<UsageWindow> => {
  if (window === null || window === undefined) return []
  const { resetsAt, usedPercent, windowDurationMins } = window
  const at = epoch(resetsAt ?? 0)
  const used = Math.min(1, Math.max(0, usedPercent / 100))
  return [{ name: NAMES[windowDurationMins ?? 0] ?? short, used, ...(at === undefined ? {} : { resetsAt: at }) }]
}

/** Returns when the account can be used again, ms since the epoch; undefined if no window is used up. */
export const renewsAt = (windows: ReadonlyArray<UsageWindow>): number | undefined => {
  const spent = windows.flatMap(({ resetsAt, used }) => (used === 1 && resetsAt !== undefined ? [resetsAt] : []))
  return spent.length === 0 ? undefined : Math.max(...spent)
}

/** The account's windows; undefined if the report contains none. */
export const windowsOf = (limits: RateLimits): ToldWindows | undefined => {
  const { individualLimit, primary, rateLimitReachedType, secondary, spendControlReached } = limits
  const own = individualLimit ?? undefined
  const spend = own === undefined ? undefined : { usedPercent: 100 - own.remainingPercent, resetsAt: own.resetsAt }
  const windows = [...windowOf("primary", primary), ...windowOf("secondary", secondary), ...windowOf("spend", spend)]
  const isReached = (rateLimitReachedType ?? "") !== "" || spendControlReached === true
  if (!isReached) return windows.length === 0 ? undefined : { windows }
  const { name = "" } = windows.find(({ used }) => used === 1) ?? {}
  const until = renewsAt(windows)
  return { windows, rejected: { name, ...(until === undefined ? {} : { until }) } }
}
