/**
 * OAuth: the protocol steps of a login at a remote MCP server: discovery of the issuer, registration of agentd as a
 * client, and the exchange for tokens. No step waits for the user.
 *
 * Guarantees: each request is limited in size and time, and no redirect is followed. An address must use HTTPS or
 * belong to this machine. Metadata of a server is accepted only for its own address. No error contains a token.
 */
import { Effect, Schema, Stream } from "effect"
import { type HttpClient, HttpClientRequest } from "effect/http"
import { isReadonlyObject } from "effect/Predicate"
import { attempt } from "../../config/Attempt.ts"
import { isSafe } from "../../runs/gateway/RemoteLogin.ts"

export class OAuthError extends Schema.TaggedError<OAuthError>()("OAuthError", {
  message: Schema.String,
  remedy: Schema.String,
  /** The error code that the protocol defines, for example "authorization_pending" or "invalid_grant". */
  code: Schema.optional(Schema.String)
}) {}

const MAX_BODY = 256 * 1024
const LIMIT = "30 seconds"

const text = Schema.String
const maybe = <S extends Schema.Top>(schema: S) => Schema.optionalKey(Schema.UndefinedOr(schema))

const Resource = Schema.Struct({
  resource: text,
  authorization_servers: maybe(Schema.Array(text)),
  scopes_supported: maybe(Schema.Array(text))
})

const Issuer = Schema.Struct({
  issuer: text,
  token_endpoint: text,
  authorization_endpoint: maybe(text),
  device_authorization_endpoint: maybe(text),
  registration_endpoint: maybe(text),
  code_challenge_methods_supported: maybe(Schema.Array(text))
})
export type Issuer = typeof Issuer.Type

const Tokens = Schema.Struct({
  access_token: text,
  token_type: maybe(text),
  refresh_token: maybe(text),
  expires_in: maybe(Schema.Finite)
})
const Device = Schema.Struct({
  device_code: text,
  user_code: text,
  verification_uri: text,
  verification_uri_complete: maybe(text),
  expires_in: Schema.Finite,
  interval: maybe(Schema.Finite)
})

const Client = Schema.Struct({ client_id: text })

const refused = (message: string, remedy: string, code?: string) => new OAuthError({ message, remedy, code })

const ASK = "ask the operator of the server, or set a token with bearerEnv under mcp in agentd.jsonc"

/** Checks that requests may be sent to an address: it must use HTTPS or belong to this machine. */
export const safe = (address: string) =>
  Effect.suspend(() =>
    isSafe(address)
      ? Effect.succeed(new URL(address))
      : Effect.fail(refused(`${address.slice(0, 200)} is not an HTTPS address`, ASK))
  )

const objectIn = (text: string) => {
  const value = attempt((): unknown => JSON.parse(text))
  return isReadonlyObject(value) ? value : undefined
}

interface Said {
  readonly status: number
  readonly body: string
  readonly headers: { readonly [name: string]: string | undefined }
}

const asked = (client: HttpClient.HttpClient, request: HttpClientRequest.HttpClientRequest) =>
  Effect.gen(function* () {
    yield* safe(request.url)
    const response = yield* client.execute(
      HttpClientRequest.setHeaders(request, { accept: "application/json", "user-agent": "agentd" })
    )
    let size = 0
    const body = yield* response.stream.pipe(
      Stream.takeWhile((bytes) => (size += bytes.length) <= MAX_BODY),
      Stream.decodeText(),
      Stream.mkString
    )
    const said: Said = { status: response.status, body, headers: response.headers }
    return said
  }).pipe(
    Effect.timeout(LIMIT),
    Effect.catchTag(["HttpClientError", "TimeoutError"], () =>
      Effect.fail(refused(`${new URL(request.url).origin} cannot be reached`, "check the network, then try again"))
    )
  )

const decoded = <A>(schema: Schema.Codec<A, unknown>, { body }: Said, what: string) =>
  Effect.mapError(Schema.decodeUnknownEffect(schema)(objectIn(body)), () => refused(`${what} has an unknown form`, ASK))

const got = (client: HttpClient.HttpClient, url: string) => asked(client, HttpClientRequest.get(url))

const wellKnown = (url: URL, name: string): ReadonlyArray<string> => {
  const path = url.pathname === "/" ? "" : url.pathname.replace(/\/$/, "")
  const at = (rest: string) => `${url.origin}/.well-known/${name}${rest}`
  return path === "" ? [at("")] : [at(path), at("")]
}

