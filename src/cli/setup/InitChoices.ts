/** InitChoices: what `agentd init` may be told by flags; apart, since each start of the program reads it. */

/** Coding agents, and a model behind an API, as agentd's own agent. */
export const AGENTS = ["claude", "codex", "opencode", "gemini", "model"] as const
export type AgentId = (typeof AGENTS)[number]

export const ROLES = ["builder", "reviewer", "planner"] as const
export type Role = (typeof ROLES)[number]
