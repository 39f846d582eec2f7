/**
 * ChannelTools: the tools in `agentd mcp` with which a managed agent uses a channel while it has the floor. Each tool
 * has the same effect as a command that the agent writes in its text.
 */
import { Effect, Schema } from "effect"
import { type Tool, tool } from "./McpTools.ts"

const channel = Schema.optionalKey(
  Schema.String.annotate({ description: "Name of the channel. Default: the channel in which you have the floor." })
)

const post = tool({
  name: "post",
  voice: "post",
  description:
    "Post a message in the channel in which you have the floor, while you continue to work. Your answer at the end of your turn is posted automatically.",
  schema: Schema.Struct({ text: Schema.String.annotate({ description: "The text of the message." }), channel }),
  run: (client, runId, { channel = "", text }) =>
    Effect.map(client.VoiceChannel({ runId, channel, utterance: { _tag: "Post", text } }), (done) => done.message)
})

const wait = tool({
  name: "wait",
  voice: "post",
  description:
    "Pass the floor to the other agents when your turn ends, and get it back when the wait is over. End your turn after this call.",
  schema: Schema.Struct({
    reason: Schema.String.annotate({ description: "Description of what you wait for." }),
    until: Schema.optionalKey(
      Schema.Literals(["message", "person"]).annotate({
        description:
          "Event that ends the wait: message: any message in the channel (the default); person: a message of a person."
      })
    ),
    seconds: Schema.optionalKey(
      Schema.Finite.check(Schema.isBetween({ minimum: 1, maximum: 86_400 })).annotate({
        description: "Number of seconds to wait after your turn ends. Use this or `until`, not both."
      })
    ),
    channel
  }),
  run: (client, runId, { channel = "", reason, seconds, until = "message" }) =>
    Effect.map(
      client.VoiceChannel({ runId, channel, utterance: { _tag: "Wait", reason, until: seconds ?? until } }),
      (done) => done.message
    )
})

const complete = tool({
  name: "turn_complete",
  voice: "post",
  description:
    "Say that your turn in the channel is over. End your turn after this call: the next agent then gets the floor.",
  schema: Schema.Struct({ channel }),
  run: (client, runId, { channel = "" }) =>
    Effect.map(client.VoiceChannel({ runId, channel, utterance: { _tag: "TurnComplete" } }), (done) => done.message)
})

export const tools: ReadonlyArray<Tool> = [post, wait, complete]
