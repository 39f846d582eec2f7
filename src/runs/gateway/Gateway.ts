/**
 * Gateway: the only way from confined runs to their models, and from model agents to their remote MCP servers
 * (Remotes). Each run has its own socket, which identifies the run. A request to a model is passed on with the
 * provider's key added; every other request is rejected. The agent never has the key, and a key that the agent sends is
 * removed.
 *
 * Guarantees: A request goes to its route's provider and to no other host, whatever host the request names. Only the
 * paths of a model API are allowed, because a key gives access to far more. Headers and query parameters that can carry
 * keys are removed first. A route without a key, whose agent has its own login, keeps its headers. Redirects are
 * returned, not followed. The size of request bodies and the number of connections are limited. All tokens that pass
 * are counted, even if the client does not request the usage or disconnects.
 *
 * Imports nothing from Effect: the gateway is a small process of its own (`main`).
 */
import { randomUUID } from "node:crypto"
import * as fs from "node:fs"
import * as http from "node:http"
import * as https from "node:https"
import type * as net from "node:net"
import type { Duplex } from "node:stream"
import { asking, holding, plainBytes, remaining, withoutUsage } from "./Counted.ts"
import { type Headers, MAX_WINDOWS, type ToldWindows, windowsIn } from "./LimitHeaders.ts"
import { answerHeaders, headersOf, UNREACHABLE } from "./PassedHeaders.ts"
import { RemoteLogins } from "./RemoteLogin.ts"
import * as Remotes from "./Remotes.ts"
import { type Tokens, UsageReader } from "./UsageReader.ts"

export interface Route {
  /** Path of the socket to listen on. Its folder must exist. */
  readonly socket: string
  /** Base URL of the provider's API: scheme, host, port, and path prefix. */
  readonly baseUrl: string
  /** The headers that contain the key; null if the agent's own headers are passed on unchanged. */
  readonly key: { readonly [name: string]: string } | null
  /** Whether the tokens of the answers are counted. If so, answers are requested without compression. */
  readonly metered?: boolean
  /** The remote MCP servers that the run can reach. */
  readonly remotes?: Remotes.RemoteServers
}

export interface ModelTokens extends Tokens {
  readonly model: string
}

/** Counts of a route since it was opened. */
export interface Count {
  /** Id of the current opening of the route. All counts start at 0 when the route is opened. */
  readonly opened: string
  readonly requests: number
  readonly refused: number
  /** Number of bytes in requests. */
  readonly sent: number
  /** Number of bytes in answers. */
  readonly received: number
  /** Number of tokens by model. Only for a route that counts tokens. */
  readonly tokens?: ReadonlyArray<ModelTokens>
  /** Account limits as reported in the newest answers. Only for a route that counts tokens. */
  readonly told?: ToldWindows
  /** Set if the newest requests to a model failed and can be retried. */
  readonly failing?: Failing
}

export interface Failing {
  readonly since: number
  readonly times: number
  readonly words: string
}

/** Maximum number of models that are counted separately. Further models are counted together. */
const MAX_MODELS = 16

export interface Meter {
  readonly sent: (chunk: Uint8Array) => void
  readonly received: (chunk: Uint8Array) => void
}

export interface OpenRoute {
  readonly count: () => Count
  /** Stops reading answers whose clients have disconnected, because the run is over. */
  readonly settle: () => void
  /** Whether a run keeps the route open: the run's forwarder stays connected while the run lives. */
  readonly held: () => boolean
  /** Replaces the MCP servers of the run. Open requests continue. */
  readonly reach: (remotes: Remotes.RemoteServers) => void
  /** Ends open requests, and removes the socket. */
  readonly close: () => void
}

/** The API paths of Anthropic, OpenAI and Google that coding agents use. */
const PATHS =
  /^(?:POST \/(?:v1\/)?(?:messages(?:\/count_tokens)?|responses|chat\/completions)|POST \/v1(?:beta)?\/models\/[\w.-]{1,80}:(?:streamGenerateContent|generateContent|countTokens)|GET \/(?:v1\/|v1beta\/)?models(?:\/[\w.-]{1,80})?|HEAD \/)$/

const NO_TOKENS: Tokens = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }

/** Path that a run's forwarder requests to keep the route open. The response ends only when the connection closes. */
export const HOLD = "/agentd/hold"

/**
 * Query parameters that can contain a key: some providers accept a key in the URL. An agent's own key would use another
 * account.
 */
