/** `agentd interrupt AGENT`: ends its turn, or its run where there are no turns. */
import { declare, said, send, word } from "./DeclaredVerb.ts"

export const interrupt = declare({
  path: ["interrupt"],
  description: "End an agent's turn, or its run where there are no turns; counts no error",
  examples: [{ command: "agentd interrupt builder", description: "Let it take up its inbox anew" }],
  args: { agent: word("Its name in this project, or project/agent") },
  rpc: ({ agent }, caller) => send("Interrupt", { name: agent, caller }),
  view: said,
  quick: true
})
