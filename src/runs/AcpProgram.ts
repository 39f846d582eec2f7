/**
 * AcpProgram: which ACP agent a command line starts, as far as agentd knows it, and how it is made to ask about every
 * call where its mode does not. Pure.
 */
import type { AcpBackend } from "../config/BackendConfig.ts"

export type AcpProgram = "claude" | "codex" | "copilot" | "gemini" | "opencode" | "qwen"

/** ACP agents, by the names of their programs and packages. */
const PROGRAMS: ReadonlyMap<string, AcpProgram> = new Map([
  ["claude-agent-acp", "claude"],
  ["codex-acp", "codex"],
  ["copilot", "copilot"],
  ["gemini", "gemini"],
  ["gemini-cli", "gemini"],
  ["opencode", "opencode"],
  ["opencode-ai", "opencode"],
  ["qwen", "qwen"],
  ["qwen-code", "qwen"]
])

/** The agent; undefined if agentd does not know it. */
export const programOf = (argv: ReadonlyArray<string>): AcpProgram | undefined =>
  argv.map((word) => PROGRAMS.get(word.replace(/^.*\//, "").replace(/(?:@[^@]*|\.[cm]?js)$/, ""))).find(Boolean)

/** The variable with permissions of opencode that go before those in its config files. */
export const PERMISSION = "OPENCODE_PERMISSION"

/** opencode's kinds of permission. Each is named, because its own config may allow a kind by name. */
const KINDS = "* bash edit read glob grep list webfetch websearch skill todowrite external_directory".split(" ")

/** Variables with which an ACP agent asks about every call; empty if its mode alone decides. */
export const askingEnvironment = ({ argv }: Pick<AcpBackend, "argv">): { readonly [name: string]: string } =>
  programOf(argv) !== "opencode"
    ? {}
    : {
        // a question of its sub-agent reaches nobody, and the turn waits for it forever: so there are no sub-agents
        [PERMISSION]: JSON.stringify({ ...Object.fromEntries(KINDS.map((kind) => [kind, "ask"])), task: "deny" })
      }
