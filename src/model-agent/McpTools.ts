/**
 * McpTools: the tools of MCP servers, with names of the form `server__tool`.
 *
 * The servers are programs that a config names. Each runs as long as its run, without a sandbox, with its own
 * environment variables and those of the daemon that ChildEnvironment allows. Other servers are reached by HTTP. Calls
 * to servers need the agent's approvals and count as calls with side effects. A server's own read-only hints count only
 * if the config trusts them, or if agentd provides the server.
 *
 * Guarantees: if a server is lost (McpServer), its tools are removed until it is back. A call that the lost server had
 * received ends with an error, and no call waits until the server is back.
 */
import { Effect, type FileSystem, Schema, type Scope } from "effect"
import * as HeadTail from "../runs/HeadTail.ts"
import type { ProcessTree } from "../runs/process/ProcessTree.ts"
import type { Reaper } from "../runs/process/Reaper.ts"
import * as ToolSchema from "../runs/ToolSchema.ts"
import * as McpServer from "./McpServer.ts"
import { isObject } from "./Provider.ts"
import { MAX_HEAD, MAX_TAIL, type Tool, type ToolOutcome } from "./Tool.ts"

export interface McpOptions extends McpServer.ServerOptions {
  readonly servers: { readonly [name: string]: McpServer.Server }
}

/** Maximum length of a tool's description, characters. Limited because each request repeats it. */
const MAX_DESCRIPTION = 4_000
/** Maximum length of a tool name that all providers accept, characters. */
const MAX_NAME = 64

const Called = Schema.Struct({
  content: Schema.optionalKey(Schema.Array(Schema.Record(Schema.String, Schema.Unknown))),
  structuredContent: Schema.optionalKey(Schema.Unknown),
  isError: Schema.optionalKey(Schema.NullOr(Schema.Boolean))
})

const decodeCalled = Schema.decodeUnknownEffect(Called)

const text = (value: unknown): string => (typeof value === "string" ? value : "")

/** Converts a block of a server's answer to text for the model. */
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

const call = (live: McpServer.Live, server: string, tool: McpServer.Described, input: unknown, scope: Scope.Scope) =>
  live.connection.call(tool, isObject(input) ? input : {}).pipe(
    // the call was abandoned, so the server may have hung
    Effect.onInterrupt(() => Effect.forkIn(McpServer.check(live), scope)),
    Effect.flatMap(decodeCalled),
    Effect.map(outcomeOf),
    Effect.catch((error) => {
      const advice =
        error._tag === "McpError" && error.lost
          ? "its tools are lost until it is back: go on without them, or try later"
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

/**
 * Checks that all required fields exist and that each field has the right type. The server checks the rest of the
 * schema.
 */
export const wrongIn = (
  { inputSchema }: Pick<McpServer.Described, "inputSchema">,
  given: unknown
): string | undefined => {
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

interface Trust {
  /** True for the server that agentd provides to the run. */
  readonly voice: boolean
  readonly hints: boolean
}

const toolOf = (
  server: string,
  live: McpServer.Live,
  described: McpServer.Described,
  { hints, voice }: Trust,
  scope: Scope.Scope
): Tool => {
  const readOnly = hints && described.annotations?.readOnlyHint === true
  return {
    name: `${server}__${described.name}`.replaceAll(/[^A-Za-z0-9_-]/g, "_").slice(0, MAX_NAME),
    description: (described.description ?? "").slice(0, MAX_DESCRIPTION),
    inputSchema: ToolSchema.plain(described.inputSchema),
    readOnly,
    voice,
    parallel: readOnly,
    wrong: (input) => wrongIn(described, input),
    run: (input) => call(live, server, described, input, scope)
  }
}

/** If several tools get the same name, keeps the first one. */
const distinct = (tools: ReadonlyArray<Tool>): ReadonlyArray<Tool> => [
  ...new Map(tools.toReversed().map((tool) => [tool.name, tool])).values()
]

/** Starts all servers at once. They live as long as the scope. The returned function returns the current tools. */
export const make = Effect.fnUntraced(function* (
  options: McpOptions
): Effect.fn.Return<() => ReadonlyArray<Tool>, never, FileSystem.FileSystem | Scope.Scope | ProcessTree | Reaper> {
  const scope = yield* Effect.scope
  const seats = yield* Effect.forEach(
    Object.entries(options.servers),
    Effect.fnUntraced(function* ([name, config]) {
      const voice = Object.hasOwn(options.spec.mcp, name)
      const trust: Trust = { voice, hints: voice || config.trustHints === true }
      const live = yield* McpServer.keep(name, config, options)
      return { live, made: (now: McpServer.Live) => now.tools.map((one) => toolOf(name, now, one, trust, scope)) }
    }),
    { concurrency: "unbounded" }
  )
  const known = new WeakMap<McpServer.Live, ReadonlyArray<Tool>>()
  return () => {
    const all = seats.flatMap(({ live, made }) => {
      const now = live()
      if (now === undefined) return []
      const tools = known.get(now) ?? made(now)
      known.set(now, tools)
      return tools
    })
    return distinct(all).toReversed()
  }
})
