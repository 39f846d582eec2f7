/**
 * McpHttp: the way to a remote server of the Model Context Protocol, by streamable HTTP. The transport is that of
 * `@modelcontextprotocol/client`, with a `fetch` of our own. Requests go through the gateway, which adds the tokens.
 *
 * Guarantees: redirects are not followed. Everything that is read is limited. No response is left unread, because it
 * would block its connection. No stream is opened that a request does not need. An answer that breaks off is an error
 * of its request.
 */
import {
  isJSONRPCRequest,
  type JSONRPCMessage,
  StreamableHTTPClientTransport,
  type Transport
} from "@modelcontextprotocol/client"
import { Deferred, Effect, type Scope, Stream } from "effect"
import { type HttpClient, type HttpClientError, HttpClientRequest, type HttpClientResponse } from "effect/http"
import { UNREACHABLE } from "../runs/gateway/PassedHeaders.ts"
import { type Fault, fault, Forgotten, type Link, type McpError } from "./McpConnection.ts"
import { objectIn } from "./Provider.ts"

export interface Remote {
  readonly client: HttpClient.HttpClient
  readonly url: string
  /** The command with which the user logs in. Shown in error messages. */
  readonly login: string
}

/** Maximum size of an answer in JSON, of an answer by events, and of a response whose content is not needed, bytes. */
const MAX_JSON = 4_194_304
const MAX_EVENTS = 16_777_216
const MAX_REST = 64_000
const FAREWELL = "2 seconds"
/** How long agentd reads a response whose content is not needed, before it closes the connection. */
const REST = "2 seconds"
/** Time that a server has to say whether it knows the revision of 2026, before it is asked as an older one. */
const PROBE = "10 seconds"
/** The method with which the client asks for the revision of 2026. */
const DISCOVER = "server/discover"

type Answer = HttpClientResponse.HttpClientResponse

const wordsOf = ({ reason }: HttpClientError.HttpClientError): string => {
  const cause: unknown = "cause" in reason ? reason.cause : undefined
  return cause instanceof Error && cause.message !== "" ? cause.message : reason._tag
}

type SendOptions = Parameters<StreamableHTTPClientTransport["send"]>[1]

/** The client's transport, which tells the request of an answer that breaks off, and closes abandoned responses. */
class Posts extends StreamableHTTPClientTransport {
  /** Why the answer to a request ended early. */
  readonly broken = new Map<unknown, Fault>()
  private readonly open = new Map<unknown, AbortController>()

  override async send(message: JSONRPCMessage, options?: SendOptions): Promise<void> {
    if (!isJSONRPCRequest(message)) {
      await super.send(message, options)
      // the revisions before 2026 leave the response of a cancelled request open
      if ("method" in message && message.method === "notifications/cancelled")
        this.open.get(message.params?.["requestId"])?.abort()
      return
    }
    const { id } = message
    const own = new AbortController()
    const signals = options?.requestSignal === undefined ? [own.signal] : [own.signal, options.requestSignal]
    this.open.set(id, own)
    // resolved by nothing: the answer comes as a message
    await new Promise<void>((_, reject) => {
      const end = (error: unknown) => {
        this.open.delete(id)
        reject(this.broken.get(id) ?? error)
        this.broken.delete(id)
      }
      const onRequestStreamEnd = () => end(fault("ended its answer before it was complete", false))
      super.send(message, { ...options, requestSignal: AbortSignal.any(signals), onRequestStreamEnd }).catch(end)
    })
  }
}

