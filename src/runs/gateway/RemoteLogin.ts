/**
 * RemoteLogin: the stored logins at remote MCP servers, one file each in the state directory, and their renewal by the
 * gateway. The commands `login` and `logout` write and delete the files. Imports nothing from Effect.
 *
 * Guarantees: a token is stored for the address that it was issued for, and returned for no other address, whatever
 * name a config uses. A file that others can write is not read. A file is written under another name and then renamed.
 * A token that is about to expire, or that the server has rejected, is renewed once, however many requests wait for it:
 * if a refresh token is used twice, issuers assume that it was stolen. A renewal neither restores a deleted login nor
 * replaces a newer one. No error contains a token. Each token is told before it is used.
 */
import { createHash } from "node:crypto"
import * as fs from "node:fs"
import * as path from "node:path"
import { attempt } from "../../config/Attempt.ts"
import { isObject } from "./UsageReader.ts"

export interface Grant {
  readonly url: string
  readonly tokenEndpoint: string
  readonly clientId: string
  readonly accessToken: string
  readonly refreshToken?: string
  /** When the access token expires, ms since the epoch. */
  readonly expiresAt?: number
}

/** Maximum size of a stored login and of an answer in a login, bytes. */
const [MAX_LOGIN, MAX_ANSWER] = [64 * 1024, 256 * 1024]
/** Maximum length of a token, characters: no server accepts a longer header. */
const MAX_TOKEN = 16 * 1024
/** Timeout for an issuer's answer, ms. */
const LIMIT = 30_000
/** A token that expires within this time is renewed before it is sent, ms. */
const SOON = 30_000

const text = (value: unknown): string | undefined => (typeof value === "string" && value !== "" ? value : undefined)

/** Whether requests may be sent to an address: it must use HTTPS or belong to this machine. */
export const isSafe = (address: string): boolean => {
  const url = URL.canParse(address) ? new URL(address) : undefined
  const isOwn = url?.protocol === "http:" && ["127.0.0.1", "[::1]", "localhost"].includes(url.hostname)
  return isOwn || url?.protocol === "https:"
}

export const fileOf = (folder: string, url: string): string =>
  path.join(folder, `${createHash("sha256").update(url).digest("hex").slice(0, 32)}.json`)

