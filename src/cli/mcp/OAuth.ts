/**
 * OAuth: the protocol steps of a login at a remote MCP server: discovery of the issuer, registration of agentd as a
 * client, and the exchange for tokens. A login in a browser is done by `@modelcontextprotocol/client`, a login by a code
 * by `oauth4webapi`. The client's discovery of issuers is not used: it requires a web page for logins, and drops the
 * address for codes from a description by OpenID. No step waits for the user.
 *
 * Guarantees: each request is limited in size and time, and goes only to an address that uses HTTPS or belongs to this
 * machine. No redirect to another origin is followed. Metadata of a server is accepted only for its own address. No
 * error contains a token.
 */
import {
  buildDiscoveryUrls,
  discoverOAuthProtectedResourceMetadata,
  exchangeAuthorization,
  extractWWWAuthenticateParams,
  OAuthError as ClientError,
  startAuthorization
} from "@modelcontextprotocol/client"
import { Effect, Schema } from "effect"
import { isReadonlyObject } from "effect/Predicate"
import * as oauth from "oauth4webapi"
import { isSafe, limitedFetch } from "../../runs/gateway/RemoteLogin.ts"

export class OAuthError extends Schema.TaggedError<OAuthError>()("OAuthError", {
  message: Schema.String,
  remedy: Schema.String,
  /** The error code that the protocol defines, for example "authorization_pending" or "invalid_grant". */
  code: Schema.optional(Schema.String)
}) {}

export interface Server {
  readonly url: string
  /** The client id in the config. A URL is that of a client id metadata document. */
  readonly clientId?: string
}

/** A server and the issuer whose logins it accepts. */
export interface Found {
  readonly server: Server
  readonly issuer: oauth.AuthorizationServer & { readonly token_endpoint: string }
  /** The scopes that the server names, separated by spaces. */
  readonly scope: { readonly scope?: string }
}

const ASK = "ask the operator of the server, or set a token with bearerEnv under mcp in agentd.jsonc"
const CLIENT_ID = "register agentd there by hand, and set its id with clientId under mcp in agentd.jsonc"

const refused = (message: string, remedy: string, code?: string) => new OAuthError({ message, remedy, code })

const METHODS = {
  [oauth.customFetch]: (url: string, init: RequestInit) => limitedFetch(url, init),
  // the fetch decides which addresses are safe
  [oauth.allowInsecureRequests]: true
} as const

/** The error of a failed step. */
const errorOf = (what: string, error: unknown): OAuthError => {
  if (error instanceof OAuthError) return error
  if (error instanceof oauth.ResponseBodyError)
    return refused(
      `${what} was refused (${error.status}): ${(error.error_description ?? error.error).slice(0, 300)}`,
      "log in again",
      error.error
    )
  if (error instanceof ClientError)
    return refused(`${what} was refused: ${error.message.slice(0, 300)}`, "log in again", error.code)
  const isForm = error instanceof SyntaxError || (error instanceof Error && error.name === "ZodError")
  const why = isForm ? "the answer has an unknown form" : error instanceof Error ? error.message : String(error)
  return refused(`${what} failed: ${why.slice(0, 300)}`, ASK)
}

const step = <A>(what: string, run: () => Promise<A>) =>
  Effect.tryPromise({ try: run, catch: (error) => errorOf(what, error) })

const resourceOf = async (address: string) => {
  const greeting = await limitedFetch(address, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: "{}"
  })
  const { origin } = new URL(address)
  const { resourceMetadataUrl } = extractWWWAuthenticateParams(greeting)
  const asked = (named: { readonly resourceMetadataUrl?: URL }) =>
    discoverOAuthProtectedResourceMetadata(address, named, limitedFetch)
  // metadata from another origin is ignored: a server can describe only itself
  const found = resourceMetadataUrl?.origin === origin ? asked({ resourceMetadataUrl }) : Promise.reject(new Error())
  const resource = await found.catch(() => asked({})).catch(() => undefined)
  if (resource !== undefined && new URL(resource.resource).origin !== origin)
    throw refused(`${address} says that its login is for ${resource.resource.slice(0, 200)}`, ASK)
  return resource
}

