/**
 * McpConnection: a client of the Model Context Protocol that is connected to one server. The protocol is done by
 * `@modelcontextprotocol/client`: it asks the server for the revision of 2026 first, and performs the handshake of the
 * older revisions if the server does not know it. McpPipes and McpHttp provide the transports.
 *
 * Guarantees: every request ends: by its answer, by an error, by the loss of the server, or by the caller's
 * interruption, which is reported to the server. A server that speaks no revision of ours is refused with the same
 * words over every transport, with the revisions that it named.
 */
import {
  Client,
  ProtocolError,
  SdkError,
  SdkErrorCode,
  SdkHttpError,
  type StandardSchemaV1,
  type Transport
} from "@modelcontextprotocol/client"
import { Deferred, Effect, Schema, Scope, Semaphore } from "effect"
import { isObject, type JsonObject, objectIn } from "./Provider.ts"

/** The server rejected a request, sent invalid data, or has ended. */
export class McpError extends Schema.TaggedError<McpError>()("McpError", {
  message: Schema.String,
  /** True if the server can no longer be used. */
  lost: Schema.Boolean
}) {}

export interface McpConnection {
  readonly request: (method: "tools/list", params: JsonObject) => Effect.Effect<unknown, McpError>
  /** Calls a tool. `tool`: its entry in the server's list. */
  readonly call: (
    tool: { readonly name: string; readonly inputSchema: object },
    args: JsonObject
  ) => Effect.Effect<unknown, McpError>
  /** Asks the server whether it is there. Fails if the server refuses to say so, too. */
  readonly check: Effect.Effect<void, McpError>
  /** Waits until the server can no longer be used, and returns why. */
  readonly lost: Effect.Effect<McpError>
  /** Declares that the server can no longer be used. The caller gives the reason. */
  readonly lose: (what: string) => Effect.Effect<void>
}

/** A transport's description of a failure. The client hands it on. */
export class Fault extends Schema.TaggedError<Fault>()("Fault", { message: Schema.String, lost: Schema.Boolean }) {}

/** The server has forgotten the session in which a request was made. The client hands it on. */
export class Forgotten extends Schema.TaggedError<Forgotten>()("Forgotten", {}) {}

/** An error that the client has thrown. */
class Thrown extends Schema.TaggedError<Thrown>()("Thrown", { error: Schema.Unknown }) {}

export const fault = (message: string, lost: boolean): Fault => new Fault({ message, lost })

/** A way to a server. */
export interface Link {
  /** Creates the transport of a client, which is closed with the scope. */
  readonly transport: Effect.Effect<Transport, never, Scope.Scope>
  /** Why the server can no longer be used; undefined until then. */
  readonly over: Deferred.Deferred<McpError>
  /** True for a server that must not be asked for the revision of 2026. */
  readonly isOld: boolean
  /** Time that the server has to say whether it knows the revision of 2026, ms. */
  readonly probe: number
}

/** Maximum of Node's timers: the caller's interruption ends a request, not the client. */
const FOREVER = 2_147_483_647
const UNSUPPORTED = -32022
const NEW = "2026-07-28"
const UNKNOWN_VERSION = /^Server's protocol version is not supported: (.{1,100})/

/** Accepts every result: the caller decodes it, and tolerates more than the protocol's schemas do. */
const anything: StandardSchemaV1<unknown, unknown> = {
  "~standard": { version: 1, vendor: "agentd", validate: (value) => ({ value }) }
}

/** Compiles no code from a server's schema. */
const jsonSchemaValidator = {
  getValidator: () => (value: unknown) => ({ valid: true as const, data: value as never, errorMessage: undefined })
}

export const errorOf = (name: string, what: string, lost: boolean) =>
  new McpError({ message: `the MCP server ${name} ${what}`.slice(0, 500), lost })

const supportedIn = (data: unknown): ReadonlyArray<string> | undefined => {
  const list = isObject(data) ? data["supported"] : undefined
  return Array.isArray(list) ? list.filter((one) => typeof one === "string").slice(0, 20) : undefined
}

/** The error in the body of an HTTP answer. */
const bodyOf = (error: SdkHttpError) => {
  const body = objectIn(String(error.data.text ?? ""))?.["error"]
  return isObject(body) ? body : undefined
}

/** The revisions that the server named when it refused ours; undefined if it refused something else. */
const revisionsIn = (error: unknown): ReadonlyArray<string> | undefined => {
  if (error instanceof ProtocolError && error.code === UNSUPPORTED) return supportedIn(error.data) ?? []
  if (error instanceof SdkHttpError) {
    const body = bodyOf(error)
    return body?.["code"] === UNSUPPORTED ? (supportedIn(body["data"]) ?? []) : undefined
  }
  const named = error instanceof Error ? UNKNOWN_VERSION.exec(error.message)?.[1] : undefined
  return named === undefined ? undefined : [named]
}

