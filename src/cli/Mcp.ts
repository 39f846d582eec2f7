/**
 * `agentd mcp`: the server of the Model Context Protocol that each run of a managed
 * agent is given: by it the agent reads its inbox, messages others, reports, asks. It calls the
 * daemon on the socket that AGENTD_SOCKET names: the run's own, or the control socket where a run has none.
 *
 * Guarantees: it offers what the agent's config allows; the daemon decides each
 * call anew; a daemon that is away is waited for, 30 s or as AGENTD_PATIENCE says (ms), since its
 * runs outlive it; then it is an answer, not an end: it may be back for the
 * next call. Nothing but the protocol is written to standard output.
 */
import { Console, Effect, Option, Schedule, Stdio } from "effect"
import { call } from "../rpc/ControlClient.ts"
import { probe } from "../rpc/Endpoint.ts"
import { VERSION } from "../rpc/Version.ts"
import * as ChannelTools from "./ChannelTools.ts"
import { ExitCode } from "./ExitCode.ts"
import { VerbFailed } from "./Failure.ts"
import { Entry } from "./Invocation.ts"
import * as JsonRpc from "./JsonRpc.ts"
import * as McpTools from "./McpTools.ts"
import type { Speaker, Tool } from "./McpTools.ts"

/** Newest first: what we offer to who asks for one that we do not know. */
const VERSIONS = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]

/** ms that a daemon is waited for. */
const PATIENCE = 30_000

const INSTRUCTIONS =
  "You are an agent that agentd keeps running, perhaps beside others. These tools are how you talk to them and to the people who run you."

const byHand = new VerbFailed({
  message: "agentd mcp is for agents: the daemon gives it to each run, with AGENTD_RUN and AGENTD_SOCKET set.",
  remedy: "To talk to an agent: agentd send AGENT TEXT, or agentd attach AGENT.",
  exitCode: ExitCode.usage
})

/** The tools that the agent may use; all of them where that cannot be asked now, since each call is decided when it comes. */
const offered = ({ runId, socket }: Speaker): Effect.Effect<ReadonlyArray<Tool>> =>
  call(socket, (client) => client.Voice({ runId })).pipe(
    Effect.map(({ may }) => tools.filter(({ voice }) => may.includes(voice))),
    Effect.orElseSucceed(() => tools)
  )

const tools: ReadonlyArray<Tool> = [...McpTools.tools, ...ChannelTools.tools]

const describe = ({ description, input, name, readOnly }: Tool) => ({
  name,
  description,
  inputSchema: input,
  annotations: { readOnlyHint: readOnly, destructiveHint: false, openWorldHint: false }
})

const said = (text: string, isError: boolean) => ({ content: [{ type: "text", text }], isError })

const LOOK = "100 millis"

/** Returns when somebody listens, or when that has lasted too long. */
const awaited = (socket: string, patience: number): Effect.Effect<void> =>
  probe(socket).pipe(
    Effect.repeat({ until: (found) => found === "live" || found === "forbidden", schedule: Schedule.spaced(LOOK) }),
    Effect.timeoutOption(patience),
    Effect.asVoid
  )

const callTool = (speaker: Speaker, params: JsonRpc.Request["params"]) => {
  const { arguments: args, name } = params
  const found = tools.find((tool) => tool.name === name)
  if (found === undefined) {
    const known = tools.map((tool) => tool.name).join(", ")
    return Effect.fail({
      code: JsonRpc.CODES.params,
      message: `There is no tool ${JSON.stringify(name)}. There are: ${known}.`
    })
  }
  return found.run(speaker, args ?? {}).pipe(
    Effect.map((text) => said(text, false)),
    Effect.catch(({ message, remedy }) => Effect.succeed(said(`${message}\n→ ${remedy}`, true)))
  )
}

const handler =
  (speaker: Speaker, patience: number): JsonRpc.Handler<never> =>
  ({ method, params }) => {
    switch (method) {
      case "initialize": {
        const { protocolVersion } = params
        const known = VERSIONS.find((version) => version === protocolVersion)
        return Effect.succeed({
          protocolVersion: known ?? VERSIONS[0],
          capabilities: { tools: {} },
          serverInfo: { name: "agentd", version: VERSION },
          instructions: INSTRUCTIONS
        })
      }
      case "ping":
        return Effect.succeed({})
      case "tools/list":
        return awaited(speaker.socket, patience).pipe(
          Effect.andThen(offered(speaker)),
          Effect.map((all) => ({ tools: all.map(describe) }))
        )
      case "tools/call":
        return Effect.andThen(awaited(speaker.socket, patience), callTool(speaker, params))
      default:
        return Effect.fail({ code: JsonRpc.CODES.method, message: `There is no method ${JSON.stringify(method)}.` })
    }
  }

export const run = Effect.fnUntraced(function* () {
  const { env } = yield* Entry
  // a server that agentd starts for a run is marked as a part of it: `<run>+mcp-agentd`
  const runId = Option.fromNullishOr(env["AGENTD_RUN"]?.split("+")[0]).pipe(Option.filter((text) => text !== ""))
  const socket = Option.fromNullishOr(env["AGENTD_SOCKET"]).pipe(Option.filter((text) => text !== ""))
  if (Option.isNone(runId) || Option.isNone(socket)) return yield* byHand
  const { stdin } = yield* Stdio.Stdio
  const said = Number(env["AGENTD_PATIENCE"] ?? PATIENCE)
  const patience = said >= 0 ? said : PATIENCE
  yield* JsonRpc.serve(
    stdin,
    (line) => Console.log(line),
    handler({ runId: runId.value, socket: socket.value }, patience)
  )
})
