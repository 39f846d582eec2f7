/**
 * McpTools: the tools of MCP servers, as `server__tool`.
 *
 * The servers are programs that a config chose: each runs with its run, in no sandbox, with
 * the daemon's environment and its own. Its calls are subject to the agent's approvals, and
 * have side effects: what a server itself calls read-only counts as that only where the config
 * trusts its hints, or agentd gave it.
 *
 * Guarantees: a server that does not come up, or cannot list its tools, fails the run's
 * start with a remedy; one that dies, refuses or sends garbage later gives outcomes, and
 * no call waits for it; its processes carry the run's mark and end with the scope.
 */
import { Duration, Effect, Schema, type Scope } from "effect"
import { BackendError, type GivenServer, type RunSpec } from "../Backend.ts"
import type { Argv, Host } from "../Host.ts"
import type { Environment } from "../process/ChildProcess.ts"
import * as HeadTail from "../HeadTail.ts"
import * as McpConnection from "./McpConnection.ts"
import type { ProcessTree } from "../process/ProcessTree.ts"
import type { Reaper } from "../process/Reaper.ts"
import * as ChildEnvironment from "../process/ChildEnvironment.ts"
import * as RunProcess from "../process/RunProcess.ts"
import { MAX_HEAD, MAX_TAIL, type Tool, type ToolOutcome } from "./Tool.ts"

/** Of a config, or of agentd. */
export interface Server extends GivenServer {
  readonly trustHints?: boolean
  readonly passEnv?: ReadonlyArray<string>
}

export interface McpOptions {
  readonly servers: { readonly [name: string]: Server }
  readonly spec: RunSpec
  readonly host: Host
  readonly cwd: string
}

/** From its start to its list of tools; a first `npx` downloads. */
const START_LIMIT = "60 seconds"
const GRACE = Duration.seconds(5)
const MAX_PAGES = 20
const MAX_TOOLS = 200
/** Of a description; more is for nobody to read with every request. */
const MAX_DESCRIPTION = 4_000
/** The longest tool name that all providers take. */
const MAX_NAME = 64

const Listed = Schema.Struct({
  tools: Schema.Array(
    Schema.Struct({
      name: Schema.String,
      description: Schema.optionalKey(Schema.NullOr(Schema.String)),
      inputSchema: Schema.Record(Schema.String, Schema.Unknown),
      annotations: Schema.optionalKey(
        Schema.NullOr(Schema.Struct({ readOnlyHint: Schema.optionalKey(Schema.NullOr(Schema.Boolean)) }))
      )
    })
  ),
  nextCursor: Schema.optionalKey(Schema.NullOr(Schema.String))
})
type Described = (typeof Listed.Type)["tools"][number]

const Called = Schema.Struct({
  content: Schema.optionalKey(Schema.Array(Schema.Record(Schema.String, Schema.Unknown))),
  structuredContent: Schema.optionalKey(Schema.Unknown),
  isError: Schema.optionalKey(Schema.NullOr(Schema.Boolean))
})

const decodeListed = Schema.decodeUnknownEffect(Listed)
const decodeCalled = Schema.decodeUnknownEffect(Called)

const text = (value: unknown): string => (typeof value === "string" ? value : "")

/** A piece of an answer, for a model that reads text. */
const blockText = (block: { readonly [name: string]: unknown }): string => {
  const resource = block["resource"]
  if (block["type"] === "text") return text(block["text"])
  if (typeof resource === "object" && resource !== null && "text" in resource) return text(resource.text)
  return `[${text(block["type"]) || "unknown"} ${text(block["mimeType"]) || text(block["uri"])}: not shown]`
}

const outcomeOf = (called: typeof Called.Type): ToolOutcome => {
  const blocks = (called.content ?? []).map(blockText)
  const all = blocks.length > 0 ? blocks.join("\n") : JSON.stringify(called.structuredContent ?? {})
  return {
    status: called.isError === true ? "error" : "success",
    output: HeadTail.of(all, MAX_HEAD, MAX_TAIL)
  }
}

const call = (connection: McpConnection.McpConnection, server: string, name: string, input: unknown) =>
  connection.request("tools/call", { name, arguments: input ?? {} }).pipe(
    Effect.flatMap(decodeCalled),
    Effect.map(outcomeOf),
    Effect.catch((error) => {
      const advice =
        error._tag === "McpError" && error.lost
          ? "its tools are lost until the next run: go on without them"
          : "see whether the input is what the tool asks for"
      const said = error._tag === "McpError" ? error.message : `the MCP server ${server} sent a result of no known form`
      return Effect.succeed<ToolOutcome>({ status: "error", output: `${said}; ${advice}` })
    })
  )

const KINDS: { readonly [type: string]: (value: unknown) => boolean } = {
  string: (value) => typeof value === "string",
  number: (value) => typeof value === "number",
  integer: Number.isInteger,
  boolean: (value) => typeof value === "boolean",
  array: Array.isArray,
  object: (value) => typeof value === "object" && value !== null && !Array.isArray(value)
}