const contentOf = (name: string): unknown => {
  const { O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = fs.constants
  const file = fs.openSync(name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
  try {
    const stat = fs.fstatSync(file)
    const isOwn = stat.isFile() && stat.uid === process.getuid?.() && (stat.mode & 0o022) === 0
    return isOwn && stat.size <= MAX_LOGIN ? JSON.parse(fs.readFileSync(file, "utf8")) : undefined
  } finally {
    fs.closeSync(file)
  }
}

const isGrant = (value: unknown): value is Grant & { readonly [name: string]: unknown } =>
  isObject(value) &&
  ["url", "tokenEndpoint", "clientId", "accessToken"].every((name) => typeof value[name] === "string") &&
  [value["accessToken"], value["refreshToken"]].every((token) => String(token ?? "").length <= MAX_TOKEN)

/** The stored login for an address; undefined if there is none or if it cannot be read. */
export const read = (folder: string, url: string): Grant | undefined => {
  const stored = attempt(() => contentOf(fileOf(folder, url)))
  return isGrant(stored) && stored.url === url ? stored : undefined
}

/** Stores a login. Throws if the file cannot be written. */
export const write = (folder: string, grant: Grant): void => {
  fs.mkdirSync(folder, { recursive: true, mode: 0o700 })
  const file = fileOf(folder, grant.url)
  // a file that another process has left may have another mode
  fs.rmSync(`${file}.new`, { force: true })
  fs.writeFileSync(`${file}.new`, JSON.stringify(grant), { mode: 0o600, flag: "wx" })
  fs.renameSync(`${file}.new`, file)
}

/** Deletes a login. Returns whether there was one. Throws if the file cannot be deleted. */
export const remove = (folder: string, url: string): boolean => {
  const file = fileOf(folder, url)
  if (!fs.existsSync(file)) return false
  fs.rmSync(file)
  return true
}

/** The tokens that an issuer has sent. */
export interface Tokens {
  readonly access_token: string
  readonly refresh_token?: string | undefined
  readonly expires_in?: number | undefined
}

/** A login with the tokens that an issuer has sent. `now`: ms since the epoch. */
export const grantOf = (
  { clientId, refreshToken: old, tokenEndpoint, url }: Omit<Grant, "accessToken" | "expiresAt">,
  { access_token: accessToken, expires_in: seconds, refresh_token: refreshToken = old }: Tokens,
  now: number
): Grant => ({
  url,
  tokenEndpoint,
  clientId,
  accessToken,
  ...(refreshToken === undefined ? {} : { refreshToken }),
  ...(seconds === undefined ? {} : { expiresAt: now + seconds * 1000 })
})

/**
 * A fetch for the requests of logins, with limits on size and time. Follows no redirect. Rejects if the address is not
 * safe or cannot be reached.
 */
export const limitedFetch = async (address: string | URL, init: RequestInit = {}): Promise<Response> => {
  const { href, origin } = new URL(address)
  if (!isSafe(href)) throw new Error(`${href.slice(0, 200)} is not an HTTPS address`)
  try {
    const headers = new Headers(init.headers)
    headers.set("user-agent", "agentd")
    const signal = AbortSignal.timeout(LIMIT)
    const answer = await fetch(href, { ...init, headers, redirect: "manual", signal })
    const parts: Array<Uint8Array> = []
    let size = 0
    for await (const part of answer.body ?? []) {
      size += part.length
      if (size > MAX_ANSWER) break
      parts.push(part)
    }
    return new Response(size === 0 ? null : Buffer.concat(parts), { status: answer.status, headers: answer.headers })
  } catch {
    throw new Error(`${origin} cannot be reached`)
  }
}

/** Asks the issuer for new tokens. Rejects with its reason if it refuses. */
const renewed = async ({ clientId, refreshToken = "", tokenEndpoint, url }: Grant): Promise<Tokens> => {
  const form = { grant_type: "refresh_token", refresh_token: refreshToken, client_id: clientId, resource: url }
  const answer = await limitedFetch(tokenEndpoint, {
    method: "POST",
    headers: { accept: "application/json" },
    body: new URLSearchParams(form)
  })
  const { status } = answer
  const said: unknown = await answer.json().catch(() => undefined)
  const body = isObject(said) ? said : {}
  const access_token = text(body["access_token"])
  const refresh_token = text(body["refresh_token"])
  if ([access_token, refresh_token].some((token = "") => token.length > MAX_TOKEN))
    throw new Error(`its issuer sent a token of more than ${MAX_TOKEN} characters`)
  if (status === 200 && access_token !== undefined) {
    const seconds = body["expires_in"]
    return {
      access_token,
      refresh_token,
      expires_in: typeof seconds === "number" ? seconds : undefined
    }
  }
  const words = text(body["error_description"]) ?? text(body["error"]) ?? "no reason was given"
  throw new Error(`its issuer refused that (${status}): ${words.slice(0, 300)}`)
}

const secretsOf = ({ accessToken, refreshToken }: Grant): ReadonlyArray<string> =>
  refreshToken === undefined ? [accessToken] : [accessToken, refreshToken]

export class RemoteLogins {
  private readonly tell: (secrets: ReadonlyArray<string>) => void
  /** Renewals in progress, by the file of the login. */
  private readonly renewals = new Map<string, Promise<Grant | undefined>>()

  /** `tell` is called with tokens that must not be logged. */
  constructor(tell: (secrets: ReadonlyArray<string>) => void) {
    this.tell = tell
  }

  /** The stored login. */
  known(folder: string, url: string): Grant | undefined {
    const grant = read(folder, url)
    if (grant !== undefined) this.tell(secretsOf(grant))
    return grant
  }

  /**
   * Returns a token that can be used now, after a renewal if necessary; undefined if there is no login. `refused`: a
   * token that the server has rejected. Rejects if the login cannot be renewed.
   */
  async token(folder: string, url: string, refused?: string): Promise<string | undefined> {
    const grant = this.known(folder, url)
    if (grant?.refreshToken === undefined) return grant?.accessToken
    const { accessToken, expiresAt = Infinity } = grant
    if (accessToken !== refused && expiresAt - Date.now() >= SOON) return accessToken
    const file = fileOf(folder, url)
    const running = this.renewals.get(file) ?? this.renew(folder, grant)
    this.renewals.set(file, running)
    return (await running)?.accessToken
  }

  private async renew(folder: string, old: Grant): Promise<Grant | undefined> {
    try {
      const grant = grantOf(old, await renewed(old), Date.now())
      const now = this.known(folder, old.url)
      // the user has logged out, or has logged in again meanwhile
      if (now?.accessToken !== old.accessToken) return now
      this.tell(secretsOf(grant))
      write(folder, grant)
      return grant
    } finally {
      this.renewals.delete(fileOf(folder, old.url))
    }
  }
}
