/**
 * McpStand: a remote MCP server on this machine, with its own issuer of logins, for tests. `Ways` controls how it
 * behaves.
 */
import { Effect } from "effect"
import { createHash } from "node:crypto"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"

export interface Ways {
  /** Sends answers as events, with other messages among them. */
  events?: boolean
  /** Requires a login. */
  login?: boolean
  /** Offers no login by a device code. */
  noDevice?: boolean
  /** Describes the issuer by OpenID alone. */
  openId?: boolean
  /** Accepts client id metadata documents; `only`: and registers no clients. */
  documents?: boolean | "only"
  /** The issuer that the browser brings back. */
  iss?: string
  /** Redirects every request to this address. */
  redirect?: string
  /** The answer to a call: none, half of one, 50 MB, invalid JSON, or two answers. */
  call?: "hang" | "cut" | "huge" | "garbage" | "twice"
  /** A call is answered after that. */
  hold?: Promise<void>
  /** Number of polls before the person has entered the code. */
  pending?: number
  /** Called before a login is renewed. */
  renews?: () => void
  /** The resource that the server names in its metadata; by default its own address. */
  resource?: string
}

export interface Seen {
  readonly method: string
  readonly path: string
  readonly headers: IncomingMessage["headers"]
  readonly body: string
}

const TOOLS = ["echo", "token"].map((name) => ({
  name,
  description: name,
  inputSchema: { type: "object", properties: { text: { type: "string" } } }
}))

