/**
 * ModelSettings: what the daemon tells the model agent in one environment variable, and how the program reads it.
 *
 * Guarantees: the settings contain no key of the provider and no token of an MCP server.
 */
import { Schema } from "effect"
import { ModelBackend } from "../../config/BackendConfig.ts"

/** The variable's name. No program that the agent starts gets it. */
export const VARIABLE = "AGENTD_MODEL_AGENT"

export const ModelSettings = Schema.Struct({
  config: ModelBackend,
  /** The agent's name. */
  agent: Schema.String,
  /** How long a tool call may run, ms. */
  toolTimeout: Schema.optionalKey(Schema.Finite),
  /** Variables that agentd sets for the run's programs. */
  env: Schema.Record(Schema.String, Schema.String),
  /** Folders that commands in the sandbox see at another place. */
  mounts: Schema.optionalKey(
    Schema.Array(Schema.Struct({ source: Schema.String, target: Schema.String, writable: Schema.Boolean }))
  ),
  store: Schema.String,
  /** Paths that no tool may see. */
  hidden: Schema.Array(Schema.String),
  /** Folder of the conversations. */
  sessions: Schema.optionalKey(Schema.String)
})
export type ModelSettings = typeof ModelSettings.Type
