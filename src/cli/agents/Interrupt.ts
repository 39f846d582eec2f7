/** `agentd interrupt AGENT…`: ends an agent's turn, or its run if its backend has no turns. */
import { act, oneOf, send } from "../parse/DeclaredVerb.ts"
import { agents, labels, nobody, yes } from "../parse/Names.ts"

export const interrupt = act({
  path: ["interrupt"],
  description: "End an agent's turn, or its run if it has no turns; counts no error",
  examples: [
    { command: "agentd interrupt builder", description: "It then reads its inbox again" },
    { command: "agentd interrupt 'shop/*'", description: "All matching agents: lists them, and asks" }
  ],
  args: { names: agents, labels, yes },
  several: { kind: "agent", ends: () => "interrupts", changes: () => "interrupts" },
  wrong: (input) => nobody(input, "interrupt"),
  rpc: ({ names }, caller) => send("Interrupt", { name: oneOf(names), caller })
})
