/**
 * ChannelTools: the tools of a managed agent for a channel in `agentd mcp`, while it has
 * the floor. Each has the same effect as the agent's commands in plain text.
 */
import { Effect, Schema } from "effect"
import { type Tool, tool } from "./McpTools.ts"

const channel = Schema.optionalKey(
  Schema.String.annotate({ description: "The channel's name. Default: the one whose floor you have." })
)

const post = tool({
  name: "post",
  voice: "post",
  description:
    "Post in the channel whose floor you have, while you go on working. Your answer at the end of your turn is posted by itself.",
  schema: Schema.Struct({ text: Schema.String.annotate({ description: "The text of the message." }), channel }),
  run: (client, runId, { channel = "", text }) =>
    Effect.map(client.VoiceChannel({ runId, channel, utterance: { _tag: "Post", text } }), (done) => done.message)
})

const wait = tool({
  name: "wait",
  voice: "post",
  description:
    "Give the floor to the others when your turn ends, and get it back when what you wait for is there. End your turn after it.",
  schema: Schema.Struct({
    reason: Schema.String.annotate({ description: "What you wait for." }),
    until: Schema.optionalKey(
      Schema.Literals(["message", "person"]).annotate({
        description: "What ends the wait: any message in the channel (the default), or a person's."
      })
    ),
    seconds: Schema.optionalKey(
      Schema.Finite.check(Schema.isBetween({ minimum: 1, maximum: 86_400 })).annotate({
        description: "Instead of until: so many seconds from the end of your turn."
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
  description: "Say that your turn in the channel is over. End your turn after it: the next one gets the floor then.",
  schema: Schema.Struct({ channel }),
  run: (client, runId, { channel = "" }) =>
    Effect.map(client.VoiceChannel({ runId, channel, utterance: { _tag: "TurnComplete" } }), (done) => done.message)
})

export const tools: ReadonlyArray<Tool> = [post, wait, complete]
