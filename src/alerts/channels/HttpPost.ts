/**
 * HttpPost: sends one HTTP request to a receiver of notices.
 *
 * Guarantees: a request ends within its timeout. It follows no redirect, so that nothing is sent to an address that is
 * not configured. Only a bounded part of an answer is read. No error contains the address, which can be a
 * secret, or any word of it, even if the receiver's answer contains it.
 */
import { Effect, type Stream } from "effect"
import { FetchHttpClient, HttpClient, HttpClientRequest } from "effect/http"
import { attempt } from "../../config/Attempt.ts"
import * as BoundedRead from "../../config/BoundedRead.ts"
import { SendError, setup } from "../SendError.ts"
import { masked } from "../../core/event-log/Redact.ts"
import { wordsOfAddress } from "../../core/event-log/SecretValues.ts"

const WITHIN = "15 seconds"
/** Time for the body, when the status has arrived. */
const BODY_WITHIN = "5 seconds"
const MAX_ANSWER = 64 * 1024
/** Maximum length of the part of an answer that an error quotes, in characters. */
const MAX_SAID = 200

export interface Request {
  readonly method?: "POST" | "PUT" | "DELETE"
  readonly url: string
  /** The address in the config, if the request is sent to a different address. Its words are masked in errors, too. */
  readonly address?: string
  readonly headers?: { readonly [name: string]: string }
  readonly body: string
  readonly type: string
}

export interface Answer {
  readonly status: number
  readonly text: string
}

/** The host of an address, for display: the path is left out because it can be a secret. */
export const hostOf = (url: string): string => attempt(() => new URL(url).host) ?? "the address"

const isAddress = (url: string): boolean => attempt(() => /^https?:$/u.test(new URL(url).protocol)) ?? false

/** The error for an answer that is not a success; its class says whether a retry can help. */
const refusalOf = ({ address = "", url }: Request, { status, text }: Answer): SendError => {
  const host = hostOf(url)
  const words = [...wordsOfAddress(url), ...wordsOfAddress(address)]
  // masks secrets before cutting, because a secret that is cut in two would not be found
  const said = masked(text.replaceAll(/\s+/gu, " ").trim(), words).slice(0, MAX_SAID).toWellFormed()
  const message = `${host} answered ${status}${said === "" ? "" : `: ${said}`}`
  if (status === 429 || status >= 500) {
    return new SendError({ message, remedy: "The receiver asks to try again later; agentd does.", class: "transient" })
  }
  if (status >= 300 && status < 400) {
    return setup(message, "The address has moved: put the new one into notify.channels.")
  }
  if ([401, 403, 404, 405, 410].includes(status)) {
    return setup(message, "Check the channel's address and its secret in notify.channels.")
  }
  return new SendError({ message, remedy: "The receiver does not accept this message.", class: "permanent" })
}

const textOf = (stream: Stream.Stream<Uint8Array, unknown>) =>
  BoundedRead.read(stream, MAX_ANSWER).pipe(
    Effect.map(({ bytes }) => new TextDecoder().decode(bytes)),
    // if the body cannot be read, the status still says whether the message was accepted
    Effect.timeout(BODY_WITHIN),
    Effect.orElseSucceed(() => "")
  )

const requestOf = ({ body, headers = {}, method = "POST", type, url }: Request) =>
  HttpClientRequest.make(method)(url).pipe(
    HttpClientRequest.setHeaders({ "user-agent": "agentd", ...headers }),
    method === "DELETE" ? (request) => request : HttpClientRequest.bodyText(body, type)
  )

export type HttpPost = (request: Request) => Effect.Effect<Answer, SendError>

/** Fails if the status of the answer is not 2xx. */
export const make: Effect.Effect<HttpPost, never, HttpClient.HttpClient> = Effect.map(
  HttpClient.HttpClient,
  (client): HttpPost =>
    (request) =>
      Effect.gen(function* () {
        if (!isAddress(request.url)) {
          return yield* setup(
            "the address is not an http or https address",
            "Fix the channel's url, or the file that contains it."
          )
        }
        const host = hostOf(request.url)
        const answer = yield* Effect.scoped(
          Effect.flatMap(client.execute(requestOf(request)), ({ status, stream }) =>
            Effect.map(textOf(stream), (text): Answer => ({ status, text }))
          )
        ).pipe(
          Effect.mapError(
            (error) =>
              new SendError({
                message: `${host} cannot be reached: ${causeOf(error)}`,
                remedy: "Check the address and the network; agentd tries again.",
                class: "transient"
              })
          ),
          Effect.timeoutOrElse({
            duration: WITHIN,
            orElse: () =>
              Effect.fail(
                new SendError({
                  message: `${host} did not answer in time`,
                  remedy: "Check that the receiver is up; agentd tries again.",
                  class: "transient"
                })
              )
          })
        )
        if (answer.status >= 200 && answer.status < 300) return answer
        return yield* refusalOf(request, answer)
      }).pipe(
        Effect.provideService(FetchHttpClient.RequestInit, { redirect: "manual" }),
        // sends no trace headers: the receiver must not learn about other work of the daemon
        Effect.provideService(HttpClient.TracerPropagationEnabled, false)
      )
)

/** The system's error code, such as ECONNREFUSED, which contains no address. */
const causeOf = (error: unknown): string => {
  for (let at: unknown = error; typeof at === "object" && at !== null;) {
    if ("code" in at && typeof at.code === "string") return at.code
    at = "cause" in at ? at.cause : "reason" in at ? at.reason : undefined
  }
  return "no connection"
}