const first = <A>(
  client: HttpClient.HttpClient,
  urls: ReadonlyArray<string>,
  schema: Schema.Codec<A, unknown>,
  what: string
) =>
  Effect.gen(function* () {
    for (const url of urls) {
      const said = yield* got(client, url)
      if (said.status === 200) return yield* decoded(schema, said, `${what} at ${url}`)
    }
    return undefined
  })

/** Finds the issuer whose logins a server accepts, and the scopes that the server names. */
export const discover = Effect.fnUntraced(function* (client: HttpClient.HttpClient, address: string) {
  const server = yield* safe(address)
  const greeting = yield* asked(
    client,
    HttpClientRequest.bodyText(HttpClientRequest.post(address), "{}", "application/json")
  )
  const named = /resource_metadata="([^"]{1,2000})"/.exec(greeting.headers["www-authenticate"] ?? "")?.[1]
  // metadata from another origin is ignored: a server can describe only itself
  const own = named !== undefined && URL.canParse(named) && new URL(named).origin === server.origin ? [named] : []
  const urls = [...own, ...wellKnown(server, "oauth-protected-resource")]
  const resource = yield* first(client, urls, Resource, "the server's description of its login")
  if (
    resource !== undefined &&
    !(URL.canParse(resource.resource) && new URL(resource.resource).origin === server.origin)
  )
    return yield* refused(`${address} says that its login is for ${resource.resource.slice(0, 200)}`, ASK)
  const issuerUrl = yield* safe(resource?.authorization_servers?.[0] ?? server.origin)
  const issuer = yield* first(
    client,
    [...wellKnown(issuerUrl, "oauth-authorization-server"), ...wellKnown(issuerUrl, "openid-configuration")],
    Issuer,
    "the issuer's description of itself"
  )
  if (issuer === undefined) return yield* refused(`${issuerUrl.origin} does not describe how to log in`, ASK)
  if (!URL.canParse(issuer.issuer) || new URL(issuer.issuer).href !== issuerUrl.href)
    return yield* refused(`${issuerUrl.href} claims to be ${issuer.issuer.slice(0, 200)}`, ASK)
  yield* safe(issuer.token_endpoint)
  return { issuer, scopes: resource?.scopes_supported ?? [] }
})

const posted = (client: HttpClient.HttpClient, url: string, form: { readonly [name: string]: string }) =>
  asked(
    client,
    HttpClientRequest.bodyText(
      HttpClientRequest.post(url),
      new URLSearchParams(form).toString(),
      "application/x-www-form-urlencoded"
    )
  )

/** Builds the error for a failed request, with the endpoint's own description if it sent one. */
const refusal = ({ body, status }: Said, what: string) => {
  const said = objectIn(body)
  const code = typeof said?.["error"] === "string" ? said["error"] : undefined
  const words = typeof said?.["error_description"] === "string" ? said["error_description"] : code
  return refused(
    `${what} was refused (${status}): ${(words ?? "no reason was given").slice(0, 300)}`,
    "log in again",
    code
  )
}

/** Registers agentd at the issuer. Returns the client id. */
export const register = Effect.fnUntraced(function* (
  client: HttpClient.HttpClient,
  { registration_endpoint: url }: Issuer,
  redirectUri: string | undefined
) {
  if (url === undefined)
    return yield* refused(
      "the issuer accepts no new clients",
      "register agentd there by hand, and set its id with clientId under mcp in agentd.jsonc"
    )
  const body = JSON.stringify({
    client_name: "agentd",
    token_endpoint_auth_method: "none",
    ...(redirectUri === undefined
      ? { grant_types: ["urn:ietf:params:oauth:grant-type:device_code", "refresh_token"] }
      : {
          grant_types: ["authorization_code", "refresh_token"],
          response_types: ["code"],
          redirect_uris: [redirectUri]
        })
  })
  const said = yield* asked(client, HttpClientRequest.bodyText(HttpClientRequest.post(url), body, "application/json"))
  if (said.status >= 300) return yield* refusal(said, "the registration")
  return (yield* decoded(Client, said, "the registration")).client_id
})

const logged = <A>(schema: Schema.Codec<A, unknown>, what: string) =>
  Effect.fnUntraced(function* (client: HttpClient.HttpClient, url: string, form: { readonly [name: string]: string }) {
    const said = yield* posted(client, url, form)
    if (said.status >= 300) return yield* refusal(said, what)
    return yield* decoded(schema, said, `the answer to ${what}`)
  })

export const tokens = logged(Tokens, "the login")

/** Requests a code, which the user enters on another device. */
export const device = logged(Device, "the login by a code")
