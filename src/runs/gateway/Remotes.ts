/**
 * Remotes: the way from a run to its remote MCP servers. The run names a server by its path on the run's socket. The
 * gateway passes the request on to the server's address, with the token that the server needs.
 *
 * Guarantees: only the servers of the run's route can be reached, each at its own address. The run gets no token: none
 * is in a message of the gateway, and a token that the server sends back is removed. Redirects are returned, not
 * followed. Requests are limited in size, and answers are passed on as they arrive. A request that the server rejects
 * because of its token is sent once more with a renewed one. Imports nothing from Effect.
 */
import * as http from "node:http"
import * as https from "node:https"
import { Transform } from "node:stream"
import { holding } from "./Counted.ts"
import { answerHeaders, headersOf, UNREACHABLE } from "./PassedHeaders.ts"
import type { RemoteLogins } from "./RemoteLogin.ts"

/** A remote MCP server. */
export interface Remote {
  readonly url: string
  /** The token from the config; omitted if there is none. */
  readonly token?: string
  /** Folder of the stored logins, if the server gets the token of a login. */
  readonly logins?: string
  /** Why no request is passed on, in words that follow the server's name. */
  readonly problem?: string
}

export interface RemoteServers {
  readonly [name: string]: Remote
}

/** The path of a server on the run's socket. */
export const pathOf = (name: string): string => `/agentd/mcp/${encodeURIComponent(name)}`

/** The name of the server that a request is for; undefined if the run may not send this request. */
const serverIn = (servers: RemoteServers, { method, url }: http.IncomingMessage): string | undefined =>
  method === "POST" || method === "DELETE" ? Object.keys(servers).find((name) => pathOf(name) === url) : undefined

/** Text that replaces a token. */
const MASK = "[redacted]"
/** Minimum length of a token that is removed from answers. A shorter one could occur in any text. */
const LEAST = 8

/** Passes a stream on without a secret, which can be split between two chunks. */
export const without = (secret: string): Transform => {
  const mark = Buffer.from(secret).toString("latin1")
  let rest = ""
  return new Transform({
    // latin1 has one character per byte
    transform: (chunk: Buffer, _, done) => {
      const text = (rest + chunk.toString("latin1")).replaceAll(mark, MASK)
      let size = Math.min(mark.length - 1, text.length)
      while (size > 0 && !text.endsWith(mark.slice(0, size))) size--
      rest = text.slice(text.length - size)
      done(null, Buffer.from(text.slice(0, text.length - size), "latin1"))
    },
    flush: (done) => done(null, Buffer.from(rest, "latin1"))
  })
}

/** A request to a server, and the run's response. */
interface Passing {
  readonly remote: Remote
  readonly request: http.IncomingMessage
  readonly response: http.ServerResponse
  readonly body: Buffer
}

const sent = ({ body, remote, request, response }: Passing, token: string | undefined) =>
  new Promise<http.IncomingMessage>((resolve, reject) => {
    if (response.destroyed) return reject(new Error("was not waited for"))
    const url = new URL(remote.url)
    const { request: ask } = url.protocol === "https:" ? https : http
    const { "transfer-encoding": _, ...headers } = headersOf(request.headers, {
      "accept-encoding": "identity",
      "content-length": String(body.length),
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` })
    })
    const onward = ask(url, { method: request.method ?? "POST", headers }, resolve)
    onward.on("error", ({ message }) =>
      reject(new Error(`cannot be reached at ${url.origin}${url.pathname}: ${message}`))
    )
    response.on("close", () => onward.destroy())
    onward.end(body)
  })

const maskedIn = (headers: http.OutgoingHttpHeaders, secret: string): http.OutgoingHttpHeaders =>
  Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [
      name,
      Array.isArray(value) ? value.map((one) => one.replaceAll(secret, MASK)) : String(value).replaceAll(secret, MASK)
    ])
  )

const answered = (answer: http.IncomingMessage, response: http.ServerResponse, token = ""): void => {
  if (response.destroyed) return void answer.destroy()
  const isMasked = token.length >= LEAST
  const headers = answerHeaders(answer.headers, isMasked)
  response.writeHead(answer.statusCode ?? 502, isMasked ? maskedIn(headers, token) : headers)
  answer.on("error", () => response.destroy())
  if (isMasked) answer.pipe(without(token)).pipe(response)
  else answer.pipe(response)
}

/**
 * Passes requests to a run's remote servers on, and their answers back. The returned function returns false for a
 * request that is for no such server.
 */
export const passing = (servers: RemoteServers, logins: RemoteLogins) => {
  const hold = holding()
  // the daemon knows the tokens before the run begins
  for (const { logins: folder, url } of Object.values(servers)) if (folder !== undefined) logins.known(folder, url)

  /** Returns the token for a server, after a renewal if it has rejected the token `refused`. */
  const tokenOf = async (name: string, { logins: folder, token, url }: Remote, refused?: string) => {
    if (token !== undefined || folder === undefined) return token
    return logins.token(folder, url, refused).catch(({ message }: Error) => {
      throw new Error(`cannot be used: its login could not be renewed: ${message}: agentd login ${name}`)
    })
  }

  const pass = async (name: string, of: Passing) => {
    const { remote, response } = of
    if (remote.problem !== undefined) throw new Error(remote.problem)
    let token = await tokenOf(name, remote)
    let answer = await sent(of, token)
    if (answer.statusCode === 401 && token !== undefined) {
      const renewed = await tokenOf(name, remote, token)
      if (renewed !== undefined && renewed !== token) {
        answer.destroy()
        token = renewed
        answer = await sent(of, token)
      }
    }
    const { "content-encoding": encoding = "identity" } = answer.headers
    if (token !== undefined && encoding !== "identity") {
      answer.destroy()
      throw new Error("sent a compressed answer, from which no token can be removed")
    }
    answered(answer, response, token)
  }

  return (request: http.IncomingMessage, response: http.ServerResponse): boolean => {
    const name = serverIn(servers, request)
    const remote = servers[name ?? ""]
    if (name === undefined || remote === undefined) return false
    const failed = ({ message }: Error) => {
      if (!response.headersSent)
        response.writeHead(502, { "content-type": "text/plain", [UNREACHABLE]: "1" }).end(message)
    }
    hold(request, (body, isWhole) => {
      if (response.destroyed) return
      if (isWhole) return void pass(name, { remote, request, response, body }).catch(failed)
      // a client that still sends would not see the answer
      request.resume()
      failed(new Error("got no request: it is too large"))
    })
    return true
  }
}
