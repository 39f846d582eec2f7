/**
 * LimitHeaders: reads the account's limits from the headers of a provider's answer. Pure. Imports nothing from Effect.
 *
 * Three families are read. Anthropic's are `anthropic-ratelimit-{requests,tokens,input-tokens,output-tokens}-…` and,
 * for subscriptions, `anthropic-ratelimit-unified-…`. OpenAI's are `x-ratelimit-…-{requests,tokens}`, which many others
 * use.
 *
 * Guarantees: A value that is not a number, a time or a known status is ignored. So is a time without a known unit. The
 * size of the result is limited, whatever the headers contain.
 */

/** A usage limit that resets by itself, and how much of it is used. */
export interface UsageWindow {
  /** Name of the window: "five_hour", "seven_day", "requests", "input-tokens" and so on. */
  readonly name: string
  /** Used part of the limit, as a fraction; 1 if the limit is reached. */
  readonly used?: number
  readonly status?: "allowed" | "warning" | "rejected"
  /** When the window resets, ms since the epoch. */
  readonly resetsAt?: number
  /** The limit and how much of it remains. Only for a rate limit, which resets within minutes. */
  readonly limit?: number
  readonly remaining?: number
}

/**
 * Set if the provider rejects the account's requests. `until`: when that ends, ms since the epoch. `name`: the window
 * that is used up, or "" if unknown.
 */
export interface Rejected {
  readonly name: string
  readonly until?: number
}

/** The windows of one account, as one answer reported them. */
export interface ToldWindows {
  readonly windows: ReadonlyArray<UsageWindow>
  readonly rejected?: Rejected
}

export interface Headers {
  readonly [name: string]: string | ReadonlyArray<string> | undefined
}

export const MAX_WINDOWS = 16
const MAX_NAME = 40
/** Latest time that a `Date` can represent, ms since the epoch. */
const LATEST = 8.64e15

/** Claude Code's names for the windows of a subscription, by their names in the headers. */
const NAMES: { readonly [short: string]: string } = { "5h": "five_hour", "7d": "seven_day" }

const nameOf = (short: string): string => NAMES[short] ?? short.slice(0, MAX_NAME)

const number = (text: string | undefined): number | undefined => {
  if (text === undefined || !/^\s*\d{1,15}(\.\d{1,15})?\s*$/u.test(text)) return undefined
  return Number(text)
}

/**
 * Converts seconds or milliseconds since the epoch to milliseconds. Undefined if a `Date` cannot represent the time.
 */
export const epoch = (at: number): number | undefined => {
  const ms = at < 1e12 ? at * 1000 : at
  return ms > 0 && ms < LATEST ? ms : undefined
}

export const statusOf = (word: string | undefined): UsageWindow["status"] => {
  if (word === "allowed" || word === "rejected") return word
  return word === "allowed_warning" ? "warning" : undefined
}

const date = (text: string): number | undefined => {
  const at = /^\d{4}-\d\d-\d\dT/u.test(text) ? Date.parse(text) : Number.NaN
  return Number.isFinite(at) ? at : undefined
}

const UNITS: { readonly [unit: string]: number } = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1000, ms: 1 }

/** Parses a duration such as "6m0s", "1s", "12ms" or "2m59.56s". Returns ms. */
const duration = (text: string): number | undefined => {
  const parts = text.split(/(?<=[dhms])(?=\d)/u).map((part) => /^(\d{1,9}(?:\.\d{1,9})?)(ms|d|h|m|s)$/u.exec(part))
  if (parts.length > 5 || parts.some((part) => part === null)) return undefined
  return parts.reduce((sum, part) => sum + Number(part![1]) * UNITS[part![2]!]!, 0)
}

/** A window from the parts of its headers. `parts`: the values by the name of the part. */
const rate = (name: string, parts: ReadonlyMap<string, string>, now: number): UsageWindow | undefined => {
  const limit = number(parts.get("limit"))
  const remaining = number(parts.get("remaining"))
  if (limit === undefined || limit <= 0 || remaining === undefined) return undefined
  const reset = parts.get("reset") ?? ""
  const after = duration(reset)
  const resetsAt = date(reset) ?? (after === undefined ? undefined : now + after)
  const used = Math.min(1, Math.max(0, 1 - remaining / limit))
  return { name: name.slice(0, MAX_NAME), used, limit, remaining, ...(resetsAt === undefined ? {} : { resetsAt }) }
}

