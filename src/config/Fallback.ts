/**
 * Fallback: helpers for an agent's own backend and its fallback backends. Pure.
 */
import type { AgentConfig } from "./AgentConfig.ts"
import type { BackendConfig } from "./BackendConfig.ts"

/**
 * True if a run with one backend can continue a conversation of the other, because both store conversations in the same
 * location.
 */
export const sharesMemory = (one: BackendConfig, other: BackendConfig): boolean => {
  if (one.type === "claude" && other.type === "claude")
    return one.env["CLAUDE_CONFIG_DIR"] === other.env["CLAUDE_CONFIG_DIR"] && one.sandbox === other.sandbox
  if (one.type === "codex" && other.type === "codex")
    return one.env["CODEX_HOME"] === other.env["CODEX_HOME"] && one.sandbox === other.sandbox
  return one.type === "model" && other.type === "model"
}

/** An agent together with one of its backends. */
export interface One {
  readonly agent: string
  /** Display name of agent and backend, such as "builder" or "builder (fallback 1)". */
  readonly label: string
  readonly config: AgentConfig
}

/** The display name of an agent with its backend at index `place`. Index 0 is the agent's own backend. */
export const labelOf = (agent: string, place: number): string => (place === 0 ? agent : `${agent} (fallback ${place})`)

/** Pairs each agent with its own backend, and with each of its fallbacks. */
export const each = (agents: { readonly [name: string]: AgentConfig }): ReadonlyArray<One> =>
  Object.entries(agents).flatMap(([agent, config]) =>
    [config.backend, ...config.fallback].map((backend, place) => ({
      agent,
      label: labelOf(agent, place),
      config: { ...config, backend, fallback: [] }
    }))
  )
