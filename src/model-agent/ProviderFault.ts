/**
 * ProviderFault: converts an API's error response (status, headers and body) to a ProviderError. Pure.
 *
 * Guarantees: every error has a kind. The message is one line of limited length, without the key.
 */
import { type Headers, renewsAt, windowsIn } from "../runs/gateway/LimitHeaders.ts"
import * as Fault from "../runs/Fault.ts"
import { type FaultKind, isObject, objectIn, ProviderError, TOO_LONG } from "./Provider.ts"

/** The settings of the backend that are needed for remedies and for redaction. */
export interface Account {
  /** The API key; never shown. */
  readonly key: string
  /** Where the key comes from, for example "the variable ANTHROPIC_API_KEY". */
  readonly keySource: string
  readonly baseUrl: string
  readonly model: string
}

export interface Said {
  readonly status?: number | undefined
  readonly type?: string | undefined
  readonly code?: string | undefined
  readonly message: string
}

const MAX_MESSAGE = 500

/** Shortens a message to one line of limited length, without the key. */
export const clean = (text: string, { key }: Pick<Account, "key">): string =>
  text
    .replaceAll(key, "[redacted]")
    .replaceAll(/[\p{Cc}\s]+/gu, " ")
    .trim()
    .slice(0, MAX_MESSAGE)

const remedies: { readonly [kind in FaultKind]: (account: Account) => string } = {
  rate_limit: () => "wait, or ask the provider for a higher limit",
  overloaded: () => "wait: the provider is overloaded",
  server: () => "wait, and look at the provider's status page if this continues",
  connection: ({ baseUrl }) => `check the network and baseUrl (${baseUrl}) of the agent's backend`,
  stream: () => "wait; if this continues, check the network between this machine and the provider",
  silence: () => "wait, or set a longer silence in the agent's backend",
  garbage: ({ baseUrl }) => `check that ${baseUrl} is the API that provider names`,
  auth: ({ keySource, baseUrl }) =>
    `check the key in ${keySource}, and that it belongs to ${baseUrl}: set keyEnv, keyFile or baseUrl of the agent's backend; its agents then continue by themselves`,
  billing: ({ keySource }) =>
    `pay for the account of the key in ${keySource}, or name another key by keyEnv or keyFile, then start the agent`,
  not_found: ({ baseUrl, model }) =>
    `check model ("${model}") and baseUrl (${baseUrl}) of the agent's backend, then start the agent`,
  overflow: () => TOO_LONG,
  invalid_request: ({ model }) => `check the agent's backend: does the model "${model}" accept such requests?`,
  storage: () => "free disk space in agentd's state directory, and check that agentd may write there"
}

export const fault = (kind: FaultKind, text: string, account: Account, retryAfter?: number): ProviderError =>
  new ProviderError({ kind, message: clean(text, account), remedy: remedies[kind](account), retryAfter })

const KINDS: { readonly [kind in Fault.Kind]?: FaultKind } = {
  model: "not_found",
  not_found: "not_found",
  billing: "billing",
  rate_limit: "rate_limit",
  overflow: "overflow",
  auth: "auth",
  overloaded: "overloaded",
  connection: "connection",
  server: "server"
}

const kindOf = ({ status = 0, type = "", code = "", message }: Said): FaultKind =>
  KINDS[Fault.kindOf({ names: `${type} ${code}`, status, words: message })] ??
  // an error inside a stream has no status, and the request itself was accepted
  (status === 0 ? "server" : "invalid_request")

const LIMIT = /reached your specified API usage limits/i
const HOUR = 3_600_000

/** Reads the time from a message such as "You will regain access on 2026-12-01 at 00:00 UTC." Returns ms from now. */
const regained = (message: string, now: number): number | undefined => {
  if (!LIMIT.test(message)) return undefined
  const [, day, time] = /regain access on (\d{4}-\d\d-\d\d) at (\d\d:\d\d) UTC/.exec(message) ?? []
  return day === undefined ? HOUR : Math.max(0, Date.parse(`${day}T${time}:00Z`) - now)
}

/** Returns the wait that the response's headers request, ms from now; undefined if they request none. */
export const retryAfter = (headers: { readonly [name: string]: string | undefined }, now: number) => {
  const number = (text: string | undefined) => (text === undefined || text.trim() === "" ? Number.NaN : Number(text))
  const millis = number(headers["retry-after-ms"])
  if (Number.isFinite(millis)) return Math.max(0, millis)
  const after = headers["retry-after"]
  const seconds = number(after)
  if (Number.isFinite(seconds)) return Math.max(0, seconds * 1000)
  const date = after === undefined ? Number.NaN : Date.parse(after)
  return Number.isFinite(date) ? Math.max(0, date - now) : undefined
}

/** Returns the time until the used-up windows reset, ms. */
const renewed = (headers: Headers, now: number): number | undefined => {
  const at = renewsAt(windowsIn(headers, now))
  return at === undefined ? undefined : Math.max(0, at - now)
}

const text = (value: unknown): string | undefined =>
  typeof value === "string" ? value : typeof value === "number" ? String(value) : undefined

/**
 * Removes tags, styles and scripts from an HTML page. One pass, because a body can be long and full of tags that are
 * not closed.
 */
const withoutTags = (page: string): string => {
  const endless = new Set<string>()
  let [kept, from] = ["", 0]
  for (let open = page.indexOf("<"); open !== -1; open = page.indexOf("<", from)) {
    const name = ["style", "script"].find((one) => page.startsWith(one, open + 1) && !endless.has(one))
    const end = name === undefined ? ">" : `</${name}>`
    const close = page.indexOf(end, open)
    if (close === -1 && name === undefined) break
    if (close === -1) {
      endless.add(name!)
      continue
    }
    kept += `${page.slice(from, open)} `
    from = close + end.length
  }
  return kept + page.slice(from)
}

/** Reads the body of an error response, in any of the forms that APIs use. */
export const saidIn = (body: string, status?: number): Said => {
  const json = objectIn(body)
  const error = json?.["error"] ?? json
  if (isObject(error)) {
    const [type, code] = [text(error["type"]), text(error["code"])]
    const message = text(error["message"]) ?? text(error["detail"]) ?? body
    // if a response has already begun, some APIs put the status into the body
    const inner = status ?? (code !== undefined && /^[45]\d\d$/.test(code) ? Number(code) : undefined)
    return { status: inner, type, code, message }
  }
  const plain = text(error) ?? withoutTags(body)
  return { status, message: plain.trim() === "" ? "(nothing)" : plain }
}

export const refusal = (
  said: Said,
  account: Account,
  now: number,
  headers: { readonly [name: string]: string | undefined } = {}
): ProviderError => {
  const what = said.status === undefined ? "the API broke off" : `the API answered ${said.status}`
  const kind = kindOf(said)
  const wait =
    regained(said.message, now) ??
    retryAfter(headers, now) ??
    (kind === "rate_limit" ? renewed(headers, now) : undefined)
  return fault(kind, `${what}: ${said.message}`, account, wait)
}
