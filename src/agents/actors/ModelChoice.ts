/**
 * ModelChoice: the model and mode that the user chose for an agent; they override the config. Pure.
 *
 * Guarantees: A choice that the agent cannot use is rejected with an alternative. The user cannot choose rights that
 * only a trusted config grants.
 */
import { Schema } from "effect"
import type { AgentConfig } from "../../config/AgentConfig.ts"
import type { BackendConfig } from "../../config/BackendConfig.ts"
import type { Offer } from "../../runs/AgentOptions.ts"
import { kind, reader } from "../../core/event-log/EventKinds.ts"

export interface ModelChoice {
  /** The model; null: use the model in the config. */
  readonly model: string | null
  readonly mode: string | null
}

export const NONE: ModelChoice = { model: null, mode: null }

const textOrNull = Schema.NullOr(Schema.String)

/** Each rune contains the complete choice, not only the change. */
export const choiceKinds = {
  "agent.chosen": kind(
    Schema.Struct({ agent_id: Schema.String, model: textOrNull, mode: textOrNull, by: Schema.String })
  )
}
export const readChoice = reader(choiceKinds)

/** Modes in which Claude Code asks the user at least as often as the config requires. */
const CLAUDE_MODES = ["default", "acceptEdits", "plan"] as const
type ClaudeMode = (typeof CLAUDE_MODES)[number]

const isClaudeMode = (mode: string): mode is ClaudeMode => CLAUDE_MODES.some((one) => one === mode)

/** The modes that a backend always supports, whatever its agent reports. */
export const modesOf = ({ type }: BackendConfig): ReadonlyArray<Offer> =>
  type === "claude" ? CLAUDE_MODES.map((id) => ({ id, name: id })) : []

/** Names of modes in which an agent does not ask for approval. Only the config can select them. */
const UNASKED = /yolo|bypass|dangerous|dont-?ask|full-?auto|full-?access/i

/** Whether the user can choose the mode without changing the config. */
export const isOffered = ({ type }: BackendConfig, mode: string): boolean => type !== "acp" || !UNASKED.test(mode)

export const words = ({ mode, model }: ModelChoice): string =>
  model === null && mode === null
    ? "as agentd.jsonc says"
    : [...(model === null ? [] : [`model ${model}`]), ...(mode === null ? [] : [`mode ${mode}`])].join(", ")

/**
 * Pattern of a valid model or mode name. The characters are limited, because names are passed in arguments and
 * requests.
 */
const NAME = /^[\w@][\w.:/@[\]+-]{0,199}$/

export interface Refusal {
  readonly message: string
  readonly remedy: string
}

/** Why an agent with this backend cannot have the choice; undefined if it can. */
export const objection = (backend: BackendConfig, { mode, model }: ModelChoice): Refusal | undefined => {
  for (const one of [model, mode]) {
    if (one !== null && !NAME.test(one))
      return {
        message: "that is not a valid name of a model or mode",
        remedy: "Use the name that the agent itself uses."
      }
  }
  switch (backend.type) {
    case "exec":
    case "command":
      return model === null && mode === null
        ? undefined
        : {
            message: "agentd cannot choose a model or mode for a program",
            remedy: "Set it in the program's argv or shell in agentd.jsonc."
          }
    case "acp":
      return mode === null || isOffered(backend, mode)
        ? undefined
        : {
            message: `the mode ${mode} never asks for approval, and cannot be chosen`,
            remedy: "To use it anyway, set it as mode of the agent's backend in agentd.jsonc."
          }
    case "codex":
      return mode === null
        ? undefined
        : { message: "Codex has no modes", remedy: "Its approvals in agentd.jsonc define what it asks about." }
    case "model":
      return mode === null
        ? undefined
        : { message: "a model agent has no modes", remedy: "Its approvals in agentd.jsonc define what it may do." }
    case "claude":
      return mode === null || isClaudeMode(mode)
        ? undefined
        : {
            message: `${mode} cannot be chosen for Claude Code`,
            remedy: `Choose one of ${CLAUDE_MODES.join(", ")}, or set a mode that asks less often in agentd.jsonc: permissionMode.`
          }
  }
}

/** Returns the backend's config with the user's choice. A choice that the current config does not allow is ignored. */
export const inBackend = (backend: BackendConfig, choice: ModelChoice | undefined): BackendConfig => {
  if (choice === undefined || objection(backend, choice) !== undefined) return backend
  const { mode, model } = choice
  switch (backend.type) {
    case "claude":
      return {
        ...backend,
        ...(model === null ? {} : { model }),
        ...(mode === null || !isClaudeMode(mode) ? {} : { permissionMode: mode })
      }
    case "acp":
      return { ...backend, ...(model === null ? {} : { model }), ...(mode === null ? {} : { mode }) }
    case "codex":
    case "model":
      return model === null ? backend : { ...backend, model }
    case "exec":
    case "command":
      return backend
  }
}

export const chosenIn = (config: AgentConfig, choice: ModelChoice | undefined): AgentConfig => {
  const backend = inBackend(config.backend, choice)
  return backend === config.backend ? config : { ...config, backend }
}