/** Of the schema as much as is plain: what it requires, and what kind each field is of. The server knows the rest. */
export const wrongIn = ({ inputSchema }: Pick<Described, "inputSchema">, given: unknown): string | undefined => {
  const input = Object.entries(given ?? {})
  const required = Array.isArray(inputSchema["required"]) ? inputSchema["required"] : []
  const missing = required.find((name) => !input.some(([key]) => key === name))
  if (missing !== undefined)
    return `the input lacks ${JSON.stringify(missing)}, which the tool requires; nothing was run`
  const properties = new Map(Object.entries(inputSchema["properties"] ?? {}))
  for (const [name, value] of input) {
    const type: unknown = properties.get(name)?.type
    if (typeof type === "string" && KINDS[type]?.(value) === false)
      return `${JSON.stringify(name)} in the input must be of the type ${type}; nothing was run`
  }
  return undefined
}

/** How far a server is believed. */
interface Trust {
  /** True for the server that agentd gave the run. */
  readonly voice: boolean
  readonly hints: boolean
}

const toolOf = (
  server: string,
  connection: McpConnection.McpConnection,
  described: Described,
  { hints, voice }: Trust
): Tool => {
  const readOnly = hints && described.annotations?.readOnlyHint === true
  return {
    name: `${server}__${described.name}`.replaceAll(/[^A-Za-z0-9_-]/g, "_").slice(0, MAX_NAME),
    description: (described.description ?? "").slice(0, MAX_DESCRIPTION),
    inputSchema: { type: "object", ...described.inputSchema },
    readOnly,
    voice,
    parallel: readOnly,
    wrong: (input) => wrongIn(described, input),
    run: (input) => call(connection, server, described.name, input)
  }
}

/** The handshake, and all pages of the list. */
const introduce = Effect.fnUntraced(function* (connection: McpConnection.McpConnection) {
  yield* connection.request("initialize", {
    protocolVersion: "2025-06-18",
    capabilities: {},
    clientInfo: { name: "agentd", version: "0" }
  })
  yield* connection.notify("notifications/initialized", {})
  const found: Array<Described> = []
  let cursor: string | undefined
  for (let page = 0; page < MAX_PAGES && found.length < MAX_TOOLS; page++) {
    const listed = yield* Effect.flatMap(
      connection.request("tools/list", cursor === undefined ? {} : { cursor }),
      decodeListed
    )
    found.push(...listed.tools)
    cursor = listed.nextCursor ?? undefined
    if (cursor === undefined) break
  }
  return found.slice(0, MAX_TOOLS)
})

const failed = (name: string, argv: ReadonlyArray<string>, why: string) =>
  new BackendError({
    message: `the MCP server ${name} cannot be used: ${why}`,
    remedy: `try its command by hand ("${argv.join(" ").slice(0, 200)}"), then correct it under mcp in agentd.jsonc, or take it out`,
    fatal: false
  })

/** The variables of a server. */
export const environmentOf = (config: Pick<Server, "env" | "passEnv">, host: Host): Environment => ({
  ...ChildEnvironment.given(host.environment, { passEnv: config.passEnv }),
  ...config.env
})

const serve = Effect.fnUntraced(function* (
  name: string,
  config: Server,
  { spec, host, cwd }: McpOptions
): Effect.fn.Return<ReadonlyArray<Tool>, BackendError, Scope.Scope | ProcessTree | Reaper> {
  const [program = "", ...args] = config.argv
  const argv: Argv = [program, ...args]
  const server = yield* RunProcess.make({
    store: host.store,
    // a mark of its own: a shell command's end must not end it
    runId: `${spec.runId}+mcp-${name}`,
    argv,
    cwd,
    env: environmentOf(config, host),
    keepInput: true,
    grace: GRACE
  }).pipe(Effect.mapError(({ message, remedy }) => failed(name, argv, `${message} (${remedy})`)))
  // a server ends when its input does; SIGTERM is for those that do not
  yield* Effect.addFinalizer(() => server.closeInput)
  const connection = yield* McpConnection.make(name, server)
  const described = yield* introduce(connection).pipe(
    Effect.mapError((error) =>
      failed(name, argv, error._tag === "McpError" ? error.message : `its list of tools has no known form`)
    ),
    Effect.timeoutOrElse({
      duration: START_LIMIT,
      orElse: () => Effect.fail(failed(name, argv, `it has not come up within ${START_LIMIT}`))
    })
  )
  const voice = Object.hasOwn(spec.mcp, name)
  const hints = voice || config.trustHints === true
  return described.map((one) => toolOf(name, connection, one, { hints, voice }))
})

/** Each name once: of two that became the same the first stays. */
const distinct = (tools: ReadonlyArray<Tool>): ReadonlyArray<Tool> => [
  ...new Map(tools.toReversed().map((tool) => [tool.name, tool])).values()
]

/** All servers at once; they live as long as the scope. */
export const make = Effect.fnUntraced(function* (
  options: McpOptions
): Effect.fn.Return<ReadonlyArray<Tool>, BackendError, Scope.Scope | ProcessTree | Reaper> {
  const lists = yield* Effect.forEach(
    Object.entries(options.servers),
    ([name, config]) => serve(name, config, options),
    { concurrency: "unbounded" }
  )
  return distinct(lists.flat()).toReversed()
})
