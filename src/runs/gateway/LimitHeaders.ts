/**
 * LimitHeaders: what a provider's answer says of the account's limits in its headers. Pure: headers in, windows out;
 * it holds nothing of Effect.
 *
 * Three families are read: Anthropic's `anthropic-ratelimit-{requests,tokens,input-tokens,output-tokens}-…` and, of
 * subscriptions, `anthropic-ratelimit-unified-…`; OpenAI's `x-ratelimit-…-{requests,tokens}`, which many others have.
 *
 * Guarantees: what is no number, no time and no known word says nothing; so does a time whose unit nobody tells;
 * bounded, whatever the headers hold.
 */

/** A limit on use that renews by itself, and how much of it is used. */
export interface UsageWindow {
  /** "five_hour", "seven_day", "requests", "input-tokens" … */
  readonly name: string
  /** The used part: 1 is all of it. */
  readonly used?: number
  /** The provider's own word. */
  readonly status?: "allowed" | "warning" | "rejected"
  /** When it begins anew, ms since the epoch. */
  readonly resetsAt?: number
  /** Of a rate, which renews within minutes: the whole, and the rest. */
  readonly limit?: number
  readonly remaining?: number
}

/** The account is refused: by the window of this name, where it has one, until then (ms since the epoch). */
export interface Rejected {
  readonly name: string
  readonly until?: number
}

/** The windows of one account, as one answer tells of them. */
export interface ToldWindows {
  readonly windows: ReadonlyArray<UsageWindow>
  readonly rejected?: Rejected
}

export interface Headers {
  readonly [name: string]: string | ReadonlyArray<string> | undefined
}

export const MAX_WINDOWS = 16
const MAX_NAME = 40
/** The latest time that a date can name, ms. */
const LATEST = 8.64e15

/** Claude Code's names of the windows of a subscription, by those of the headers. */
const NAMES: { readonly [short: string]: string } = { "5h": "five_hour", "7d": "seven_day" }

const nameOf = (short: string): string => NAMES[short] ?? short.slice(0, MAX_NAME)

const number = (text: string | undefined): number | undefined => {
  if (text === undefined || !/^\s*\d{1,15}(\.\d{1,15})?\s*$/u.test(text)) return undefined
  return Number(text)
}

/** A time in seconds or milliseconds since the epoch, as milliseconds; undefined for none that a date can name. */
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

/** "6m0s", "1s", "12ms", "2m59.56s". */
const duration = (text: string): number | undefined => {
  const parts = text.split(/(?<=[dhms])(?=\d)/u).map((part) => /^(\d{1,9}(?:\.\d{1,9})?)(ms|d|h|m|s)$/u.exec(part))
  if (parts.length > 5 || parts.some((part) => part === null)) return undefined
  return parts.reduce((sum, part) => sum + Number(part![1]) * UNITS[part![2]!]!, 0)
}

/** Makes a window of a header's family: its parts by their names. */
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

/** A date, or a time since the epoch. */
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

/** The use beyond a subscription, whose status says whether it would be allowed: no window while nothing of it is used. */
const OVERAGE = "overage"

/** `now`: ms since the epoch. */
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

/** Of a subscription: beside a window that is used up it may be let on. */
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

/** When who is refused may ask again, ms since the epoch; undefined: nobody said it. */
export const renewsAt = ({ rejected, windows }: ToldWindows): number | undefined => {
  if (rejected !== undefined) return rejected.until
  const spent = windows.flatMap(({ remaining, resetsAt }) =>
    remaining === 0 && resetsAt !== undefined ? [resetsAt] : []
  )
  return spent.length === 0 ? undefined : Math.max(...spent)
}
