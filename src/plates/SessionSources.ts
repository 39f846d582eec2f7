/** SessionSources: the coding CLIs, other than Claude Code, whose sessions agentd shows. */
import type { SessionSource, Source } from "./SessionSource.ts"
import { Cline } from "./sources/Cline.ts"
import { Codex } from "./sources/Codex.ts"
import { Copilot } from "./sources/Copilot.ts"
import { Droid } from "./sources/Droid.ts"
import { Gemini } from "./sources/Gemini.ts"
import { Kilo, Opencode } from "./sources/Opencode.ts"
import { Qwen } from "./sources/Qwen.ts"

export const SESSION_SOURCES: ReadonlyArray<SessionSource> = [Cline, Codex, Droid, Gemini, Kilo, Opencode, Qwen]

/** The CLI with this name; undefined for Claude Code. */
export const sourceOf = (name: string | undefined): SessionSource | undefined =>
  SESSION_SOURCES.find((source) => source.name === name)
/** The CLIs whose records agentd reads, so that nothing is installed. */
export const RECORDED_SOURCES: ReadonlyArray<Source> = [Copilot]
