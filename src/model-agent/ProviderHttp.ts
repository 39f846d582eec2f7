/**
 * ProviderHttp: the HTTP exchange with a provider: one POST request, whose response is server-sent events.
 *
 * Guarantees: every failure is a ProviderError. The exchange ends if nothing is received for the time `silence`, before
 * the response or during it. Everything that is read is limited. Redirects are not followed, so the key goes to no
 * other address. An interruption closes the connection.
 */
import { Clock, Duration, Effect, Stream } from "effect"
import * as Sse from "effect/encoding/Sse"
import { HttpClient, type HttpClientError, HttpClientRequest, type HttpClientResponse } from "effect/http"
import { UNREACHABLE } from "../runs/gateway/PassedHeaders.ts"
import { windowsIn } from "../runs/gateway/LimitHeaders.ts"
import { isObject, objectIn, ProviderError, type ProviderEvent } from "./Provider.ts"
import { type Account, fault, refusal, saidIn } from "./ProviderFault.ts"

export interface Endpoint {
  readonly client: HttpClient.HttpClient
  readonly account: Account
  readonly url: string
  /** Headers of the request, including the key. */
  readonly headers: { readonly [name: string]: string }
  readonly silence: Duration.Duration
}

/** Builds one answer from the events of a response. */
export interface Assembly {
  readonly take: (data: string, now: number) => ReadonlyArray<ProviderEvent> | ProviderError
  /**
   * Called when the stream has ended without an `Answer`. Returns the answer if it can still be built, otherwise the
   * error.
   */
  readonly end: () => ReadonlyArray<ProviderEvent> | ProviderError
}

/** Maximum length of one event, characters. */
const MAX_EVENT = 4 * 1024 * 1024
/** Maximum length of one response, characters: many times the longest answer of a model. */
const MAX_ANSWER = 64 * 1024 * 1024
/** Maximum number of bytes that are read from an error response. */
const MAX_REFUSAL = 64 * 1024

/** The message of the underlying system error, if there is one, for example "connect ECONNREFUSED 127.0.0.1:1". */
const wordsOf = ({ reason }: HttpClientError.HttpClientError): string => {
  const cause: unknown = "cause" in reason ? reason.cause : undefined
  if (!(cause instanceof Error)) return reason._tag
  const code = "code" in cause && typeof cause.code === "string" ? cause.code : cause.name
  return cause.message === "" ? code : cause.message
}

const lost = ({ account }: Endpoint, error: HttpClientError.HttpClientError): ProviderError => {
  const { _tag } = error.reason
  if (_tag === "InvalidUrlError") return fault("not_found", `${account.baseUrl} is not the URL of an API`, account)
  const broken = _tag === "TransportError" || _tag === "EncodeError" ? "connection" : "stream"
  const what = broken === "stream" ? "the answer broke off" : "the API could not be reached"
  return fault(broken, `${what}: ${wordsOf(error)}`, account)
}

const silent = ({ silence, account }: Endpoint): ProviderError =>
  fault("silence", `the API said nothing for ${Duration.toSeconds(silence)} s`, account)

const bodyOf = (endpoint: Endpoint, response: HttpClientResponse.HttpClientResponse) => {
  let size = 0
  return response.stream.pipe(
    Stream.takeUntil((bytes) => (size += bytes.length) >= MAX_REFUSAL),
    Stream.decodeText(),
    Stream.mkString,
    Effect.timeoutOrElse({ duration: endpoint.silence, orElse: () => Effect.succeed("") }),
    // if the body cannot be read, the status alone is used
    Effect.orElseSucceed(() => "")
  )
}

/** Builds the error for a response that is not a stream of events. */
const refused = Effect.fnUntraced(function* (endpoint: Endpoint, response: HttpClientResponse.HttpClientResponse) {
  const body = yield* bodyOf(endpoint, response)
  const now = yield* Clock.currentTimeMillis
  if (response.headers[UNREACHABLE] !== undefined) {
    const why = body.trim().replace(/^the provider could not be reached: /, "")
    return yield* fault("connection", `the API could not be reached: ${why}`, endpoint.account)
  }
  if (response.status !== 200)
    return yield* refusal(saidIn(body, response.status), endpoint.account, now, response.headers)
  if (isObject(objectIn(body)?.["error"])) return yield* refusal(saidIn(body), endpoint.account, now)
  return yield* fault("garbage", `the API did not answer with a stream of events, but: ${body}`, endpoint.account)
})