const whatOf = (error: unknown): Fault => {
  const cause = error instanceof Error ? error.cause : undefined
  for (const one of [error, cause]) if (one instanceof Fault) return one
  const revisions = revisionsIn(error)
  if (revisions?.includes(NEW)) return fault("was not ready in time to say which revision of MCP it speaks", true)
  if (revisions !== undefined) {
    const named = revisions.length === 0 ? "names no revision of MCP" : `speaks only MCP ${revisions.join(", ")}`
    return fault(`${named}: agentd speaks no revision of it`, true)
  }
  if (error instanceof SdkHttpError) {
    const said = bodyOf(error)?.["message"] ?? error.data.text ?? error.message
    return fault(`answered ${error.status}: ${String(said)}`, error.status >= 500)
  }
  if (error instanceof ProtocolError) return fault(`refused: ${error.message}`, false)
  if (error instanceof SdkError && error.code === SdkErrorCode.InvalidResult)
    return fault(`sent a result of no known form: ${error.message}`, false)
  if (error instanceof SyntaxError || (error instanceof Error && error.name === "ZodError"))
    return fault("sent a message that is not JSON-RPC", true)
  return fault(`failed: ${error instanceof Error ? error.message : String(error)}`, true)
}

/** Connects a client. It lasts as long as the scope. */
const dial = Effect.fnUntraced(function* ({ isOld, probe, transport: made }: Link) {
  const transport = yield* made
  const client = new Client(
    { name: "agentd", version: "0" },
    {
      capabilities: {},
      jsonSchemaValidator,
      versionNegotiation: isOld ? { mode: "legacy" } : { mode: "auto", probe: { timeoutMs: probe } }
    }
  )
  yield* Effect.tryPromise({
    try: () => client.connect(transport, { timeout: FOREVER }),
    catch: (error) => new Thrown({ error })
  })
  return client
})

/** Connects to a server. The connection lasts as long as the scope. `name`: the server's name in messages. */
export const make = Effect.fnUntraced(function* (
  name: string,
  link: Link
): Effect.fn.Return<McpConnection, McpError, Scope.Scope> {
  const scope = yield* Effect.scope
  const renewing = yield* Semaphore.make(1)

  /** If the server is lost, that is the reason of every error. */
  const failed = ({ error }: Thrown) =>
    Effect.gen(function* () {
      if (yield* Deferred.isDone(link.over)) return yield* yield* Deferred.await(link.over)
      const { lost, message } = error instanceof Forgotten ? fault("does not keep its sessions", true) : whatOf(error)
      const found = errorOf(name, message, lost)
      if (lost) yield* Deferred.succeed(link.over, found)
      return yield* found
    })

  let client = yield* Effect.catch(dial(link), failed)

  /** Begins a new session, unless another request has already done so. */
  const renewed = (old: Client) =>
    renewing.withPermits(1)(
      Effect.suspend(() =>
        client === old
          ? Effect.map(Effect.provideService(dial(link), Scope.Scope, scope), (now) => void (client = now))
          : Effect.void
      )
    )

  const asked = (ask: (client: Client, signal: AbortSignal) => Promise<unknown>): Effect.Effect<unknown, McpError> =>
    Effect.suspend(() => {
      const used = client
      const once = Effect.suspend(() => {
        const now = client
        return Effect.tryPromise({ try: (signal) => ask(now, signal), catch: (error) => new Thrown({ error }) })
      })
      return once.pipe(
        Effect.catchIf(
          ({ error }) => error instanceof Forgotten,
          () => Effect.andThen(renewed(used), once)
        ),
        Effect.catch(failed)
      )
    })

  return {
    lost: Deferred.await(link.over),
    lose: (what) => Effect.asVoid(Deferred.succeed(link.over, errorOf(name, what, true))),
    request: (method, params) =>
      asked((client, signal) => client.request({ method, params }, anything, { signal, timeout: FOREVER })),
    call: (tool, args) =>
      asked((client, signal) => {
        const params = { name: tool.name, arguments: args }
        const options = { signal, timeout: FOREVER }
        // the revision of 2026 repeats some arguments in headers, which only `callTool` does
        return client.getProtocolEra() === "modern"
          ? client.callTool(params, { ...options, toolDefinition: tool as never })
          : client.request({ method: "tools/call", params }, anything, options)
      }),
    // the revision of 2026 has no ping
    check: Effect.asVoid(
      asked((client, signal) =>
        client.getProtocolEra() === "modern"
          ? client.discover({ signal, timeout: FOREVER })
          : client.ping({ signal, timeout: FOREVER })
      )
    )
  }
})
