/**
 * ClaudeWindows: the usage limits of a subscription, from Claude Code's `rate_limit_event`. Pure.
 *
 * Newer versions report each window (`unifiedWindows`), older versions only the window that currently counts. With an
 * API key instead of a login, no window is reported.
 */
import { epoch, MAX_WINDOWS, statusOf, type ToldWindows, type UsageWindow } from "../gateway/LimitHeaders.ts"
import { type ClaudeRecord, inner, number, text } from "./ClaudeRecord.ts"

const MAX_NAME = 40

const windowOf = (name: string, record: ClaudeRecord): UsageWindow | undefined => {
  const used = number(record, "utilization")
  const status = statusOf(text(record, "status"))
  const resetsAt = epoch(number(record, "resetsAt") ?? 0)
  if (name === "" || (used === undefined && status === undefined)) return undefined
  return {
    name: name.slice(0, MAX_NAME),
    ...(used === undefined || used < 0 ? {} : { used: Math.min(used, 1) }),
    ...(status === undefined ? {} : { status }),
    ...(resetsAt === undefined ? {} : { resetsAt })
  }
}

/** The windows in a record. `info`: the record's `rate_limit_info`. */
export const of = (info: ClaudeRecord): ToldWindows => {
  const each = inner(info, "unifiedWindows")
  const counts = text(info, "rateLimitType")
  // the status at the top level is that of the account, which can be allowed although one window is used up
  const records = new Map(Object.keys(each).map((name) => [name, inner(each, name)]))
  if (!records.has(counts)) records.set(counts, info)
  const windows = [...records].slice(0, MAX_WINDOWS).flatMap(([name, record]) => windowOf(name, record) ?? [])
  if (text(info, "status") !== "rejected") return { windows }
  const until = epoch(number(info, "resetsAt") ?? 0)
  return { windows, rejected: { name: counts.slice(0, MAX_NAME), ...(until === undefined ? {} : { until }) } }
}