/** The fetch of a transport. */
const fetchOf = ({ client, login, url }: Remote, posts: () => Posts) => {
  const asked = (init: RequestInit) => {
    const headers = Object.fromEntries(new Headers(init.headers))
    const request = HttpClientRequest.make(init.method === "DELETE" ? "DELETE" : "POST")(url).pipe(
      HttpClientRequest.setHeaders({ ...headers, "user-agent": "agentd" })
    )
    const body =
      typeof init.body === "string" ? HttpClientRequest.bodyText(request, init.body, "application/json") : request
    return Effect.catch(client.execute(body), (error) =>
      Effect.fail(fault(`cannot be reached: ${wordsOf(error)}`, true))
    )
  }

  /** Reads a response whose content is not needed, so that its connection can serve the next request. */
  const rest = (answer: Answer) => {
    let size = 0
    return answer.stream.pipe(
      Stream.takeWhile((bytes) => (size += bytes.length) <= MAX_REST),
      Stream.decodeText(),
      Stream.mkString,
      Effect.timeoutOption(REST),
      Effect.match({ onFailure: () => "", onSuccess: (text) => (text._tag === "Some" ? text.value : "") })
    )
  }

  /** The body of an answer, up to its limit. What ends it early is said to its request. */
  const bodyOf = (answer: Answer, id: unknown, signal: AbortSignal | null | undefined) => {
    const isEvents = /^\s*text\/event-stream/i.test(answer.headers["content-type"] ?? "")
    const most = isEvents ? MAX_EVENTS : MAX_JSON
    let size = 0
    const aborted = Effect.callback<never, Fault>((resume) => {
      const stop = () => resume(Effect.fail(fault("was not waited for", false)))
      if (signal?.aborted === true) return stop()
      signal?.addEventListener("abort", stop, { once: true })
      return Effect.sync(() => signal?.removeEventListener("abort", stop))
    })
    const bytes = answer.stream.pipe(
      Stream.mapError((error) => fault(`broke off its answer: ${wordsOf(error)}`, false)),
      Stream.mapEffect((bytes) => {
        size += bytes.length
        return size <= most
          ? Effect.succeed(bytes)
          : Effect.fail(fault(`sent more than ${most >> 20} MB at once`, true))
      }),
      Stream.interruptWhen(aborted),
      Stream.tapError((error) => Effect.sync(() => void posts().broken.set(id, error)))
    )
    return Stream.toReadableStream(bytes)
  }

  return Effect.fnUntraced(function* (init: RequestInit) {
    const { id, method } = objectIn(typeof init.body === "string" ? init.body : "") ?? {}
    const answer = yield* asked(init)
    const { headers, status } = answer
    if (status === 200 && method !== undefined && id !== undefined)
      return new Response(bodyOf(answer, id, init.signal), { status, headers })
    const text = yield* rest(answer)
    if (headers[UNREACHABLE] !== undefined) return yield* fault(text, true)
    // a gateway of an older agentd, which has survived its daemon, passes on no request to a server
    if (status === 403 && text.startsWith("agentd: "))
      return yield* fault("cannot be reached: the gateway is of an older agentd, and ends with the last run", true)
    if (status === 401 || status === 403) return yield* fault(`answered ${status}: it requires a login: ${login}`, true)
    if (status >= 300 && status < 400)
      return yield* fault(`answered ${status} with a redirect, which is not followed`, true)
    // an old server may answer a method that it does not know by anything
    if (method === DISCOVER) return new Response(text, { status: status < 400 || status >= 500 ? 400 : status })
    if (status === 404 && new Headers(init.headers).has("mcp-session-id")) return yield* new Forgotten()
    if (status === 404) return yield* fault("answered 404: there is no MCP server at its url", true)
    return new Response(status === 204 || text === "" ? null : text, { status, headers })
  })
}

/** The way to a remote server. */
export const make = Effect.fnUntraced(function* (remote: Remote): Effect.fn.Return<Link, never, Scope.Scope> {
  const run = Effect.runPromiseWith(yield* Effect.context())
  const over = yield* Deferred.make<McpError>()

  const transport = Effect.gen(function* () {
    const fetched = fetchOf(remote, () => posts)
    const fetch = async (_: string | URL, init: RequestInit = {}): Promise<Response> => {
      // the stream on which a server speaks unasked: agentd waits for nothing there
      if (init.method === "GET") return new Response(null, { status: 405 })
      const isProbe = new Headers(init.headers).get("mcp-method") === DISCOVER
      const answer = fetched(init)
      const limited = isProbe
        ? Effect.timeoutOrElse(answer, {
            duration: PROBE,
            orElse: () => Effect.succeed(new Response("", { status: 400 }))
          })
        : answer
      return run(limited, init.signal == null ? undefined : { signal: init.signal })
    }
    const posts: Posts = new Posts(new URL(remote.url), { fetch })
    yield* Effect.addFinalizer(() =>
      Effect.ignore(
        Effect.timeout(
          Effect.tryPromise(() => posts.terminateSession()),
          FAREWELL
        )
      )
    )
    return posts as Transport
  })
  // the fetch ends a probe that hangs
  return { transport, over, isOld: false, probe: 60_000 }
})