const isStream = ({ status, headers }: HttpClientResponse.HttpClientResponse) =>
  status === 200 && !/^\s*(application\/json|text\/html)/i.test(headers["content-type"] ?? "")

const reader = ({ account }: Endpoint, assembly: Assembly) => {
  let size = 0
  let waiting: Array<string> = []
  const parser = Sse.makeParser(
    (event) => {
      // the retry interval that server-sent events can contain is not used
      if (event._tag === "Event") waiting.push(event.data)
    },
    { maxEventSize: MAX_EVENT }
  )
  return (text: string, now: number): Stream.Stream<ProviderEvent, ProviderError> => {
    size += text.length
    const tooLarge = parser.feed(text) !== undefined || size > MAX_ANSWER
    const [batch, events]: [Array<string>, Array<ProviderEvent>] = [waiting, []]
    waiting = []
    for (const data of batch) {
      const taken = assembly.take(data, now)
      if (taken instanceof ProviderError) return Stream.concat(Stream.fromIterable(events), Stream.fail(taken))
      events.push(...taken)
    }
    const all = Stream.fromIterable(events)
    return tooLarge
      ? Stream.concat(all, Stream.fail(fault("garbage", "the API's answer exceeds the maximum length", account)))
      : all
  }
}

/** Applies the timeout `silence` to each piece, in monotonic time. The timeout of Stream itself uses the wall clock. */
const heard =
  (endpoint: Endpoint) =>
  <A>(self: Stream.Stream<A, ProviderError>): Stream.Stream<A, ProviderError> =>
    Stream.transformPull(self, (pull) =>
      Effect.succeed(
        Effect.timeoutOrElse(pull, { duration: endpoint.silence, orElse: () => Effect.fail(silent(endpoint)) })
      )
    )

const answered = (endpoint: Endpoint, response: HttpClientResponse.HttpClientResponse, assembly: Assembly) => {
  const read = reader(endpoint, assembly)
  const last = Stream.suspend(() => {
    const end = assembly.end()
    return end instanceof ProviderError ? Stream.fail(end) : Stream.fromIterable(end)
  })
  return response.stream.pipe(
    Stream.mapError((error) => lost(endpoint, error)),
    heard(endpoint),
    Stream.decodeText(),
    Stream.flatMap((text) => Stream.unwrap(Effect.map(Clock.currentTimeMillis, (now) => read(text, now)))),
    Stream.concat(last),
    Stream.takeUntil(({ _tag }) => _tag === "Answer")
  )
}

/** Emits the account's usage windows, if the response's headers contain any. */
const told = ({ headers }: HttpClientResponse.HttpClientResponse): Stream.Stream<ProviderEvent> =>
  Stream.unwrap(
    Effect.map(Clock.currentTimeMillis, (now) => {
      const windows = windowsIn(headers, now)
      return windows.windows.length === 0 && windows.rejected === undefined
        ? Stream.empty
        : Stream.make<[ProviderEvent]>({ _tag: "Windows", ...windows })
    })
  )

/**
 * Repairs strings that were cut in the middle of a character: the API would reject this request and every later one.
 */
const wellFormed = (_: string, value: unknown): unknown => (typeof value === "string" ? value.toWellFormed() : value)

export const stream = (
  endpoint: Endpoint,
  body: unknown,
  assembly: () => Assembly
): Stream.Stream<ProviderEvent, ProviderError> => {
  const request = HttpClientRequest.post(endpoint.url).pipe(
    HttpClientRequest.setHeaders({ ...endpoint.headers, accept: "text/event-stream", "user-agent": "agentd" }),
    HttpClientRequest.bodyText(JSON.stringify(body, wellFormed), "application/json")
  )
  return endpoint.client.execute(request).pipe(
    // no tracing headers are sent: the provider need not know who made the request
    Effect.provideService(HttpClient.TracerPropagationEnabled, false),
    Effect.mapError((error) => lost(endpoint, error)),
    Effect.timeoutOrElse({ duration: endpoint.silence, orElse: () => Effect.fail(silent(endpoint)) }),
    Effect.map((response) => {
      const answer = isStream(response)
        ? answered(endpoint, response, assembly())
        : Stream.fromEffect(refused(endpoint, response))
      return Stream.concat(told(response), answer)
    }),
    Stream.unwrap
  )
}