const KEY_NAME = /^(?:key|api[-_]?key|access_token|token)$/i

const MAX_BODY = 64 * 1024 * 1024
const MAX_CONNECTIONS = 256

/** Returns the path and query without keys. Never throws, even if escapes are invalid. */
export const withoutKeys = (target: string): string => {
  const at = target.indexOf("?")
  if (at < 0) return target
  const kept = new URLSearchParams(
    [...new URLSearchParams(target.slice(at + 1))].filter(([name]) => !KEY_NAME.test(name))
  )
  return kept.size === 0 ? target.slice(0, at) : `${target.slice(0, at)}?${kept}`
}

/** The path prefix of a base URL, without a slash at its end. */
export const prefixOf = (baseUrl: string): string => {
  const { pathname } = new URL(baseUrl)
  return pathname.endsWith("/") ? pathname.slice(0, -1) : pathname
}

/** Whether a request asks a model. `prefix`: path prefix of the API. */
export const asksModel = (method: string, target: string, prefix: string): boolean => {
  const pathname = target.split("?", 1)[0] ?? ""
  if (!pathname.startsWith(prefix)) return false
  return PATHS.test(`${method} ${pathname.slice(prefix.length) || "/"}`)
}

/** Whether a retry can succeed after a response with this status. */
const passes = (status: number): boolean => status === 408 || status === 429 || status >= 500

interface Passing {
  readonly route: Route
  readonly origin: URL
  readonly meter: Meter
  readonly tell: (model: string, more: Tokens) => void
  readonly hear: (headers: Headers) => void
  /** Called when a model request ends: with the failure, or with undefined if it was answered. */
  readonly ends: (failure: string | undefined) => void
  readonly hold: ReturnType<typeof holding>
  readonly rests: ReturnType<typeof remaining>
}

/** Whether a request costs no tokens, so that the answer reports none. */
const isFree = ({ method, url = "" }: http.IncomingMessage): boolean =>
  method !== "POST" || /count_?tokens(?:\?|$)/iu.test(url)

/** Whether the gateway can make the request also ask for the stream's usage. */
const mayAsk = ({ headers, url = "" }: http.IncomingMessage): boolean =>
  /\/chat\/completions(?:\?|$)/u.test(url) && headers["content-encoding"] === undefined

/**
 * Passes an answer on. `isAsked`: true if the gateway asked for the usage, not the client. `sent`: number of bytes of
 * text in the request, for the estimate.
 */
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
  if (!response.destroyed) response.writeHead(status, answerHeaders(answer.headers, out !== undefined))
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

/** Passes a request on, and its answer back, as the bytes arrive. */
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
    response
      .writeHead(502, { "content-type": "text/plain", [UNREACHABLE]: "1" })
      .end(`the provider could not be reached: ${message}\n`)
  }

  /**
   * Sends the request. `asked`: a body that also asks for the usage; sent instead of the original one. `again`: sends
   * the original request.
   */
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
    // the provider bills for the whole answer, even if the client does not read it
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

/** Counts consecutive failed requests, up to the newest one. */
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

const metering = (more: Meter | undefined) => {
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
  return { count, meter }
}

/** Opens the route. Rejects if the socket cannot be created. `logins`: the logins at remote MCP servers. */
export const open = async (
  route: Route,
  more?: Meter,
  logins: RemoteLogins = new RemoteLogins(() => {})
): Promise<OpenRoute> => {
  const opened = randomUUID().slice(0, 8)
  const origin = new URL(route.baseUrl)
  const prefix = prefixOf(route.baseUrl)
  const { count, meter } = metering(more)
  const { all, tell } = tallied()
  const { hear, told } = heard()
  const { ends, failing } = failures()
  const passing = { route, origin, meter, tell, hear, ends, hold: holding(), rests: remaining() }
  const holders = new Set<http.ServerResponse>()
  let isRemote = Remotes.passing(route.remotes ?? {}, logins)
  const server = http.createServer((request, response) => {
    if (request.url === HOLD) {
      holders.add(response)
      response.on("close", () => holders.delete(response))
      return void response.writeHead(200).flushHeaders()
    }
    if (isRemote(request, response)) return
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
    reach: (remotes) => void (isRemote = Remotes.passing(remotes, logins)),
    settle: passing.rests.settle,
    close: () => {
      passing.rests.settle()
      server.close()
      for (const socket of connections) socket.destroy()
      fs.rmSync(route.socket, { force: true })
    }
  }
}
