/**
 * McpHttp: JSON-RPC with a remote server of the Model Context Protocol, by streamable HTTP. Each message is a POST
 * request. The response is JSON or server-sent events.
 *
 * Guarantees: every request ends: by its answer, by an error, or by the caller's interruption,
 * which is reported to the server. If the server no longer knows the session, a new one is begun, at most once per
 * request. Redirects are not followed, so a token goes to no other address. Everything that is read is limited. No
 * response is left unread, because it would block its connection. Results and errors contain no token, and each token
 * is registered as a secret before it is sent.
 */
import { Deferred, Effect, Option, Schema, type Scope, Semaphore, Stream } from "effect"
import * as Sse from "effect/encoding/Sse"
import { type HttpClient, type HttpClientError, HttpClientRequest, type HttpClientResponse } from "effect/http"
import { Frame, type McpConnection, McpError } from "./McpConnection.ts"
import { isObject, objectIn } from "./Provider.ts"

export interface Remote {
  readonly client: HttpClient.HttpClient
  readonly url: string
  /**
   * Returns the token; undefined if there is none. `refused`: a token that the server rejected; if given, the token is
   * renewed first.
   */
  readonly token: (refused: string | undefined) => Effect.Effect<string | undefined, McpError>
  /** The command with which the user logs in. Shown in error messages. */
  readonly login: string
}

/** Maximum length of one message, and of a whole answer, characters. */
const MAX_FRAME = 4_194_304
const MAX_ANSWER = 16_777_216
const MAX_REFUSAL = 2_000
const FAREWELL = "2 seconds"
/** How long agentd reads a response whose content is not needed, before it closes the connection. */
const REST = "2 seconds"
/** Pattern of a valid session id: a header accepts no other characters. */
const SESSION = /^[\x21-\x7e]{1,1024}$/
const METHOD_NOT_FOUND = -32601

const decodeFrame = Schema.decodeUnknownOption(Frame)
type Frame = typeof Frame.Type
type Response = HttpClientResponse.HttpClientResponse

const wordsOf = ({ reason }: HttpClientError.HttpClientError): string => {
  const cause: unknown = "cause" in reason ? reason.cause : undefined
  return cause instanceof Error && cause.message !== "" ? cause.message : reason._tag
}

class Forgotten extends Schema.TaggedError<Forgotten>()("Forgotten", {}) {}

