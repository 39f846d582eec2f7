/**
 * McpTools: the tools in `agentd mcp` for a managed agent. Each tool has a description for the agent's model, and a
 * call to the daemon.
 *
 * Guarantees: invalid input is rejected with the name of the invalid field before the daemon is called. Every error is
 * a message that says what to do next.
 */
import { words } from "../../runs/FileDescription.ts"
import { Effect, Random, Result, Schema } from "effect"
import * as MessageFrame from "../../domain/MessageFrame.ts"
import * as ToolSchema from "../../runs/ToolSchema.ts"
import { call, type Client, type DaemonUnreachable } from "../../api/rpc/ControlClient.ts"
import type { Voice } from "../../config/AgentConfig.ts"
import type { CommandRefused } from "../../domain/Messages.ts"
import { Report, SpawnRequest } from "../../domain/Messages.ts"
import type { StorageError } from "../../core/event-log/EventLog.ts"

/** The run of the agent that uses the tools, and the socket of its daemon. */
export interface Speaker {
  readonly socket: string
  readonly runId: string
}

type Refusal = CommandRefused | StorageError | DaemonUnreachable

export interface Tool {
  readonly name: string
  /** The permission for the tool; `may` in the agent's config must list it. */
  readonly voice: Voice
  readonly description: string
  readonly readOnly: boolean
  /** JSON Schema of the tool's arguments. */
  readonly input: object
  readonly run: (speaker: Speaker, args: unknown) => Effect.Effect<string, Refusal | BadInput>
}

export class BadInput extends Schema.TaggedError<BadInput>()("BadInput", {
  message: Schema.String,
  remedy: Schema.String
}) {}

type Failed = Effect.Error<ReturnType<Client["VoiceAsk"]>>

export const tool = <A, I>(spec: {
  readonly name: string
  readonly voice: Voice
  readonly description: string
  readonly readOnly?: boolean
  readonly schema: Schema.Codec<A, I>
  readonly run: (client: Client, runId: string, input: A) => Effect.Effect<string, Failed>
}): Tool => {
  const decode = Schema.decodeUnknownResult(spec.schema)
  return {
    name: spec.name,
    voice: spec.voice,
    description: spec.description,
    readOnly: spec.readOnly ?? false,
    input: ToolSchema.of(spec.schema),
    run: ({ runId, socket }, args) => {
      const input = decode(args, { errors: "all" })
      if (Result.isFailure(input)) {
        const message = `The arguments of ${spec.name} are invalid: ${input.failure.message.replaceAll(/(?<!\s)\s*\n\s*/g, " ")}`
        return Effect.fail(
          new BadInput({ message, remedy: "Call the tool again with arguments that match its input schema." })
        )
      }
      return call(socket, (client) => spec.run(client, runId, input.success))
    }
  }
}

const text = (description: string) => Schema.String.annotate({ description })

const inbox = tool({
  name: "inbox",
  voice: "inbox",
  description:
    "Read your inbox: the messages that wait for you, and the messages of your current task. Reading removes nothing.",
  readOnly: true,
  schema: Schema.Struct({}),
  run: (client, runId) =>
    Effect.gen(function* () {
      const { messages, more } = yield* client.VoiceInbox({ runId })
      if (messages.length === 0) return "Your inbox is empty."
      const told = messages.map(({ at, carried, files = [], from, messageId, text }): MessageFrame.Framed => ({
        about: `from ${MessageFrame.sender(from)} at ${new Date(at).toISOString()} (${messageId}${carried ? "; your current task" : ""})${files.length === 0 ? "" : ` with ${files.map(words).join("; ")}`}`,
        text
      }))
      const drawn = `${yield* Random.nextInt}/${yield* Random.nextInt}/${yield* Random.nextInt}`
      return [...MessageFrame.framed(drawn, told), ...(more === 0 ? [] : [`… and ${more} more after these.`])].join(
        "\n\n"
      )
    })
})

const message = tool({
  name: "message",
  voice: "message",
  description:
    "Send a message to another agent of your project. That agent reads it in a separate turn. Its answer comes to you as a message.",
  schema: Schema.Struct({
    agent: text("Name of the other agent."),
    text: text("The text of the message: what the agent must know or do.")
  }),
  run: (client, runId, { agent, text }) =>
    Effect.map(client.VoiceMessage({ runId, agent, text }), (done) => done.message)
})

const report = tool({
  name: "report",
  voice: "report",
  description:
    "Report how your task ended: done, failed or blocked, with evidence. Call this tool once, at the end of your task.",
  schema: Schema.Struct({
    status: Report.fields.status.annotate({
      description: "done, failed, or blocked (you cannot continue by yourself)."
    }),
    summary: text("What you have done, or what prevents you from continuing, in a few sentences."),
    evidence: Schema.optionalKey(
      Schema.Array(Schema.String).annotate({
        description: "Evidence for the result: commits, commands with their output, file paths."
      })
    )
  }),
  run: (client, runId, { evidence, status, summary }) =>
    Effect.map(
      client.VoiceReport({ runId, report: { status, summary, evidence: evidence ?? [] } }),
      (done) => done.message
    )
})

const ask = tool({
  name: "ask_person",
  voice: "ask",
  description:
    "Ask a person a question that only a person can decide. The answer comes later, as a message. Continue with work that does not depend on the answer, or end your turn.",
  schema: Schema.Struct({ question: text("The question, with everything that is needed to answer it.") }),
  run: (client, runId, { question }) => Effect.map(client.VoiceAsk({ runId, question }), (done) => done.message)
})

const spawn = tool({
  name: "spawn",
  voice: "spawn",
  description:
    "Start a sub-agent with its own task. The sub-agent ends when you end. Its report, or its answer if it makes no report, comes to you as a message.",
  schema: Schema.Struct({
    name: SpawnRequest.fields.name.annotate({
      description: "Name of the sub-agent: lower-case letters, digits, '.', '_' and '-'."
    }),
    task: text("The sub-agent's first message: everything that it needs to know."),
    role: Schema.optionalKey(text("Role of the sub-agent, in a few words. Default: your own role.")),
    instructions: Schema.optionalKey(
      text("Text added to each prompt of the sub-agent. Default: your own instructions.")
    )
  }),
  run: (client, runId, request) => Effect.map(client.VoiceSpawn({ runId, request }), (done) => done.message)
})

export const tools: ReadonlyArray<Tool> = [inbox, message, report, ask, spawn]
