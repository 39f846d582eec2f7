/**
 * `agentd login SERVER`: logs in to a remote MCP server that this project's model agents use, with a code that the user
 * enters on a web page, or with a browser on this machine. `agentd logout SERVER` deletes the login.
 *
 * Guarantees: the tokens are stored only in a file of the state directory that only the user can read, and are never
 * logged or printed. They are stored for the server's address, so another server with the same name in a config does
 * not get them.
 */
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import { Clock, Console, Context, Effect, Layer } from "effect"
import { HttpClient } from "effect/http"
import { createHash, randomBytes } from "node:crypto"
import { join } from "node:path"
import { load } from "../../config/ConfigFile.ts"
import { troubleOf } from "../../config/FileTrouble.ts"
import { ExitCode } from "../parse/ExitCode.ts"
import { VerbFailed } from "../parse/Failure.ts"
import { Invocation, print } from "../parse/Invocation.ts"
import * as LoopbackRedirect from "./LoopbackRedirect.ts"
import * as OAuth from "./OAuth.ts"
import { plain } from "../render/Output.ts"
import { isRun } from "../projects/Trust.ts"
import * as RemoteLogin from "../../runs/gateway/RemoteLogin.ts"

const failed = (message: string, remedy: string) => new VerbFailed({ message, remedy, exitCode: ExitCode.failed })

/** Time that the user has to log in with a browser. */
const PATIENCE = "10 minutes"
const DEVICE = "urn:ietf:params:oauth:grant-type:device_code"

interface Server {
  readonly url: string
  readonly clientId?: string
}

/** The remote MCP server with this name in the config of any agent in this folder's project. */
export const serverOf = Effect.fnUntraced(function* (name: string) {
  if (yield* isRun)
    return yield* failed(
      "This command runs inside an agent (AGENTD_RUN is set), which may not log in.",
      "Run the command in your own terminal, outside of the agent."
    )
  const { caller } = yield* Invocation
  if (caller.config === null)
    return yield* failed("There is no agentd.jsonc in this folder or above it.", "Go to the project's folder.")
  const { agents } = yield* load(caller.config)
  const servers = new Map<string, Server>()
  for (const { backend } of Object.values(agents)) {
    if (backend.type !== "model") continue
    for (const [one, { clientId, url }] of Object.entries(backend.mcp))
      if (url !== undefined) servers.set(one, clientId === undefined ? { url } : { url, clientId })
  }
  const found = servers.get(name)
  if (found !== undefined) return found
  const known = [...servers.keys()].join(", ")
  return yield* failed(
    `No model agent of this project has a remote MCP server ${name}.`,
    known === ""
      ? "Add the server with its url under mcp of a model backend in agentd.jsonc."
      : `Known servers: ${known}.`
  )
})

/** Reads or changes the stored logins. */
export const stored = Effect.fnUntraced(function* <A>(act: (folder: string) => A) {
  const { paths } = yield* Invocation
  const folder = join(paths.state, "logins")
  return yield* Effect.try({
    try: () => act(folder),
    catch: (error) => failed(`${folder} cannot be changed: ${troubleOf(error)}.`, "Make the folder writable.")
  })
})

/** Prints lines for the user to standard error, because standard output is for the result. */
const tell = (...lines: ReadonlyArray<string>) =>
  Effect.forEach(lines, (line) => Console.error(plain(line)), { discard: true })

interface At {
  readonly client: HttpClient.HttpClient
  readonly server: Server
  readonly issuer: OAuth.Issuer
  readonly scope: { readonly scope?: string }
}

