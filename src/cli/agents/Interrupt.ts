/** `agentd interrupt AGENT…`: ends an agent's current turn, or its run if its backend has no turns. */
import { act, oneOf, send } from "../parse/DeclaredVerb.ts"
import { agents, labels, nobody, yes } from "../parse/Names.ts"

export const interrupt = act({
  path: ["interrupt"],
  description: "End an agent's current turn, or its run if its backend has no turns; does not count as an error",
  examples: [
    {
      command: "agentd interrupt builder",
      description: "End the turn of builder, which then continues with its inbox"
    },
    { command: "agentd interrupt 'shop/*'", description: "Interrupt all agents that match; list them and ask first" }
  ],
  args: { names: agents, labels, yes },
  several: { kind: "agent", ends: () => "interrupts", changes: () => "interrupts" },
  wrong: (input) => nobody(input, "interrupt"),
  rpc: ({ names }, caller) => send("Interrupt", { name: oneOf(names), caller })
})
