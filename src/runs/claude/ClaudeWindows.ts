/**
 * ClaudeWindows: the limits on a subscription's use, as Claude Code's `rate_limit_event` tells them. Pure.
 *
 * Newer ones tell of each window (`unifiedWindows`), older ones of the one that counts now. With a key of the API
 * instead of a login it tells of none.
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

/** `info`: the record's `rate_limit_info`. */
export const of = (info: ClaudeRecord): ToldWindows => {
  const each = inner(info, "unifiedWindows")
  const counts = text(info, "rateLimitType")
  // what counts now is said of the account: beside a window that is used up it may be let on
  const records = new Map(Object.keys(each).map((name) => [name, inner(each, name)]))
  if (!records.has(counts)) records.set(counts, info)
  const windows = [...records].slice(0, MAX_WINDOWS).flatMap(([name, record]) => windowOf(name, record) ?? [])
  if (text(info, "status") !== "rejected") return { windows }
  const until = epoch(number(info, "resetsAt") ?? 0)
  return { windows, rejected: { name: counts.slice(0, MAX_NAME), ...(until === undefined ? {} : { until }) } }
}