/** Starts the server; it is closed with the scope. */
export const stand = (ways: Ways = {}) =>
  Effect.acquireRelease(
    Effect.callback<Stand>((resume) => {
      const seen: Array<Seen> = []
      const state = { session: 0, access: 0, refresh: 0, challenge: "", clients: 0 }
      const json = (response: ServerResponse, value: unknown, status = 200, headers = {}) => {
        response.writeHead(status, { "content-type": "application/json", ...headers })
        response.end(JSON.stringify(value))
      }
      const tokens = () => {
        state.access += 1
        state.refresh += 1
        return {
          access_token: `access-${state.access}-secret`,
          refresh_token: `refresh-${state.refresh}-secret`,
          token_type: "Bearer",
          expires_in: 3600
        }
      }
      const answer = (response: ServerResponse, frame: object, headers = {}) => {
        if (ways.events !== true) return json(response, frame, 200, headers)
        response.writeHead(200, { "content-type": "text/event-stream", ...headers })
        const other = { jsonrpc: "2.0", method: "notifications/message", params: {} }
        const ping = { jsonrpc: "2.0", id: "theirs", method: "ping" }
        response.write(`: hello\n\nid: 1\ndata:\n\ndata: ${JSON.stringify(other)}\n\ndata: ${JSON.stringify(ping)}\n\n`)
        return response.end(`event: message\ndata: ${JSON.stringify(frame)}\n\n`)
      }
      const called = (response: ServerResponse, id: number, name: string, text: string, bearer: string) => {
        const frame = (said: string) => ({ jsonrpc: "2.0", id, result: { content: [{ type: "text", text: said }] } })
        switch (ways.call) {
          case "hang":
            return undefined
          case "cut":
            response.writeHead(200, { "content-type": "text/event-stream" })
            return response.write("data: {", () => setImmediate(() => response.destroy()))
          case "huge":
            return answer(response, frame("x".repeat(50_000_000)))
          case "garbage":
            response.writeHead(200, { "content-type": "application/json" })
            return response.end("{ no json")
          case "twice":
            response.writeHead(200, { "content-type": "text/event-stream" })
            return response.end(
              `data: ${JSON.stringify(frame("first"))}\n\ndata: ${JSON.stringify(frame("second"))}\n\n`
            )
          default:
            return answer(response, frame(name === "token" ? bearer : text))
        }
      }
      const mcp = (request: IncomingMessage, response: ServerResponse, body: string) => {
        if (ways.redirect !== undefined) {
          response.writeHead(307, { location: ways.redirect })
          return response.end()
        }
        const bearer = request.headers.authorization ?? ""
        if (ways.login === true && bearer !== `Bearer access-${state.access}-secret`) {
          const at = `http://${request.headers.host}/.well-known/oauth-protected-resource/mcp`
          return json(response, {}, 401, { "www-authenticate": `Bearer resource_metadata="${at}"` })
        }
        if (request.method === "DELETE") return json(response, {}, 200)
        const { id, method, params } = JSON.parse(body)
        if (method === "initialize") {
          state.session += 1
          const serverInfo = { name: "stand", version: "1" }
          const result = { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo }
          return answer(response, { jsonrpc: "2.0", id, result }, { "mcp-session-id": `session-${state.session}` })
        }
        if (request.headers["mcp-session-id"] !== `session-${state.session}`) return json(response, {}, 404)
        if (id === undefined || method === undefined) {
          response.writeHead(202)
          return response.end()
        }
        if (method === "tools/list") return answer(response, { jsonrpc: "2.0", id, result: { tools: TOOLS } })
        if (method === "tools/call") {
          const say = () => called(response, id, params.name, params.arguments.text ?? "", bearer)
          return ways.hold === undefined ? say() : ways.hold.then(say)
        }
        return answer(response, { jsonrpc: "2.0", id, result: {} })
      }
      const issue = (response: ServerResponse, form: URLSearchParams) => {
        switch (form.get("grant_type")) {
          case "refresh_token":
            ways.renews?.()
            return form.get("refresh_token") === `refresh-${state.refresh}-secret`
              ? json(response, tokens())
              : json(response, { error: "invalid_grant", error_description: "this one is used up" }, 400)
          case "authorization_code":
            return createHash("sha256").update(form.get("code_verifier")!).digest("base64url") === state.challenge
              ? json(response, tokens())
              : json(response, { error: "invalid_grant" }, 400)
          default:
            ways.pending = (ways.pending ?? 0) - 1
            return ways.pending >= 0
              ? json(response, { error: "authorization_pending" }, 400)
              : json(response, tokens())
        }
      }
      const server = createServer((request, response) => {
        let body = ""
        request.setEncoding("utf8").on("data", (part: string) => (body += part))
        request.on("end", () => {
          const url = new URL(request.url!, `http://${request.headers.host}`)
          seen.push({ method: request.method!, path: url.pathname, headers: request.headers, body })
          const at = (path: string) => `${url.origin}${path}`
          switch (url.pathname) {
            case "/mcp":
              return mcp(request, response, body)
            case "/.well-known/oauth-protected-resource/mcp":
              return json(response, {
                resource: ways.resource ?? at("/mcp"),
                authorization_servers: [at("/issuer")],
                scopes_supported: ["tools"]
              })
            case `/.well-known/${ways.openId === true ? "openid-configuration" : "oauth-authorization-server"}/issuer`:
              return json(response, {
                issuer: at("/issuer"),
                token_endpoint: at("/token"),
                authorization_endpoint: at("/authorize"),
                response_types_supported: ["code"],
                ...(ways.documents === "only" ? {} : { registration_endpoint: at("/register") }),
                ...(ways.documents === undefined ? {} : { client_id_metadata_document_supported: true }),
                code_challenge_methods_supported: ["S256"],
                ...(ways.noDevice === true ? {} : { device_authorization_endpoint: at("/device") })
              })
            case "/register":
              state.clients += 1
              // some issuers answer with the status 200 and the id alone
              if (ways.openId === true) return json(response, { client_id: `client-${state.clients}` })
              return json(response, { ...JSON.parse(body), client_id: `client-${state.clients}` }, 201)
            case "/device":
              return json(response, {
                device_code: "device-secret",
                user_code: "ABCD-EFGH",
                verification_uri: at("/type"),
                expires_in: 60,
                interval: 1
              })
            case "/authorize": {
              state.challenge = url.searchParams.get("code_challenge")!
              const back = new URL(url.searchParams.get("redirect_uri")!)
              back.searchParams.set("state", url.searchParams.get("state")!)
              back.searchParams.set("code", "the-code")
              if (ways.iss !== undefined) back.searchParams.set("iss", ways.iss)
              response.writeHead(302, { location: back.href })
              return response.end()
            }
            case "/token":
              return issue(response, new URLSearchParams(body))
            default:
              return json(response, {}, 404)
          }
        })
      })
      server.listen(0, "127.0.0.1", () => {
        const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
        const forget = () => void (state.session += 1)
        const revoke = () => void (state.access += 1)
        const close = () => (server.closeAllConnections(), server.close())
        resume(Effect.succeed({ url: `${origin}/mcp`, origin, seen, ways, forget, revoke, close }))
      })
    }),
    ({ close }) => Effect.sync(close)
  )

export interface Stand {
  readonly url: string
  readonly origin: string
  readonly seen: Array<Seen>
  readonly ways: Ways
  /** Makes the server forget its session. */
  readonly forget: () => void
  /** Makes the server reject the last token that it issued. */
  readonly revoke: () => void
  readonly close: () => void
}
