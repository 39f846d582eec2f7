/**
 * InitChoices: the values that flags of `agentd init` can have. They are in a separate file, because it is loaded at
 * each start of the program.
 */

/** Ids of the coding agents. "model" stands for a model behind an API, with agentd's own agent. */
export const AGENTS = ["claude", "codex", "opencode", "gemini", "model"] as const
export type AgentId = (typeof AGENTS)[number]

export const ROLES = ["builder", "reviewer", "planner"] as const
export type Role = (typeof ROLES)[number]
