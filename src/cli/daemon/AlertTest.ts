/** `agentd alert test`: a test mail down the path that real alerts take. */
import { act, send } from "../parse/DeclaredVerb.ts"

export const alertTest = act({
  path: ["alert", "test"],
  description: "Send a test mail down the path that real alerts take",
  examples: [{ command: "agentd alert test", description: "Do it once after setting up mail" }],
  args: {},
  rpc: () => send("AlertTest", null)
})
