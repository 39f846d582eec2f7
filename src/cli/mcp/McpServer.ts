/**
 * McpServer: a server of the Model Context Protocol on standard input and output, for any set of tools. The protocol,
 * from the revision of 2024 to that of 2026, is done by Effect's McpServer.
 *
 * Guarantees: a rejected call gets a result with a remedy, and the server continues. A call that the client cancels is
 * interrupted. The number of calls in progress is limited. Only protocol messages are written to standard output; the
 * log goes to standard error. The server ends when its input has ended and the last answer is written.
 */
import { Cause, Console, Context, Effect, Exit, Fiber, Layer, Logger, Option, Semaphore, Stdio } from "effect"
import { McpProtocol, McpSchema, McpServer } from "effect/ai"
import { VERSION } from "../../api/rpc/Version.ts"
import * as McpInput from "./McpInput.ts"

/** Supported revisions, newest first. */
const REVISIONS = [
  McpProtocol.v2026_07_28,
  McpProtocol.v2025_11_25,
  McpProtocol.v2025_06_18,
  McpProtocol.v2025_03_26,
  McpProtocol.v2024_11_05
] as const

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

const described = ({ description, input, name, readOnly }: Tool) =>
  McpSchema.Tool.make({
    name,
    description,
    inputSchema: { type: "object", ...input },
    annotations: McpSchema.ToolAnnotations.make({
      readOnlyHint: readOnly,
      destructiveHint: false,
      openWorldHint: false
    })
  })

const said = (text: string, isError: boolean) =>
  McpSchema.CallToolResult.make({ content: [McpSchema.TextContent.make({ type: "text", text })], isError })

/** Maximum number of calls that are carried out at once, and of those with the ones that wait for their turn. */
const [AT_ONCE, PENDING] = [16, 1000]

const tooMany = said(`${PENDING} calls are in progress already.\n→ Call the tool again when they have ended.`, true)

const registered = ({ awaited, tools }: Server) => {
  const [atOnce, pending] = [Semaphore.makeUnsafe(AT_ONCE), Semaphore.makeUnsafe(PENDING)]
  return Layer.effectDiscard(
    Effect.flatMap(McpServer.McpServer, (server) =>
      Effect.forEach(
        tools,
        (tool) =>
          server.addTool({
            tool: described(tool),
            annotations: Context.empty(),
            handle: (args: unknown) =>
              awaited.pipe(
                Effect.andThen(tool.run(args ?? {})),
                Effect.map((text) => said(text, false)),
                Effect.catch(({ message, remedy }) => Effect.succeed(said(`${message}\n→ ${remedy}`, true))),
                atOnce.withPermit,
                pending.withPermitsIfAvailable(1),
                Effect.map(Option.getOrElse(() => tooMany))
              )
          }),
        { discard: true }
      )
    )
  )
}

/** Hides the tools that are not offered from lists. A call of one gets the daemon's answer. */
const visible = ({ awaited, offered }: Server) => {
  // a list asks for each tool whether it is visible; the daemon is asked once for all of them
  const lists = new WeakMap<object, Effect.Effect<ReadonlyArray<Tool>>>()
  const offeredIn = (list: object) =>
    Effect.suspend(() => {
      const known = lists.get(list)
      if (known !== undefined) return known
      return Effect.flatMap(Effect.cached(Effect.andThen(awaited, offered)), (all) => {
        lists.set(list, all)
        return all
      })
    })
  return McpServer.visibility(
    ({ method, requestContext, target }) =>
      method === "tools/list"
        ? Effect.map(offeredIn(requestContext), (all) => all.some(({ name }) => name === target))
        : Effect.succeed(true),
    { global: true }
  )
}

/** Runs a server on standard input and output until the input ends. */
export const serve = Effect.fnUntraced(function* (server: Server) {
  const stdio = yield* Stdio.Stdio
  const names = server.tools.map(({ name }) => name)
  const input = McpInput.checked(stdio.stdin, names, (line) => Console.log(line))
  const serving = Layer.launch(
    McpServer.layerStdio({
      name: "agentd",
      version: VERSION,
      instructions: server.instructions,
      protocols: REVISIONS,
      registrations: Layer.merge(registered(server), visible(server))
    }).pipe(
      Layer.provide(Layer.succeed(Stdio.Stdio)({ ...stdio, stdin: input })),
      Layer.provide(Logger.layer([Logger.withConsoleError(Logger.formatSimple)]))
    )
  )
  // the protocol ends its fiber by an interruption when its input has ended
  const exit = yield* Fiber.await(yield* Effect.forkChild(serving))
  if (Exit.isFailure(exit) && !Cause.hasInterruptsOnly(exit.cause)) return yield* exit
})
