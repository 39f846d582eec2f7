/** Leave: the answer of a person who has seen the whole call that they approve. */
import type { AgentScope } from "../../../src/agents/actors/AgentScope.ts"

/** Names what is there to be seen; nothing where nothing is. */
export const leave = (of: Pick<AgentScope, "asked">, callId: string) => {
  const asked = of.asked(callId)
  return { behavior: "allow", reason: "", ...("hash" in asked ? { hash: asked.hash } : {}) } as const
}
