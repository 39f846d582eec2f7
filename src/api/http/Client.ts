/**
 * Client: sends a single request to the daemon over its unix socket, for commands that must start very fast. It loads
 * no protocol code, and gives up after a limited time.
 */
import { request } from "node:http"
import { Data, type Duration, Effect } from "effect"

export class NoAnswer extends Data.TaggedError("NoAnswer")<{ readonly message: string }> {}

export interface Answer {
  readonly status: number
  readonly body: string
}

/** Maximum length of an answer, in characters. Real answers are much shorter. */
const MAX_ANSWER = 1024 * 1024

const send = (socket: string, path: string, body: unknown): Effect.Effect<Answer, NoAnswer> =>
  Effect.callback((resume) => {
    const text = JSON.stringify(body)
    const fail = (error: Error) => resume(Effect.fail(new NoAnswer({ message: error.message })))
    const outgoing = request(
      {
        socketPath: socket,
        path,
        method: "POST",
        headers: { "content-type": "application/json", "content-length": Buffer.byteLength(text) }
      },
      (response) => {
        let answer = ""
        response.setEncoding("utf8")
        response.on("data", (part: string) => {
          answer += part
          if (answer.length > MAX_ANSWER) response.destroy(new Error("The answer is too long."))
        })
        response.on("error", fail)
        response.on("end", () => resume(Effect.succeed({ status: response.statusCode ?? 0, body: answer })))
      }
    )
    outgoing.on("error", fail)
    outgoing.end(text)
    return Effect.sync(() => outgoing.destroy())
  })

export const post = (
  socket: string,
  path: string,
  body: unknown,
  within: Duration.Input
): Effect.Effect<Answer, NoAnswer> =>
  Effect.timeoutOrElse(send(socket, path, body), {
    duration: within,
    orElse: () => Effect.fail(new NoAnswer({ message: `No answer from ${socket}.` }))
  })
