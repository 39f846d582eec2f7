/**
 * AcpEffects: whether a call of an ACP agent has side effects. Pure.
 *
 * Guarantees: A call counts as read-only only if the config trusts its kind or its tool, because the agent's own words
 * cannot be checked.
 */
import type { AcpBackend } from "../../config/BackendConfig.ts"
import type { ToolCall } from "./AcpMessages.ts"

export type Trusts = Pick<AcpBackend, "readOnlyTools" | "trustKinds">

/** Kinds of calls that change something, as agents name them. */
const CHANGES: ReadonlySet<string> = new Set(["edit", "delete", "move", "execute"])
/**
 * Pattern for commands that change nothing. Commands with a redirection or substitution never match, because they could
 * do anything.
 */
const READS =
  /^(cd|ls|pwd|cat|head|tail|wc|grep|which|stat|du|df|git (status|log|diff|show))( (?!.*--(output|ext-diff))[^>`$]*)?$/

const isReading = (rawInput: unknown): boolean => {
  const { command } = (rawInput ?? {}) as { readonly command?: unknown }
  return typeof command === "string" && command.split(/[|;&\n]+/).every((part) => READS.test(part.trim()))
}

/** Whether the call changes something, according to its kind and its command. */
export const changes = ({ kind, rawInput }: ToolCall): boolean =>
  typeof kind === "string" && CHANGES.has(kind) && !isReading(rawInput)

/** Whether the config treats the call as free of side effects. `tool`: the name that agentd shows. */
export const isReadOnly = ({ readOnlyTools, trustKinds }: Trusts, { kind }: ToolCall, tool: string): boolean =>
  trustKinds.some((one) => one === kind) || readOnlyTools.includes(tool)
