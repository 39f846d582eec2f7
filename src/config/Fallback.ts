/**
 * Fallback: what an agent's fallbacks have in common with its own backend. Pure.
 */
import type { AgentConfig } from "./AgentConfig.ts"
import type { BackendConfig } from "./BackendConfig.ts"

/** Whether a run of one goes on with the conversation of the other: where it lies is theirs both. */
export const sharesMemory = (one: BackendConfig, other: BackendConfig): boolean => {
  if (one.type === "claude" && other.type === "claude")
    return one.env["CLAUDE_CONFIG_DIR"] === other.env["CLAUDE_CONFIG_DIR"] && one.sandbox === other.sandbox
  return one.type === "model" && other.type === "model"
}

/** An agent as it is with one of its backends. */
export interface One {
  readonly agent: string
  /** "builder", "builder (fallback 1)". */
  readonly label: string
  readonly config: AgentConfig
}

/** The agent's name with the backend at this place: 0 is its own. */
export const labelOf = (agent: string, place: number): string => (place === 0 ? agent : `${agent} (fallback ${place})`)

/** Each agent with its own backend, and with each that it falls back to. */
export const each = (agents: { readonly [name: string]: AgentConfig }): ReadonlyArray<One> =>
  Object.entries(agents).flatMap(([agent, config]) =>
    [config.backend, ...config.fallback].map((backend, place) => ({
      agent,
      label: labelOf(agent, place),
      config: { ...config, backend, fallback: [] }
    }))
  )
