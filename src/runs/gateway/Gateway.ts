/**
 * Gateway: the one way of confined runs to their models. Each run has a socket of its own; the
 * socket tells whose request it is. What asks a model is passed on with the provider's key put in;
 * all else is refused. The agent never holds the key, and a key of its own goes nowhere.
 *
 * Guarantees: a request goes to its route's provider and to no other host, whatever it names; only
 * the paths of a model's interface pass, since a key opens far more than that; headers and query
 * parameters in which keys travel are taken off first (a route without a key, whose agent has a
 * login, keeps its headers); redirects are handed back, not followed; requests, their bodies and
 * connections are bounded; all that passes is counted, also where the client does not ask for it or does not wait.
 *
 * It holds nothing of Effect: it is a small process of its own (`main`).
 */
import { randomUUID } from "node:crypto"
import * as fs from "node:fs"
import * as http from "node:http"
import * as https from "node:https"
import type * as net from "node:net"
import type { Duplex } from "node:stream"
import { asking, holding, plainBytes, remaining, withoutUsage } from "./Counted.ts"
import { type Headers, MAX_WINDOWS, type ToldWindows, windowsIn } from "./LimitHeaders.ts"
import { type Tokens, UsageReader } from "./UsageReader.ts"

export interface Route {
  /** The socket to listen on, which lies in a folder that exists. */
  readonly socket: string
  /** The provider's address: scheme, host, port, and the path that its interface begins with. */
  readonly baseUrl: string
  /** The headers that hold the key; null: the agent's own are left as they are. */
  readonly key: { readonly [name: string]: string } | null
  /** Whether the tokens of the answers are counted; then they are asked for as plain text. */
  readonly metered?: boolean
}

export interface ModelTokens extends Tokens {
  readonly model: string
}

/** All that passed, since the route was opened. */
export interface Count {
  /** The name of this opening of the route: all sums begin with it. */
  readonly opened: string
  readonly requests: number
  readonly refused: number
  /** Bytes of requests. */
  readonly sent: number
  /** Bytes of answers. */
  readonly received: number
  /** By model, of a route that is metered. */
  readonly tokens?: ReadonlyArray<ModelTokens>
  /** Of a route that is metered: what the newest answers said of the account's limits. */
  readonly told?: ToldWindows
  /** The newest requests of a model have failed, and may be made again: since when (ms since the epoch), how many, and the last one's words. */
  readonly failing?: Failing
}

export interface Failing {
  readonly since: number
  readonly times: number
  readonly words: string
}

/** Models that are counted apart; further ones are one. */
const MAX_MODELS = 16

/** Sees the bytes that pass a route. Tokens can be counted here. */
export interface Meter {
  readonly sent: (chunk: Uint8Array) => void
  readonly received: (chunk: Uint8Array) => void
}

export interface OpenRoute {
  readonly count: () => Count
  /** Ends what is read for its count alone: the run is over. */
  readonly settle: () => void
  /** Whether a run holds it open: its forwarder is connected for as long as the run lives. */
  readonly held: () => boolean
  /** Ends what is under way, and removes the socket. */
  readonly close: () => void
}

/** The interfaces of Anthropic, OpenAI and Google, as coding agents use them. */
const PATHS =
  /^(?:POST \/(?:v1\/)?(?:messages(?:\/count_tokens)?|responses|chat\/completions)|POST \/v1(?:beta)?\/models\/[\w.-]{1,80}:(?:streamGenerateContent|generateContent|countTokens)|GET \/(?:v1\/|v1beta\/)?models(?:\/[\w.-]{1,80})?|HEAD \/)$/

const NO_TOKENS: Tokens = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }

/** A request for this is answered only by the end: by it a run's forwarder holds the route open. */
export const HOLD = "/agentd/hold"

const KEYS = new Set(["authorization", "x-api-key", "x-goog-api-key", "api-key", "cookie"])
/** Headers of one connection, and those by which a request could name another host. */
const OWN = new Set([
  "host",
  "connection",
  "keep-alive",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "upgrade",
  "expect",
  "forwarded",
  "x-forwarded-for",
  "x-forwarded-host"
])
/** Some providers take a key in the address: an agent's own would lead to another account. */
const KEY_NAME = /^(?:key|api[-_]?key|access_token|token)$/i

const MAX_BODY = 64 * 1024 * 1024
const MAX_CONNECTIONS = 256

/** The path and query to ask for, without keys. Never throws, whatever the escapes. */
export const withoutKeys = (target: string): string => {
  const at = target.indexOf("?")
  if (at < 0) return target
  const kept = new URLSearchParams(
    [...new URLSearchParams(target.slice(at + 1))].filter(([name]) => !KEY_NAME.test(name))
  )
  return kept.size === 0 ? target.slice(0, at) : `${target.slice(0, at)}?${kept}`
}

/** The path that a provider's interface begins with, without a slash at its end. */
export const prefixOf = (baseUrl: string): string => {
  const { pathname } = new URL(baseUrl)
  return pathname.endsWith("/") ? pathname.slice(0, -1) : pathname
}