/** Opens a connection, which lasts as long as the scope. `name`: the server's name in messages. */
// One function, because its parts share the session.
// oxlint-disable-next-line max-lines-per-function
export const make = Effect.fnUntraced(function* (
  name: string,
  { client, login, token, url }: Remote
): Effect.fn.Return<McpConnection, never, Scope.Scope> {
  const scope = yield* Effect.scope
  const over = yield* Deferred.make<McpError>()
  const renewing = yield* Semaphore.make(1)
  let next = 1
  let session: string | undefined
  let version: string | undefined
  let begun: object | undefined
  let known = ""

  const mask = (text: string) => (known === "" ? text : text.replaceAll(known, "[redacted]"))
  const failure = (what: string, lost: boolean) =>
    new McpError({ message: mask(`the MCP server ${name} ${what}`).slice(0, 500), lost })
  const fail = (what: string, lost: boolean) => {
    const error = failure(what, lost)
    if (lost) Deferred.doneUnsafe(over, Effect.succeed(error))
    return Effect.fail(error)
  }

  /** The token for a request. If the login can no longer be used, the server counts as lost. */
  const tokenOf = (refused: string | undefined) =>
    Effect.tapError(token(refused), (error) => Effect.sync(() => void Deferred.doneUnsafe(over, Effect.succeed(error))))

  const headersOf = (bearer: string | undefined) => ({
    accept: "application/json, text/event-stream",
    "user-agent": "agentd",
    ...(version === undefined ? {} : { "mcp-protocol-version": version }),
    ...(session === undefined ? {} : { "mcp-session-id": session }),
    ...(bearer === undefined ? {} : { authorization: `Bearer ${bearer}` })
  })

  const textOf = (response: Response, most: number) => {
    let size = 0
    return response.stream.pipe(
      Stream.takeWhile((bytes) => (size += bytes.length) <= most),
      Stream.decodeText(),
      Stream.mkString,
      Effect.map((text) => ({ text: mask(text), isWhole: size <= most }))
    )
  }

  /** Reads a response whose content is not needed, so that its connection can serve the next request. */
  const drained = (response: Response) => Effect.ignore(Effect.timeout(textOf(response, MAX_REFUSAL), REST))

  const refused = Effect.fnUntraced(function* (response: Response) {
    const { status } = response
    if (status < 500 && (status < 400 || [401, 403, 404].includes(status))) yield* drained(response)
    if (status === 401 || status === 403) return yield* fail(`answered ${status}: it requires a login: ${login}`, true)
    if (status >= 300 && status < 400)
      return yield* fail(`answered ${status} with a redirect, which is not followed`, true)
    if (status === 404) return yield* fail(`answered 404: there is no server at ${url}`, true)
    const { text } = yield* Effect.orElseSucceed(textOf(response, MAX_REFUSAL), () => ({ text: "" }))
    const error = objectIn(text)?.["error"]
    const said = isObject(error) && typeof error["message"] === "string" ? error["message"] : text
    return yield* fail(`answered ${status}: ${said}`, status >= 500)
  })

  /** Posts a frame. If the server rejects the token, renews the token and sends the frame once more. */
  const posted = Effect.fnUntraced(function* (frame: object) {
    const once = (bearer: string | undefined) => {
      known = bearer ?? known
      const request = HttpClientRequest.post(url).pipe(
        HttpClientRequest.setHeaders(headersOf(bearer)),
        HttpClientRequest.bodyText(JSON.stringify({ jsonrpc: "2.0", ...frame }), "application/json")
      )
      return Effect.catch(client.execute(request), (error) =>
        fail(`cannot be reached at ${url}: ${wordsOf(error)}`, true)
      )
    }
    const had = session
    const bearer = yield* tokenOf(undefined)
    let response = yield* once(bearer)
    if (response.status === 401 && bearer !== undefined) {
      yield* drained(response)
      const renewed = yield* tokenOf(bearer)
      if (renewed !== undefined && renewed !== bearer) response = yield* once(renewed)
    }
    if (response.status === 404 && had !== undefined) {
      yield* drained(response)
      return yield* new Forgotten()
    }
    if (response.status >= 300) return yield* refused(response)
    return response
  })

  /** Posts a frame that needs no answer. */
  const told = (frame: object) => Effect.flatMap(posted(frame), drained)

  /** Answers a request that the server sends as part of an answer, because the server waits for it. */
  const asked = ({ id, method }: Frame) => {
    const said =
      method === "ping" ? { result: {} } : { error: { code: METHOD_NOT_FOUND, message: `not done: ${method}` } }
    return id === undefined || id === null
      ? Effect.void
      : Effect.asVoid(Effect.forkIn(Effect.ignore(told({ id, ...said })), scope))
  }

  const resultOf = ({ error, result }: Frame) =>
    error === undefined ? Effect.succeed(result) : fail(`refused: ${error.message}`, false)

  /** Finds the answer among the received frames, and handles the other frames. */
  const answerIn = Effect.fnUntraced(function* (text: string, id: number) {
    let value: unknown
    try {
      value = JSON.parse(text)
    } catch {
      return yield* fail("sent a message that is not JSON-RPC", true)
    }
    for (const one of Array.isArray(value) ? value : [value]) {
      const frame = decodeFrame(one)
      if (Option.isNone(frame)) return yield* fail("sent a message that is not JSON-RPC", true)
      if (frame.value.method !== undefined) yield* asked(frame.value)
      else if (frame.value.id === id) return Option.some(frame.value)
    }
    return Option.none()
  })

  const byEvents = (response: Response, id: number) => {
    let [size, waiting]: [number, Array<string>] = [0, []]
    const parser = Sse.makeParser((event) => void (event._tag === "Event" && waiting.push(event.data)), {
      maxEventSize: MAX_FRAME
    })
    return response.stream.pipe(
      Stream.mapError((error) => failure(`broke off its answer: ${wordsOf(error)}`, false)),
      Stream.decodeText(),
      Stream.mapEffect((text) =>
        Effect.gen(function* () {
          size += text.length
          if (parser.feed(text) !== undefined || size > MAX_ANSWER)
            return yield* fail("sent more than 4 MB at once", true)
          const batch = waiting
          waiting = []
          for (const data of batch) {
            if (data.trim() === "") continue
            const found = yield* answerIn(mask(data), id)
            if (Option.isSome(found)) return found
          }
          return Option.none<Frame>()
        })
      ),
      Stream.filter(Option.isSome),
      Stream.runHead,
      Effect.flatMap(
        Option.match({
          onNone: () => fail("ended its answer before it was complete", false),
          onSome: ({ value }) => resultOf(value)
        })
      )
    )
  }

  const exchanged = Effect.fnUntraced(function* (id: number, method: string, params: object) {
    const response = yield* posted({ id, method, params })
    if (method === "initialize") {
      const given = response.headers["mcp-session-id"]
      session = given !== undefined && SESSION.test(given) ? given : undefined
    }
    if (/^\s*text\/event-stream/i.test(response.headers["content-type"] ?? "")) return yield* byEvents(response, id)
    const body = yield* Effect.catch(textOf(response, MAX_FRAME), (error) =>
      fail(`broke off its answer: ${wordsOf(error)}`, false)
    )
    if (!body.isWhole) return yield* fail("sent more than 4 MB at once", true)
    const found = yield* answerIn(body.text, id)
    return yield* Option.match(found, {
      onNone: () => fail("did not answer the request", true),
      onSome: resultOf
    })
  })

  const begin = Effect.fnUntraced(function* (params: object) {
    session = undefined
    version = undefined
    begun = params
    const result = yield* exchanged(next++, "initialize", params)
    const spoken = isObject(result) ? result["protocolVersion"] : undefined
    version = typeof spoken === "string" && SESSION.test(spoken) ? spoken : undefined
    return result
  })

  const notify = (method: string, params: object) => told({ method, params })

  /** Begins a new session, unless another request has already done so. */
  const renewed = (old: string | undefined) =>
    renewing.withPermits(1)(
      Effect.suspend(() =>
        session !== old || begun === undefined
          ? Effect.void
          : Effect.andThen(begin(begun), notify("notifications/initialized", {}))
      )
    )

  const forgotten = () => fail("does not keep its sessions", true)
  const request = (method: string, params: object): Effect.Effect<unknown, McpError> =>
    Effect.suspend(() => {
      if (method === "initialize") return Effect.catchTag(begin(params), "Forgotten", forgotten)
      const [id, old] = [next++, session]
      const cancelled = Effect.ignore(notify("notifications/cancelled", { requestId: id }))
      return exchanged(id, method, params).pipe(
        Effect.catchTag("Forgotten", () => Effect.andThen(renewed(old), exchanged(next++, method, params))),
        Effect.catchTag("Forgotten", forgotten),
        Effect.onInterrupt(() => Effect.forkIn(cancelled, scope))
      )
    })

  yield* Effect.addFinalizer(() =>
    session === undefined
      ? Effect.void
      : Effect.ignore(
          Effect.timeout(
            Effect.flatMap(
              Effect.orElseSucceed(token(undefined), () => undefined),
              (bearer) => client.execute(HttpClientRequest.setHeaders(HttpClientRequest.delete(url), headersOf(bearer)))
            ),
            FAREWELL
          )
        )
  )

  return {
    request,
    notify: (method, params) => Effect.ignore(notify(method, params)),
    lost: Deferred.await(over),
    lose: (what) => Effect.sync(() => void Deferred.doneUnsafe(over, Effect.succeed(failure(what, true))))
  }
})
