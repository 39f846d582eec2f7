/**
 * McpServer: a server for the Model Context Protocol, with one message per line, for any set of tools.
 *
 * Guarantees: a rejected call gets a result with a remedy, and the server continues. Only protocol messages are written
 * to the output.
 */
import { Console, Effect, Stdio } from "effect"
import { VERSION } from "../../api/rpc/Version.ts"
import * as JsonRpc from "./JsonRpc.ts"

/** Supported protocol versions, newest first. A client that requests an unknown version is offered the newest one. */
const VERSIONS = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]

export interface Tool {
  readonly name: string
  readonly description: string
  readonly readOnly: boolean
  /** JSON Schema of the tool's arguments. */
  readonly input: object
  readonly run: (args: unknown) => Effect.Effect<string, { readonly message: string; readonly remedy: string }>
}

export interface Server {
  readonly instructions: string
  readonly tools: ReadonlyArray<Tool>
  readonly offered: Effect.Effect<ReadonlyArray<Tool>>
  /** Waits until the daemon is reachable that the tools need, at most for a limited time. */
  readonly awaited: Effect.Effect<void>
}

const describe = ({ description, input, name, readOnly }: Tool) => ({
  name,
  description,
  inputSchema: input,
  annotations: { readOnlyHint: readOnly, destructiveHint: false, openWorldHint: false }
})

const said = (text: string, isError: boolean) => ({ content: [{ type: "text", text }], isError })

const callTool = (tools: ReadonlyArray<Tool>, { arguments: args, name }: JsonRpc.Request["params"]) => {
  const found = tools.find((tool) => tool.name === name)
  if (found === undefined) {
    const known = tools.map((tool) => tool.name).join(", ")
    return Effect.fail({
      code: JsonRpc.CODES.params,
      message: `There is no tool ${JSON.stringify(name)}. Known tools: ${known}.`
    })
  }
  return found.run(args ?? {}).pipe(
    Effect.map((text) => said(text, false)),
    Effect.catch(({ message, remedy }) => Effect.succeed(said(`${message}\n→ ${remedy}`, true)))
  )
}

const handler =
  ({ awaited, instructions, offered, tools }: Server): JsonRpc.Handler<never> =>
  ({ method, params }) => {
    switch (method) {
      case "initialize": {
        const { protocolVersion } = params
        const known = VERSIONS.find((version) => version === protocolVersion)
        return Effect.succeed({
          protocolVersion: known ?? VERSIONS[0],
          capabilities: { tools: {} },
          serverInfo: { name: "agentd", version: VERSION },
          instructions
        })
      }
      case "ping":
        return Effect.succeed({})
      case "tools/list":
        return awaited.pipe(
          Effect.andThen(offered),
          Effect.map((all) => ({ tools: all.map(describe) }))
        )
      case "tools/call":
        return Effect.andThen(awaited, callTool(tools, params))
      default:
        return Effect.fail({ code: JsonRpc.CODES.method, message: `There is no method ${JSON.stringify(method)}.` })
    }
  }

/** Runs a server on standard input and output until the input ends. */
export const serve = (server: Server) =>
  Effect.flatMap(Stdio.Stdio, ({ stdin }) => JsonRpc.serve(stdin, (line) => Console.log(line), handler(server)))
