/**
 * CodexItems: facts about the items of a Codex turn that are tool calls. Pure.
 *
 * Guarantees: the arguments of a call contain what Codex is going to do: the whole command, or all changes to files.
 */
import type { ToolStatus } from "../Backend.ts"
import { type Item, McpResult, read, TextBlock } from "./CodexMessages.ts"

export interface Call {
  readonly tool: string
  readonly arguments: unknown
}

/** The call that an item is; undefined if the item is none. */
export const callOf = (item: Item): Call | undefined => {
  const { changes, command, cwd, namespace, path, prompt, query, server, tool } = item
  switch (item.type) {
    case "commandExecution":
      return { tool: "shell", arguments: { command: command ?? "", ...(cwd ? { cwd } : {}) } }
    case "fileChange":
      return { tool: "apply_patch", arguments: { changes: changes ?? [] } }
    case "mcpToolCall":
      return { tool: `mcp__${server ?? ""}__${tool ?? ""}`, arguments: item.arguments ?? {} }
    case "dynamicToolCall":
      return { tool: namespace ? `${namespace}.${tool ?? ""}` : (tool ?? ""), arguments: item.arguments ?? {} }
    case "collabAgentToolCall":
      return { tool: tool ?? "agent", arguments: prompt ? { prompt } : {} }
    case "webSearch":
      return { tool: "web_search", arguments: { query: query ?? "" } }
    case "imageView":
      return { tool: "view_image", arguments: { path: path ?? "" } }
    case "imageGeneration":
      return { tool: "image_generation", arguments: {} }
    default:
      return undefined
  }
}

/**
 * Whether the item has no side effects. `isHeld`: true if Codex's own sandbox lets commands only read, without network.
 * A command that is already running when it is first reported runs in that sandbox.
 */
export const isReadOnly = ({ processId, type }: Item, isHeld: boolean): boolean =>
  type === "imageView" || (type === "commandExecution" && isHeld && (processId ?? "") !== "")

/** Maximum length of a call's output that is passed on, characters. */
const MAX_OUTPUT = 256 * 1024

const short = (text: string): string => (text.length <= MAX_OUTPUT ? text : `${text.slice(0, MAX_OUTPUT)} …`)

const mcpOutput = (result: unknown): string =>
  (read(McpResult, result)?.content ?? [])
    .map((block) => read(TextBlock, block)?.text ?? JSON.stringify(block) ?? "")
    .join("\n")

export const outputOf = (item: Item): string => {
  switch (item.type) {
    case "commandExecution":
      return short(item.aggregatedOutput ?? "")
    case "fileChange":
      return (item.changes ?? []).map(({ path }) => path).join("\n")
    case "mcpToolCall":
      return short(item.error?.message ?? mcpOutput(item.result))
    case "dynamicToolCall":
      return short(JSON.stringify(item.contentItems) ?? "")
    default:
      return item.status ?? ""
  }
}

/** Status of a completed item. `refused`: true if agentd's answer denied the call. */
export const statusOf = (
  { status, success }: Item,
  { interrupted, refused }: { readonly refused: boolean; readonly interrupted: boolean }
): ToolStatus => {
  if (status === "declined") return refused || !interrupted ? "denied" : "cancelled"
  if (status !== "failed" && success !== false) return "success"
  return refused ? "denied" : interrupted ? "cancelled" : "error"
}
