/** SessionSources: the coding CLIs, other than Claude Code, that report their sessions through hooks. */
import type { SessionSource } from "./SessionSource.ts"
import { Cline } from "./sources/Cline.ts"
import { Codex } from "./sources/Codex.ts"
import { Droid } from "./sources/Droid.ts"
import { Gemini } from "./sources/Gemini.ts"
import { Qwen } from "./sources/Qwen.ts"

export const SESSION_SOURCES: ReadonlyArray<SessionSource> = [Cline, Codex, Droid, Gemini, Qwen]

/** The CLI with this name; undefined for Claude Code. */
export const sourceOf = (name: string | undefined): SessionSource | undefined =>
  SESSION_SOURCES.find((source) => source.name === name)
