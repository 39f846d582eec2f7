/**
 * `agentd login SERVER`: logs in to a remote MCP server that this project's model agents use, with a code that the user
 * enters on a web page, or with a browser on this machine. `agentd logout SERVER` deletes the login.
 *
 * Guarantees: the tokens are stored only in a file of the state directory that only the user can read, and are never
 * logged or printed. They are stored for the server's address, so another server with the same name in a config does
 * not get them.
 */
import { Clock, Console, Effect } from "effect"
import { randomBytes } from "node:crypto"
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
  const servers = new Map<string, OAuth.Server>()
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

const byCode = Effect.fnUntraced(function* (found: OAuth.Found) {
  const { clientId, device, tokens } = yield* OAuth.byCode(found)
  yield* tell(
    `Open ${device.verification_uri_complete ?? device.verification_uri}`,
    `and enter the code: ${device.user_code}`,
    `Waiting for the login. To cancel: Ctrl-C.`
  )
  const until = (yield* Clock.currentTimeMillis) + device.expires_in * 1000
  let interval = Math.max(1, device.interval ?? 5)
  while ((yield* Clock.currentTimeMillis) < until) {
    yield* Effect.sleep(interval * 1000)
    const said = yield* Effect.catchIf(
      tokens,
      ({ code }) => code === "authorization_pending" || code === "slow_down",
      ({ code }) => Effect.succeed(code)
    )
    if (typeof said !== "string" && said !== undefined) return { clientId, tokens: said }
    if (said === "slow_down") interval += 5
  }
  return yield* failed("The code expired before it was entered.", LoopbackRedirect.AGAIN)
})

const byBrowser = Effect.fnUntraced(function* (found: OAuth.Found, page: string) {
  const state = yield* Effect.sync(() => randomBytes(32).toString("base64url"))
  const { address, returned } = yield* LoopbackRedirect.listen(state)
  const { clientId, tokens, url } = yield* OAuth.byBrowser(found, page, address, state)
  yield* tell("Open this address in a browser of this machine:", url, "Waiting for the login. To cancel: Ctrl-C.")
  const { code, issuer } = yield* Effect.timeoutOrElse(returned, {
    duration: PATIENCE,
    orElse: () => Effect.fail(failed("Nobody logged in within 10 minutes.", LoopbackRedirect.AGAIN))
  })
  return { clientId, tokens: yield* tokens(code, issuer) }
})

const login = Effect.fnUntraced(function* (name: string, browser: boolean) {
  const server = yield* serverOf(name)
  const found = yield* OAuth.discover(server)
  const { issuer } = found
  const { authorization_endpoint: page, device_authorization_endpoint: code } = issuer
  const way =
    code !== undefined && !(browser && page !== undefined)
      ? byCode(found)
      : page === undefined
        ? failed(
            "The issuer supports neither login by code nor login by a web page.",
            "Set a token by bearerEnv in agentd.jsonc."
          )
        : byBrowser(found, page)
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