/** Whether it asks a model. `prefix`: the path that the interface begins with. */
export const asksModel = (method: string, target: string, prefix: string): boolean => {
  const pathname = target.split("?", 1)[0] ?? ""
  if (!pathname.startsWith(prefix)) return false
  return PATHS.test(`${method} ${pathname.slice(prefix.length) || "/"}`)
}

/** The headers to ask with: the agent's own, without keys and what belongs to one connection, and the key. */
const headersOf = (given: http.IncomingHttpHeaders, key: Route["key"]): http.OutgoingHttpHeaders => {
  const dropped = (name: string) => OWN.has(name) || (key !== null && KEYS.has(name))
  return { ...Object.fromEntries(Object.entries(given).filter(([name]) => !dropped(name))), ...key }
}

/** Whether a request that was answered so may succeed when it is made again. */
const passes = (status: number): boolean => status === 408 || status === 429 || status >= 500

/** The parts of an open route. */
interface Passing {
  readonly route: Route
  readonly origin: URL
  readonly meter: Meter
  readonly tell: (model: string, more: Tokens) => void
  readonly hear: (headers: Headers) => void
  /** The failure of a request that asks a model; undefined: it has its answer. */
  readonly ends: (failure: string | undefined) => void
  readonly hold: ReturnType<typeof holding>
  readonly rests: ReturnType<typeof remaining>
}

/** Answers to these tell no tokens, since they cost none. */
const isFree = ({ method, url = "" }: http.IncomingMessage): boolean =>
  method !== "POST" || /count_?tokens(?:\?|$)/iu.test(url)

/** Whether the client is to ask for the usage of a stream. */
const mayAsk = ({ headers, url = "" }: http.IncomingMessage): boolean =>
  /\/chat\/completions(?:\?|$)/u.test(url) && headers["content-encoding"] === undefined

/** Passes an answer back. `isAsked`: the client has not asked for its usage; `sent`: the text of what is counted. */
const answered = (
  { ends, hear, meter, route, tell }: Passing,
  answer: http.IncomingMessage,
  response: http.ServerResponse,
  { isAsked, sent }: { readonly isAsked: boolean; readonly sent: () => number | undefined }
): void => {
  const { statusCode: status = 502 } = answer
  if (status < 400 || passes(status)) ends(status < 400 ? undefined : `answered ${status}`)
  const isStream = /^text\/event-stream/iu.test(answer.headers["content-type"] ?? "")
  const out = isAsked && isStream ? withoutUsage() : undefined
  const theirs = Object.entries(answer.headers).filter(
    ([name]) => !OWN.has(name) && (out === undefined || name !== "content-length")
  )
  if (!response.destroyed) response.writeHead(status, Object.fromEntries(theirs))
  answer.on("data", meter.received)
  if (route.metered === true) {
    hear(answer.headers)
    const reader = new UsageReader(tell)
    answer.on("data", (chunk: Uint8Array) => reader.take(chunk))
    answer.on("close", () => reader.end(status < 300 ? sent() : undefined))
  }
  answer.on("error", () => response.destroy())
  if (response.destroyed) answer.resume()
  else if (out === undefined) answer.pipe(response)
  else answer.pipe(out).pipe(response)
}

/** Passes a request on, and its answer back, as they come. */
const pass = (of: Passing, request: http.IncomingMessage, response: http.ServerResponse): void => {
  const { hold, meter, origin, rests, route } = of
  const { key, metered = false } = route
  const ends = request.method === "POST" ? of.ends : () => {}
  const isCounted = metered && !isFree(request)
  const { request: ask } = origin.protocol === "https:" ? https : http
  const all = headersOf(request.headers, key)
  let [plain, size] = [0, 0]
  let onward: http.ClientRequest | undefined
  let rest: http.IncomingMessage | undefined

  const failed = ({ message }: Error) => {
    if (response.headersSent) return void response.destroy()
    if (!response.destroyed) ends(`could not be reached: ${message}`)
    response.writeHead(502, { "content-type": "text/plain" }).end(`the provider could not be reached: ${message}\n`)
  }

  /** `asked`: the body that asks for the usage, too, in place of the one that came; `again`: makes the request as it came. */
  const begin = (asked?: string, again?: () => void): http.ClientRequest => {
    const encoded = metered ? { ...all, "accept-encoding": "identity" } : all
    const { "content-length": _, "transfer-encoding": __, ...others } = encoded
    const headers = asked === undefined ? encoded : { ...others, "content-length": Buffer.byteLength(asked) }
    const to = { method: request.method ?? "GET", path: withoutKeys(request.url ?? "/"), headers }
    onward = ask(new URL(origin.origin), to, (answer) => {
      const isRefused = answer.statusCode === 400 || answer.statusCode === 422
      if (!isRefused || again === undefined) {
        rest = answer
        const sent = () => (isCounted ? plain : undefined)
        return answered({ ...of, ends }, answer, response, { isAsked: asked !== undefined, sent })
      }
      answer.resume()
      again()
    })
    onward.on("error", failed)
    return onward
  }

  response.on("close", () => {
    const stop = () => {
      rest?.destroy()
      onward?.destroy()
    }
    const isOver = response.writableFinished || rest?.readableEnded === true
    if (isOver || !isCounted || !request.complete || !rests.add(stop)) return stop()
    // what the provider makes is paid for, whoever reads it
    rest?.unpipe()
    rest?.resume()
  })
  request.on("data", (chunk: Uint8Array) => {
    size += chunk.length
    if (isCounted) plain += plainBytes(chunk)
    meter.sent(chunk)
    if (size > MAX_BODY) request.destroy()
  })
  request.on("error", () => onward?.destroy())
  if (!isCounted || !mayAsk(request)) return void request.pipe(begin())
  hold(request, (body, isWhole) => {
    if (!isWhole) {
      begin().write(body)
      return void request.pipe(onward!)
    }
    const asked = asking(body.toString("utf8"))
    if (asked === undefined) begin().end(body)
    else begin(asked, () => begin().end(body)).end(asked)
  })
}