const issuerOf = async (address: string) => {
  for (const { url } of buildDiscoveryUrls(address)) {
    const answer = await limitedFetch(url, { headers: { accept: "application/json" } })
    if (answer.status !== 200) continue
    // some issuers send another content type
    const json = new Response(await answer.text(), { headers: { "content-type": "application/json" } })
    const issuer = await oauth.processDiscoveryResponse(new URL(address), json)
    const { token_endpoint } = issuer
    if (token_endpoint !== undefined && isSafe(token_endpoint)) return { ...issuer, token_endpoint }
  }
  throw refused(`${new URL(address).origin} does not describe how to log in`, ASK)
}

/** Finds the issuer whose logins a server accepts. */
export const discover = (server: Server) =>
  step("the search for the server's issuer", async (): Promise<Found> => {
    const resource = await resourceOf(server.url)
    const { authorization_servers: [issuer = new URL(server.url).origin] = [], scopes_supported: scopes = [] } =
      resource ?? {}
    return {
      server,
      issuer: await issuerOf(issuer),
      scope: scopes.length === 0 ? {} : { scope: scopes.join(" ") }
    }
  })

/**
 * Registers agentd as a client, and returns its id. The functions of the packages are not used: they reject issuers that
 * answer with the status 200, or with the id alone.
 */
const registered = async (endpoint: string, metadata: object): Promise<string> => {
  const answer = await limitedFetch(endpoint, {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json" },
    body: JSON.stringify(metadata)
  })
  const said: unknown = await answer.json().catch(() => undefined)
  const body = isReadonlyObject(said) ? said : {}
  const { client_id, error, error_description } = body
  if (answer.status < 300 && typeof client_id === "string" && client_id !== "") return client_id
  const why = [error_description, error].find((one) => typeof one === "string") ?? "no client id was returned"
  throw refused(`the registration was refused (${answer.status}): ${String(why).slice(0, 300)}`, CLIENT_ID)
}

/** The client id: that of the config, or of a new registration with the grants of the login. */
const clientOf = async ({ issuer, server: { clientId } }: Found, grants: object) => {
  const isDocument = clientId?.startsWith("https://") === true
  if (clientId !== undefined && (!isDocument || issuer.client_id_metadata_document_supported === true))
    return { client_id: clientId }
  const { registration_endpoint: endpoint } = issuer
  if (endpoint === undefined) throw refused("the issuer accepts no new clients", CLIENT_ID)
  return { client_id: await registered(endpoint, { ...CLIENT, ...grants }) }
}

const CLIENT = { client_name: "agentd", token_endpoint_auth_method: "none" }

/** Starts a login by a code, which the user enters on another device. `tokens`: asks whether the user has done so. */
export const byCode = (found: Found) =>
  step("the login by a code", async () => {
    const { issuer, scope, server } = found
    const client = await clientOf(found, {
      grant_types: ["urn:ietf:params:oauth:grant-type:device_code", "refresh_token"]
    })
    const resource = { resource: server.url }
    const device = await oauth.processDeviceAuthorizationResponse(
      issuer,
      client,
      await oauth.deviceAuthorizationRequest(issuer, client, oauth.None(), { ...resource, ...scope }, METHODS)
    )
    const tokens = step("the login", async () =>
      oauth.processDeviceCodeResponse(
        issuer,
        client,
        await oauth.deviceCodeGrantRequest(issuer, client, oauth.None(), device.device_code, {
          ...METHODS,
          additionalParameters: resource
        })
      )
    )
    return { clientId: client.client_id, device, tokens }
  })

/**
 * Starts a login in a browser, which opens `url` and is then redirected to `address`. `tokens`: exchanges the code that
 * came back, with the issuer that the redirect names.
 */
export const byBrowser = (found: Found, page: string, address: string, state: string) =>
  step("the login", async () => {
    const { issuer, scope, server } = found
    const metadata = { ...issuer, authorization_endpoint: page, response_types_supported: ["code"] }
    const client = await clientOf(found, {
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
      redirect_uris: [address]
    })
    if (!isSafe(page)) throw refused(`${page.slice(0, 200)} is not an HTTPS address`, ASK)
    const of = { metadata, clientInformation: client, resource: server.url }
    const { authorizationUrl, codeVerifier } = await startAuthorization(issuer.issuer, {
      ...of,
      ...scope,
      redirectUrl: address,
      state
    })
    const tokens = (code: string, iss: string | undefined) =>
      step("the login", () =>
        exchangeAuthorization(issuer.issuer, {
          ...of,
          authorizationCode: code,
          ...(iss === undefined ? {} : { iss }),
          codeVerifier,
          redirectUri: address,
          fetchFn: limitedFetch
        })
      )
    return { clientId: client.client_id, url: authorizationUrl.href, tokens }
  })
