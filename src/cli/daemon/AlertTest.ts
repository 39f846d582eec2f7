/** `agentd alert test [CHANNEL]`: sends a test mail, or a message over a channel, the same way as a real alert. */
import { act, maybeWord, send } from "../parse/DeclaredVerb.ts"

export const alertTest = act({
  path: ["alert", "test"],
  description: "Send a test mail, or a message by a channel, and show the server's answer",
  examples: [
    { command: "agentd alert test", description: "A mail, sent as real alerts are sent" },
    { command: "agentd alert test phone", description: "By a channel; try it once after you set it up" }
  ],
  args: { name: maybeWord("Name of the channel in the config; none: the mail", "NAME") },
  rpc: ({ name }) => (name === undefined ? send("AlertTest", null) : send("NotifyTest", { name }))
})