const tallied = () => {
  const tokens = new Map<string, ModelTokens>()
  return {
    all: (): ReadonlyArray<ModelTokens> => [...tokens.values()],
    tell: (named: string, more: Tokens): void => {
      const model = tokens.has(named) || tokens.size < MAX_MODELS ? named : "others"
      const { cacheRead, cacheWrite, input, output } = tokens.get(model) ?? NO_TOKENS
      tokens.set(model, {
        model,
        input: input + more.input,
        output: output + more.output,
        cacheRead: cacheRead + more.cacheRead,
        cacheWrite: cacheWrite + more.cacheWrite
      })
    }
  }
}

const heard = () => {
  const windows = new Map<string, ToldWindows["windows"][number]>()
  let newest: ToldWindows | undefined
  return {
    told: (): ToldWindows | undefined =>
      newest === undefined ? undefined : { ...newest, windows: [...windows.values()] },
    hear: (headers: Headers): void => {
      const told = windowsIn(headers, Date.now())
      if (told.windows.length === 0 && told.rejected === undefined) return
      newest = told
      for (const window of told.windows)
        if (windows.has(window.name) || windows.size < MAX_WINDOWS) windows.set(window.name, window)
    }
  }
}

/** Failures in a row, up to the newest request. */
const failures = () => {
  let failing: Failing | undefined
  return {
    failing: (): Pick<Count, "failing"> => (failing === undefined ? {} : { failing }),
    ends: (words: string | undefined): void => {
      const { since = Date.now(), times = 0 } = failing ?? {}
      failing = words === undefined ? undefined : { since, times: times + 1, words: words.slice(0, 200) }
    }
  }
}

/** Listens; rejects where the socket cannot be made. */
export const open = async (route: Route, more?: Meter): Promise<OpenRoute> => {
  const opened = randomUUID().slice(0, 8)
  const origin = new URL(route.baseUrl)
  const prefix = prefixOf(route.baseUrl)
  const count = { requests: 0, refused: 0, sent: 0, received: 0 }
  const meter: Meter = {
    sent: (chunk) => {
      count.sent += chunk.length
      more?.sent(chunk)
    },
    received: (chunk) => {
      count.received += chunk.length
      more?.received(chunk)
    }
  }
  const { all, tell } = tallied()
  const { hear, told } = heard()
  const { ends, failing } = failures()
  const passing = { route, origin, meter, tell, hear, ends, hold: holding(), rests: remaining() }
  const holders = new Set<http.ServerResponse>()
  const server = http.createServer((request, response) => {
    if (request.url === HOLD) {
      holders.add(response)
      response.on("close", () => holders.delete(response))
      return void response.writeHead(200).flushHeaders()
    }
    if (!asksModel(request.method ?? "", request.url ?? "", prefix)) {
      count.refused++
      response.writeHead(403, { "content-type": "text/plain", connection: "close" })
      return void response.end("agentd: only the model can be reached from here\n")
    }
    count.requests++
    pass(passing, request, response)
  })
  server.maxConnections = MAX_CONNECTIONS
  const connections = new Set<net.Socket>()
  server.on("connection", (socket) => {
    connections.add(socket)
    socket.on("close", () => connections.delete(socket))
  })
  const refuse = (socket: Duplex) => {
    count.refused++
    socket.on("error", () => {})
    socket.end("HTTP/1.1 403 Forbidden\r\nconnection: close\r\n\r\n")
  }
  server.on("connect", (_, socket) => refuse(socket))
  server.on("upgrade", (_, socket) => refuse(socket))
  fs.rmSync(route.socket, { force: true })
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject)
    server.listen(route.socket, () => resolve())
  })
  return {
    count: () => {
      const windows = told()
      const metered = route.metered === true ? { tokens: all() } : {}
      const limits = windows === undefined ? {} : { told: windows }
      return { opened, ...count, ...metered, ...limits, ...failing() }
    },
    held: () => holders.size > 0,
    settle: passing.rests.settle,
    close: () => {
      passing.rests.settle()
      server.close()
      for (const socket of connections) socket.destroy()
      fs.rmSync(route.socket, { force: true })
    }
  }
}
