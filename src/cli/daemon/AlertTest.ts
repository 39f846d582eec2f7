/** `agentd alert test [CHANNEL]`: sends a test mail, or a message over a channel, the same way as a real alert. */
import { act, maybeWord, send } from "../parse/DeclaredVerb.ts"

export const alertTest = act({
  path: ["alert", "test"],
  description: "Send a test mail, or a message by a channel, now, and say what its receiver answered",
  examples: [
    { command: "agentd alert test", description: "A mail down the path that real alerts take" },
    { command: "agentd alert test phone", description: "By a channel; do it once after setting it up" }
  ],
  args: { name: maybeWord("The channel, as the config calls it; none: the mail", "NAME") },
  rpc: ({ name }) => (name === undefined ? send("AlertTest", null) : send("NotifyTest", { name }))
})
