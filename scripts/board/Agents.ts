/**
 * Agents: the coding CLIs on which the board is measured: how each is started, and how its screen is read.
 *
 * A pattern is looked for in the last lines of the screen. `error` is looked for after the last prompt.
 */
import type { State } from "./Scenarios.ts"

type Pressed = "allow" | "deny" | "answer" | "escape"

export interface Agent {
  readonly id: string
  readonly name: string
  readonly package: string
  readonly version: string
  readonly argv: ReadonlyArray<string>
  /** Arguments with which the newest session of the folder continues. */
  readonly resume: ReadonlyArray<string>
  readonly files: (url: string, project: string) => { readonly [path: string]: object | string }
  readonly env: (url: string) => { readonly [name: string]: string }
  readonly screen: { readonly [state in "approval" | "question" | "working" | "error" | "idle"]: RegExp }
  readonly keys: { readonly [action in Pressed]: ReadonlyArray<string> }
  readonly types: { readonly quit: string; readonly clear: string }
  /** Dialogs before the first prompt, and the keys that close them. */
  readonly opening?: ReadonlyArray<readonly [shows: RegExp, keys: ReadonlyArray<string>]>
  /** While an answer is written, the screen shows nothing but its text. */
  readonly streams?: true
  /** Answers that the CLI cannot show. */
  readonly lacks?: ReadonlyArray<string>
}

const QUIET = { DISABLE_TELEMETRY: "1", DISABLE_AUTOUPDATER: "1", DO_NOT_TRACK: "1", NO_UPDATE_NOTIFIER: "1" }
const escape = ["Escape"]
const quiet = { privacy: { usageStatisticsEnabled: false }, telemetry: { enabled: false } }
const general = { disableAutoUpdate: true, disableUpdateNag: true, enableAutoUpdate: false }

const gemini: Agent = {
  id: "gemini",
  name: "Gemini CLI",
  package: "@google/gemini-cli",
  version: "0.61.0",
  argv: ["gemini", "--model", "gemini-2.5-flash"],
  resume: ["--resume", "latest"],
  files: () => ({
    ".gemini/settings.json": {
      ...quiet,
      general,
      security: { auth: { selectedType: "gemini-api-key" }, folderTrust: { enabled: false } }
    },
    ".gemini/policies/board.toml": ["sleep", "ls"]
      .map(
        (prefix) =>
          `[[rule]]\ntoolName = "run_shell_command"\ncommandPrefix = "${prefix}"\ndecision = "allow"\npriority = 100\n`
      )
      .join("\n")
  }),
  env: (url) => ({
    ...QUIET,
    GEMINI_API_KEY: "dummy",
    GOOGLE_GEMINI_BASE_URL: url,
    GEMINI_CLI_TRUST_WORKSPACE: "true"
  }),
  screen: {
    approval: /Allow execution|Allow once/,
    question: /Which colour\?[^]*(Enter to select|Answer Questions|Red)/,
    working: /esc to cancel|^ ?[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] /m,
    error: /API Error|\[Error|✕ /,
    idle: /^ ?[>*] /m
  },
  keys: { allow: ["Enter"], deny: escape, answer: ["Enter"], escape },
  types: { quit: "/quit", clear: "/clear" }
}

const qwen: Agent = {
  id: "qwen",
  name: "Qwen Code",
  package: "@qwen-code/qwen-code",
  version: "0.24.4",
  argv: ["qwen"],
  resume: ["--continue"],
  files: () => ({
    ".qwen/settings.json": {
      ...quiet,
      general,
      security: { auth: { selectedType: "openai" } },
      permissions: { allow: ["Bash(sleep *)", "Bash(ls *)"] }
    }
  }),
  env: (url) => ({ ...QUIET, OPENAI_API_KEY: "dummy", OPENAI_BASE_URL: `${url}/v1`, OPENAI_MODEL: "stub" }),
  screen: {
    approval: /Allow execution|Yes, allow once/,
    question: /Which colour\?[^]*Red/,
    working: /esc to cancel/,
    error: /API Error|✕ /,
    idle: /^ ?[>*] /m
  },
  keys: { allow: ["Enter"], deny: escape, answer: ["Enter"], escape },
  types: { quit: "/quit", clear: "/clear" }
}

const codex: Agent = {
  id: "codex",
  name: "Codex",
  package: "@openai/codex",
  version: "0.171.0",
  argv: ["codex", "--no-daemon", "--dangerously-bypass-hook-trust"],
  resume: ["resume", "--last"],
  files: (url, project) => ({
    ".codex/config.toml": `model = "stub"
model_provider = "stub"
approval_policy = "on-request"
sandbox_mode = "workspace-write"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.stub]
name = "Stub"
base_url = "${url}/v1"
wire_api = "responses"
env_key = "STUB_KEY"
[projects.${JSON.stringify(project)}]
trust_level = "trusted"
`
  }),
  env: () => ({ ...QUIET, STUB_KEY: "dummy" }),
  screen: {
    approval: /Would you like to run|Yes, proceed/,
    question: /Which colour\?[^]*Red/,
    working: /esc to interrupt/i,
    error: /■ (?!Conversation interrupted)/,
    idle: /›/
  },
  keys: { allow: ["Enter"], deny: escape, answer: ["Enter"], escape },
  types: { quit: "/quit", clear: "/clear" },
  streams: true,
  lacks: ["question"]
}

const claude: Agent = {
  id: "claude",
  name: "Claude Code",
  package: "@anthropic-ai/claude-code",
  version: "2.1.332",
  argv: ["claude"],
  resume: ["--continue"],
  files: (_, project) => ({
    ".claude/settings.json": { permissions: { allow: ["Bash(sleep:*)", "Bash(ls:*)"] } },
    ".claude.json": {
      hasCompletedOnboarding: true,
      lastOnboardingVersion: "99.0.0",
      theme: "dark",
      numStartups: 5,
      customApiKeyResponses: { approved: ["dummy"], rejected: [] },
      projects: { [project]: { hasTrustDialogAccepted: true, hasCompletedProjectOnboarding: true, allowedTools: [] } }
    }
  }),
  env: (url) => ({
    ...QUIET,
    ANTHROPIC_API_KEY: "dummy",
    ANTHROPIC_BASE_URL: url,
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
    IS_SANDBOX: "1"
  }),
  screen: {
    approval: /Do you want to proceed\?/,
    question: /Which colour\?[^]*Enter to select/,
    working: /esc to interrupt|… \(/,
    error: /API Error|Please run \/login|Invalid API key|Failed to authenticate/,
    idle: /\? for shortcuts|mode on|❯/
  },
  keys: { allow: ["Enter"], deny: ["3"], answer: ["Enter"], escape },
  types: { quit: "/exit", clear: "/clear" }
}

export const AGENTS: ReadonlyArray<Agent> = [claude, codex, gemini, qwen]

const LINES = 24

/** The state that the screen shows; undefined if it shows none. `prompt`: the newest prompt; undefined before the first. */
export const read = ({ screen }: Agent, text: string, prompt: string | undefined): State | undefined => {
  const lines = text.split("\n").filter((line) => line.trim() !== "")
  const last = lines.slice(-LINES).join("\n")
  if (screen.question.test(last)) return "question"
  if (screen.approval.test(last)) return "approval"
  if (screen.working.test(last)) return "working"
  if (!screen.idle.test(last)) return undefined
  if (prompt === undefined) return "ready"
  const all = lines.join("\n")
  return screen.error.test(all.slice(all.indexOf(prompt) + 1)) ? "error" : "idle"
}