/** Parses a date or a time since the epoch. Returns ms since the epoch. */
const timeOf = (text: string): number | undefined => {
  const at = number(text)
  return at === undefined ? date(text) : epoch(at)
}

const subscription = (short: string, parts: ReadonlyMap<string, string>): UsageWindow | undefined => {
  const used = number(parts.get("utilization"))
  const status = statusOf(parts.get("status"))
  if (used === undefined && status === undefined) return undefined
  const resetsAt = timeOf(parts.get("reset") ?? "")
  return {
    name: nameOf(short),
    ...(used === undefined ? {} : { used }),
    ...(status === undefined ? {} : { status }),
    ...(resetsAt === undefined ? {} : { resetsAt })
  }
}

const UNIFIED = /^anthropic-ratelimit-unified-(\w{1,20})-(utilization|status|reset)$/u
const ANTHROPIC = /^anthropic-ratelimit-((?:input-|output-)?tokens|requests)-(limit|remaining|reset)$/u
const OPENAI = /^x-ratelimit-(limit|remaining|reset)-(requests|tokens)$/u

/** Usage beyond a subscription. Its status only says whether such usage would be allowed, so it is not a window. */
const OVERAGE = "overage"

/** The windows in a set of headers. `now`: ms since the epoch. */
export const windowsIn = (headers: Headers, now: number): ToldWindows => {
  const families = new Map<string, Map<string, string>>()
  const put = (family: string, part: string, value: string) => {
    if (!families.has(family) && families.size >= MAX_WINDOWS) return
    families.set(family, (families.get(family) ?? new Map()).set(part, value))
  }
  for (const [header, value] of Object.entries(headers)) {
    if (typeof value !== "string" || value.length > 100) continue
    const name = header.toLowerCase()
    const unified = UNIFIED.exec(name)
    if (unified !== null && unified[1] !== OVERAGE) put(`unified ${unified[1]!}`, unified[2]!, value)
    const anthropic = ANTHROPIC.exec(name)
    if (anthropic !== null) put(`rate ${anthropic[1]!}`, anthropic[2]!, value)
    const openai = OPENAI.exec(name)
    if (openai !== null) put(`rate ${openai[2]!}`, openai[1]!, value)
  }
  const windows = [...families].flatMap(([family, parts]) => {
    const [kind, name = ""] = family.split(" ")
    const window = kind === "unified" ? subscription(name, parts) : rate(name, parts, now)
    return window === undefined ? [] : [window]
  })
  return isRefused(headers) ? { windows, rejected: rejectedBy(headers, windows) } : { windows }
}

const PREFIX = "anthropic-ratelimit-unified-"

/** A used-up window alone does not mean that requests are rejected: the provider can still allow them. */
const isRefused = (headers: Headers): boolean => headers[`${PREFIX}status`] === "rejected"

const rejectedBy = (headers: Headers, windows: ReadonlyArray<UsageWindow>): Rejected => {
  const said = (part: string): string | undefined => {
    const value = headers[`${PREFIX}${part}`]
    return typeof value === "string" ? value : undefined
  }
  const claim = said("representative-claim")
  const window = windows.find(({ name, status }) =>
    claim === undefined ? status === "rejected" : name === nameOf(claim)
  )
  const until = window?.resetsAt ?? timeOf(said("reset") ?? "")
  const name = claim === undefined ? (window?.name ?? "") : nameOf(claim)
  return { name, ...(until === undefined ? {} : { until }) }
}

/** Returns when a rejected account can try again, ms since the epoch; undefined if the provider did not report it. */
export const renewsAt = ({ rejected, windows }: ToldWindows): number | undefined => {
  if (rejected !== undefined) return rejected.until
  const spent = windows.flatMap(({ remaining, resetsAt }) =>
    remaining === 0 && resetsAt !== undefined ? [resetsAt] : []
  )
  return spent.length === 0 ? undefined : Math.max(...spent)
}
