/** InitChoices: values of the flags of `agentd init`. A separate file, because each start of the program loads it. */

/** Ids of coding agents. "model" is a model behind an API, run by agentd's own agent. */
export const AGENTS = ["claude", "codex", "opencode", "gemini", "model"] as const
export type AgentId = (typeof AGENTS)[number]

export const ROLES = ["builder", "reviewer", "planner"] as const
export type Role = (typeof ROLES)[number]
