/**
 * `agentd alert test [CHANNEL]`: sends a test mail, or a test message through a notification channel, in the same way
 * as real alerts.
 */
import { act, maybeWord, send } from "../parse/DeclaredVerb.ts"

export const alertTest = act({
  path: ["alert", "test"],
  description: "Send a test mail, or a test message over a channel, and show the server's answer",
  examples: [
    { command: "agentd alert test", description: "Send a test mail in the same way as a real alert" },
    {
      command: "agentd alert test phone",
      description: "Send a test message over the channel phone, to check its setup"
    }
  ],
  args: { name: maybeWord("Name of the channel in the config; default: send a mail", "NAME") },
  rpc: ({ name }) => (name === undefined ? send("AlertTest", null) : send("NotifyTest", { name }))
})
