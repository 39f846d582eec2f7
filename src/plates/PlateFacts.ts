/**
 * PlateFacts: what the board shows about a plate besides its status: title, last tool, calls, todos, tokens, branch.
 *
 * No decision depends on these facts, and they have no rune. After a restart, calls and last tool are derived from the
 * plate's runes. Everything else is read from the transcript again; until then the newest prompt is known from its
 * hook.
 */
import type * as PlateMachine from "./PlateMachine.ts"
import type { Transcript } from "./Transcript.ts"

export interface PlateFacts {
  /** The beginning of the newest prompt. */
  readonly prompt: string | null
  readonly lastTool: string | null
  readonly toolCalls: number
  /** The tool that is in use according to `/events`: its start was reported, but not its end. */
  readonly using: { readonly tool: string; readonly input: string | null } | null
}

export const none: PlateFacts = { prompt: null, lastTool: null, toolCalls: 0, using: null }

export const after = (facts: PlateFacts, event: PlateMachine.Event): PlateFacts => {
  switch (event._tag) {
    case "ToolStart":
      return { ...facts, lastTool: event.tool, using: { tool: event.tool, input: event.input ?? null } }
    case "HookPreToolUse":
      return { ...facts, lastTool: event.tool }
    case "HookPostToolUse":
    case "HookPostToolUseFailure":
      return { ...facts, lastTool: event.tool, toolCalls: facts.toolCalls + 1 }
    case "ToolCall":
      return { ...facts, toolCalls: facts.toolCalls + 1, using: null }
    case "SessionStart":
    case "PromptSubmit":
    case "Stop":
    case "HealthCheckRecovery":
    case "ProcessExited":
      return { ...facts, using: null }
    case "HookSessionStart":
      return event.source === "clear" ? { ...facts, prompt: null } : facts
    default:
      return facts
  }
}

export interface Shown {
  readonly title: string | null
  readonly branch: string | null
  readonly lastTool: string | null
  readonly todos: number | null
  readonly toolCalls: number
  readonly tokens: number | null
}

export const shown = (facts: PlateFacts, transcript: Transcript | undefined): Shown => {
  const view = transcript?.view
  const counted = view !== undefined && transcript?.partial === false && transcript.found?._tag === "Read"
  return {
    title: view?.title ?? facts.prompt ?? view?.prompt ?? null,
    branch: view?.branch ?? null,
    lastTool: facts.lastTool ?? view?.lastTool ?? null,
    todos: view?.openTodos ?? null,
    toolCalls: Math.max(facts.toolCalls, view?.toolCalls ?? 0),
    tokens: counted ? view.tokens : null
  }
}
