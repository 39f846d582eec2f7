/**
 * McpTools: the tools of a managed agent in `agentd mcp`: each has a description for the agent's
 * model, and the call to the daemon.
 *
 * Guarantees: invalid input is refused with the name of the field before the daemon is called;
 * every refusal is a text that says what to do next.
 */
import { words } from "../../runs/FileWords.ts"
import { Effect, Random, Result, Schema } from "effect"
import * as Frame from "../../domain/Frame.ts"
import * as ToolSchema from "../../runs/ToolSchema.ts"
import { call, type Client, type DaemonUnreachable } from "../../api/rpc/ControlClient.ts"
import type { Voice } from "../../config/AgentConfig.ts"
import type { CommandRefused } from "../../domain/Messages.ts"
import { Report, SpawnRequest } from "../../domain/Messages.ts"
import type { StorageError } from "../../core/event-log/EventLog.ts"

/** The agent whose tools these are. */
export interface Speaker {
  readonly socket: string
  readonly runId: string
}

type Refusal = CommandRefused | StorageError | DaemonUnreachable

export interface Tool {
  readonly name: string
  /** The permission that the agent's `may` must contain. */
  readonly voice: Voice
  readonly description: string
  readonly readOnly: boolean
  /** JSON Schema. */
  readonly input: object
  readonly run: (speaker: Speaker, args: unknown) => Effect.Effect<string, Refusal | BadInput>
}

export class BadInput extends Schema.TaggedError<BadInput>()("BadInput", {
  message: Schema.String,
  remedy: Schema.String
}) {}

type Failed = Effect.Error<ReturnType<Client["VoiceAsk"]>>

/** Makes a tool from the schema of its input and its call. */
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
        const message = `The arguments of ${spec.name} do not fit: ${input.failure.message.replaceAll(/(?<!\s)\s*\n\s*/g, " ")}`
        return Effect.fail(new BadInput({ message, remedy: "Call it again as its input schema says." }))
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
    "Read your inbox: messages that wait for you, and those that your present task carries already. Reading removes nothing.",
  readOnly: true,
  schema: Schema.Struct({}),
  run: (client, runId) =>
    Effect.gen(function* () {
      const { messages, more } = yield* client.VoiceInbox({ runId })
      if (messages.length === 0) return "Your inbox is empty."
      const told = messages.map(({ at, carried, files = [], from, messageId, text }): Frame.Framed => ({
        about: `from ${Frame.sender(from)} at ${new Date(at).toISOString()} (${messageId}${carried ? "; your present task" : ""})${files.length === 0 ? "" : ` with ${files.map(words).join("; ")}`}`,
        text
      }))
      const drawn = `${yield* Random.nextInt}/${yield* Random.nextInt}/${yield* Random.nextInt}`
      return [...Frame.framed(drawn, told), ...(more === 0 ? [] : [`… and ${more} more after these.`])].join("\n\n")
    })
})

const message = tool({
  name: "message",
  voice: "message",
  description:
    "Send a message to another agent of your project. It reads it in a turn of its own; an answer comes as a message to you.",
  schema: Schema.Struct({ agent: text("The other agent's name."), text: text("What it is to know or to do.") }),
  run: (client, runId, { agent, text }) =>
    Effect.map(client.VoiceMessage({ runId, agent, text }), (done) => done.message)
})

const report = tool({
  name: "report",
  voice: "report",
  description:
    "Report how the task that you were given ended: done, failed or blocked, with what proves it. Call it once, when you are through.",
  schema: Schema.Struct({
    status: Report.fields.status.annotate({ description: "done, failed, or blocked (you cannot go on by yourself)." }),
    summary: text("What was done, or what is in the way, in a few sentences."),
    evidence: Schema.optionalKey(
      Schema.Array(Schema.String).annotate({ description: "Commits, commands with their output, paths." })
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
    "Ask a person something that only a person can decide. The answer comes later, as a message: go on with what does not depend on it, or end your turn.",
  schema: Schema.Struct({ question: text("The question, with all that is needed to answer it.") }),
  run: (client, runId, { question }) => Effect.map(client.VoiceAsk({ runId, question }), (done) => done.message)
})

const spawn = tool({
  name: "spawn",
  voice: "spawn",
  description:
    "Start a sub-agent with a task of its own. It ends with you; what it reports, or answers without a report, comes to you as a message.",
  schema: Schema.Struct({
    name: SpawnRequest.fields.name.annotate({
      description: "What it is called: lower-case letters, digits, '.', '_' and '-'."
    }),
    task: text("Its first message: all that it needs to know."),
    role: Schema.optionalKey(text("What it is, in a few words. Default: as yours.")),
    instructions: Schema.optionalKey(text("What goes into each of its prompts. Default: as yours."))
  }),
  run: (client, runId, request) => Effect.map(client.VoiceSpawn({ runId, request }), (done) => done.message)
})

export const tools: ReadonlyArray<Tool> = [
  inbox, // reads waiting messages
  message, // to another agent
  report, // the result of the task
  ask, // a person
  spawn // a sub-agent
]