const byCode = Effect.fnUntraced(function* ({ client, issuer, scope, server }: At, endpoint: string) {
  const clientId = server.clientId ?? (yield* OAuth.register(client, issuer, undefined))
  const device = yield* OAuth.device(client, endpoint, { client_id: clientId, resource: server.url, ...scope })
  yield* tell(
    `Open ${device.verification_uri_complete ?? device.verification_uri}`,
    `and enter the code: ${device.user_code}`,
    `Waiting for the login. To cancel: Ctrl-C.`
  )
  const until = (yield* Clock.currentTimeMillis) + device.expires_in * 1000
  let interval = Math.max(1, device.interval ?? 5)
  while ((yield* Clock.currentTimeMillis) < until) {
    yield* Effect.sleep(interval * 1000)
    const said = yield* OAuth.tokens(client, issuer.token_endpoint, {
      grant_type: DEVICE,
      device_code: device.device_code,
      client_id: clientId,
      resource: server.url
    }).pipe(
      Effect.catchIf(
        ({ code }) => code === "authorization_pending" || code === "slow_down",
        ({ code }) => Effect.succeed(code)
      )
    )
    if (typeof said !== "string" && said !== undefined) return { clientId, tokens: said }
    if (said === "slow_down") interval += 5
  }
  return yield* failed("The code expired before it was entered.", "Try again: agentd login")
})

const byBrowser = Effect.fnUntraced(function* ({ client, issuer, scope, server }: At, endpoint: string) {
  const methods = issuer.code_challenge_methods_supported
  if (methods !== undefined && !methods.includes("S256"))
    return yield* failed(
      "The issuer does not support PKCE (a proof of which program started the login).",
      "Ask the operator of the server."
    )
  const drawn = yield* Effect.sync(() => randomBytes(32).toString("base64url"))
  const verifier = yield* Effect.sync(() => randomBytes(48).toString("base64url"))
  const { address, returned } = yield* LoopbackRedirect.listen(drawn)
  const clientId = server.clientId ?? (yield* OAuth.register(client, issuer, address))
  const url = yield* OAuth.safe(endpoint)
  const asked = {
    response_type: "code",
    client_id: clientId,
    redirect_uri: address,
    state: drawn,
    code_challenge: createHash("sha256").update(verifier).digest("base64url"),
    code_challenge_method: "S256",
    resource: server.url,
    ...scope
  }
  for (const [name, value] of Object.entries(asked)) url.searchParams.set(name, value)
  yield* tell("Open this address in a browser of this machine:", url.href, "Waiting for the login. To cancel: Ctrl-C.")
  const back = yield* Effect.timeoutOrElse(returned, {
    duration: PATIENCE,
    orElse: () => Effect.fail(failed("Nobody logged in within 10 minutes.", "Try again: agentd login"))
  })
  if (back.issuer !== undefined && back.issuer !== issuer.issuer)
    return yield* failed("The login came back from another issuer, and was rejected.", "Try again: agentd login")
  const tokens = yield* OAuth.tokens(client, issuer.token_endpoint, {
    grant_type: "authorization_code",
    code: back.code,
    redirect_uri: address,
    client_id: clientId,
    code_verifier: verifier,
    resource: server.url
  })
  return { clientId, tokens }
})

const login = Effect.fnUntraced(function* (name: string, browser: boolean) {
  const server = yield* serverOf(name)
  const client = Context.get(yield* Layer.build(NodeHttpClient.layerNodeHttp), HttpClient.HttpClient)
  const { issuer, scopes } = yield* OAuth.discover(client, server.url)
  const at: At = { client, server, issuer, scope: scopes.length === 0 ? {} : { scope: scopes.join(" ") } }
  const { authorization_endpoint: page, device_authorization_endpoint: code } = issuer
  const way =
    code !== undefined && !(browser && page !== undefined)
      ? byCode(at, code)
      : page === undefined
        ? failed(
            "The issuer supports neither login by code nor login by a web page.",
            "Set a token by bearerEnv in agentd.jsonc."
          )
        : byBrowser(at, page)
  const { clientId, tokens } = yield* way
  const now = yield* Clock.currentTimeMillis
  const grant = RemoteLogin.grantOf({ url: server.url, tokenEndpoint: issuer.token_endpoint, clientId }, tokens, now)
  yield* stored((folder) => RemoteLogin.write(folder, grant))
  const { expiresAt = null, refreshToken } = grant
  yield* print({ server: name, url: server.url, expiresAt, renews: refreshToken !== undefined }, () => [
    plain(`Logged in to ${name} (${server.url}). Its agents use the login from their next attempt on.`)
  ])
})

export const run = ({ browser, server }: { readonly server: string; readonly browser: boolean }) =>
  Effect.scoped(login(server, browser))
