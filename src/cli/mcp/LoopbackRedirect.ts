/**
 * LoopbackRedirect: a local HTTP server to which the browser is redirected after a login.
 *
 * Guarantees: it listens only on 127.0.0.1, and only until the scope closes. Only the first request with this login's
 * `state` is accepted.
 */
import { Deferred, Effect } from "effect"
import { createServer } from "node:http"
import { VerbFailed } from "../parse/Failure.ts"
import { ExitCode } from "../parse/ExitCode.ts"

export interface Returned {
  readonly code: string
  /** The issuer (`iss`), if the redirect contains it. */
  readonly issuer: string | undefined
}

/** Remedy for a login that was not completed. */
export const AGAIN = "Run the same command again."

const PATH = "/callback"

const refused = (message: string) => new VerbFailed({ message, remedy: AGAIN, exitCode: ExitCode.failed })

/** Starts the server. Returns the redirect address, and an effect that waits for the redirect. */
export const listen = Effect.fnUntraced(function* (state: string) {
  const returned = yield* Deferred.make<Returned, VerbFailed>()
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? "/", "http://127.0.0.1")
    const said = url.searchParams
    const isOurs = request.method === "GET" && url.pathname === PATH && said.get("state") === state
    response.writeHead(isOurs ? 200 : 404, { "content-type": "text/plain; charset=utf-8", connection: "close" })
    if (!isOurs) return response.end("This is not a login of agentd.\n")
    const code = said.get("code")
    Deferred.doneUnsafe(
      returned,
      code === null
        ? Effect.fail(refused(`The login was refused: ${(said.get("error") ?? "no code came back").slice(0, 200)}.`))
        : Effect.succeed({ code, issuer: said.get("iss") ?? undefined })
    )
    return response.end(code === null ? "The login was refused.\n" : "Done. You can close this page.\n")
  })
  const port = yield* Effect.acquireRelease(
    Effect.callback<number, VerbFailed>((resume) => {
      server.once("error", (error) => resume(Effect.fail(refused(`No local port could be opened: ${error.message}.`))))
      server.listen(0, "127.0.0.1", () => {
        const address = server.address()
        resume(Effect.succeed(typeof address === "object" && address !== null ? address.port : 0))
      })
    }),
    () =>
      Effect.sync(() => {
        server.closeAllConnections()
        server.close()
      })
  )
  return { address: `http://127.0.0.1:${port}${PATH}`, returned: Deferred.await(returned) }
})
