/** `agentd pause|resume [CONVERSATION…]`: lets no turn start in conversations, and lets them go on. */
import { names } from "./Conversation.ts"
import { act, off, oneOf, option, send } from "../parse/DeclaredVerb.ts"

export const pause = act({
  path: ["pause"],
  description: "Let no turn start in a conversation until it is resumed",
  examples: [{ command: 'agentd pause --complete --reason "release"', description: "The conversation of this folder" }],
  args: {
    names,
    reason: option("TEXT", "Why; it is kept in the log"),
    complete: off("Let turns that are under way come to their end; else they are interrupted")
  },
  several: { kind: "conversation" },
  rpc: ({ complete, names, reason }, caller) =>
    send("Pause", { name: oneOf(names), inFlight: complete ? "complete" : "interrupt", reason: reason ?? "", caller })
})

export const resume = act({
  path: ["resume"],
  description: "Go on after a pause; after a suspension with fresh counters and budget",
  examples: [{ command: "agentd resume web", description: "What waited in its inboxes is taken up" }],
  args: { names },
  several: { kind: "conversation" },
  rpc: ({ names }, caller) => send("Resume", { name: oneOf(names), caller })
})
