/**
 * BackendConfig: the backends that a config can select by `type`.
 */
import { Schema } from "effect"
import {
  described,
  Environment,
  FilePath,
  matching,
  Name,
  optional,
  Text,
  VariableName,
  whole,
  withDefault,
  Word
} from "./Fields.ts"
import { Span } from "./Span.ts"

const Argv = Schema.Array(Text).check(
  Schema.makeFilter((argv: ReadonlyArray<string>) => argv.length > 0 && argv.length <= 1000 && argv[0] !== "", {
    message: "must name a program, then its arguments"
  })
)

const passEnv = optional(
  Schema.Array(VariableName).check(
    Schema.makeFilter((names: ReadonlyArray<string>) => names.length <= 100, {
      message: "must contain at most 100 names"
    })
  ),
  'Variables of the daemon that are passed on, by name: ["GITHUB_TOKEN"]. Without it, a program gets only the variables that any program needs; a coding agent also gets its own settings and key.'
)

/** Fields that all backends with a process have. */
const process = {
  cwd: optional(
    FilePath,
    "Working directory, relative to the project's root or the agent's worktree. Default: that folder itself."
  ),
  env: Environment.pipe(
    withDefault(
      {},
      "Environment variables to set. Names: letters, digits and _; agentd itself sets those with AGENTD_."
    )
  ),
  passEnv,
  killGrace: Span.pipe(withDefault("5 seconds", "The time from SIGTERM to SIGKILL."))
}

const BaseUrl = Schema.String.check(matching(/^https?:\/\/[^\s]+$/u, "must be a URL such as https://api.example.org"))

/** Settings for where a provider's key is stored. The agent never sees the key. */
const key = {
  baseUrl: optional(BaseUrl, "URL of the API. Default: the provider's own."),
  keyEnv: optional(
    Word,
    "The daemon's environment variable with the key. Default: the one that the provider documents."
  ),
  keyFile: optional(FilePath, "A file whose first line is the key.")
}

export const APIS = {
  anthropic: { url: "https://api.anthropic.com", key: "ANTHROPIC_API_KEY" },
  openai: { url: "https://api.openai.com/v1", key: "OPENAI_API_KEY" },
  gemini: { url: "https://generativelanguage.googleapis.com", key: "GEMINI_API_KEY" }
} as const

const Provider = Schema.Struct({
  api: described(Schema.Literals(["anthropic", "openai", "gemini"]), "Which API the agent uses."),
  ...key
})
export type Provider = typeof Provider.Type

const SharedFile = Schema.String.check(
  matching(
    // oxlint-disable-next-line no-control-regex
    /^(?!~)(?!(?:[^\u0000]*\/)?\.\.?(?:\/|$))[^\u0000]*[^\u0000/]$/u,
    'must be a path in your home such as .codex/auth.json, or an absolute one, without ".."'
  )
)

export interface Confinement {
  readonly sandbox: "off" | "on" | "required"
  readonly network: boolean
  readonly share: ReadonlyArray<string>
  readonly metering?: "agent" | "gateway"
}

const confinement = {
  sandbox: Schema.Literals(["off", "on", "required"]).pipe(
    withDefault(
      "off",
      "Whether the agent is confined to its workspace and a home of its own. on: if this machine has a sandbox. required: without a sandbox it does not run."
    )
  ),
  network: Schema.Boolean.pipe(
    withDefault(
      false,
      "Whether the agent and its commands can reach the machine's network from the sandbox. If not, they reach only its provider, or nothing."
    )
  ),
  share: Schema.Array(SharedFile).pipe(
    withDefault(
      [],
      'Files and folders that are visible in the sandbox, read-only. In your home: by name, [".codex/auth.json"]; elsewhere: by absolute path.'
    )
  )
}

const metering = {
  metering: optional(
    Schema.Literals(["agent", "gateway"]),
    "Whose token counts are used. agent: those that the agent reports. gateway: agentd counts the tokens in the provider's answers. The agent then reaches its provider through agentd, at $AGENTD_GATEWAY_URL, in a sandbox or not. Default: agent."
  )
}

const needsProvider = Schema.makeFilter(
  (backend: { readonly metering?: "agent" | "gateway"; readonly provider?: unknown }) =>
    backend.metering === "gateway" && backend.provider === undefined
      ? { path: ["metering"], issue: 'is "gateway", which needs a provider: add "provider" with its api' }
      : true
)

/**
 * A backend that runs a program: the prompt is the program's input, its output lines are the agent's output, and its
 * exit code is the outcome of the run.
 */
export const CommandBackend = Schema.Struct({
  type: described(Schema.Literal("command"), "A program that is started for each run."),
  argv: optional(Argv, 'The program and its arguments, without a shell: ["claude", "-p"]. Either this or shell.'),
  shell: optional(Word, "A line for `sh -c`. Either this or argv."),
  ...process,
  ...confinement,
  ...metering,
  provider: optional(
    Provider,
    "The provider that the agent uses. Needed for metering, and in the sandbox, where agentd adds the key and the agent has none."
  ),
  promptBy: Schema.Literals(["stdin", "argument", "file"]).pipe(
    withDefault(
      "stdin",
      "How the program gets the prompt: on its standard input, as its last argument, or in a file named by its last argument. A prompt that is too long for an argument is put in a file, too, named by the last argument. AGENTD_PROMPT_FILE then contains the file's path."
    )
  ),
  readyAfter: Span.pipe(withDefault("1 second", "The run counts as started when the program has run for this long."))
}).check(
  Schema.makeFilter((backend: { readonly argv?: ReadonlyArray<string>; readonly shell?: string }) =>
    (backend.argv === undefined) === (backend.shell === undefined) ? "must have exactly one of argv and shell" : true
  ),
  needsProvider
)
export type CommandBackend = typeof CommandBackend.Type

/** Fields that all backends with turns have. */
const turns = {
  resume: Schema.Boolean.pipe(withDefault(true, "Whether a new run continues the conversation of the last one.")),
  silence: Span.pipe(
    withDefault("15 minutes", "A turn without any output for this long is ended and counts as an error.")
  )
}

const starts = {
  startTimeout: Span.pipe(withDefault("60 seconds", "How long a run may take to become ready."))
}

const reached = {
  provider: optional(
    Provider,
    "The provider that the agent uses. Needed for metering, and in the sandbox, where agentd adds the key and the agent has none."
  )
}

/** The Claude Code CLI, controlled by stream-json. */
export const ClaudeBackend = Schema.Struct({
  type: described(Schema.Literal("claude"), "Claude Code."),
  binary: Word.pipe(withDefault("claude", "The program: a name on the PATH, or a path.")),
  model: optional(Word, "The model to use. Default: Claude Code's own."),
  permissionMode: Schema.Literals(["default", "acceptEdits", "plan", "bypassPermissions"]).pipe(
    withDefault("default", "Which calls Claude Code asks permission for. The agent's approvals decide the answers.")
  ),
  args: Schema.Array(Text).pipe(withDefault([], "Further arguments, passed unchanged.")),
  ...process,
  ...confinement,
  share: Schema.Array(SharedFile).pipe(
    withDefault(
      [".claude/.credentials.json"],
      "Files and folders that are visible in the sandbox, read-only. In your home: by name; elsewhere: by absolute path. Default: your login."
    )
  ),
  provider: Schema.Struct(key).pipe(
    withDefault(
      {},
      "The API that it uses in the sandbox. If there is a key, agentd adds it to the requests; the agent never has the key."
    )
  ),
  ...turns,
  ...starts
})
export type ClaudeBackend = typeof ClaudeBackend.Type

/** The Codex CLI, controlled by its app-server. */
export const CodexBackend = Schema.Struct({
  type: described(Schema.Literal("codex"), "OpenAI Codex."),
  argv: Argv.pipe(
    withDefault(["codex"], 'The program and its arguments, to which "app-server" is added: ["codex", "-p", "work"].')
  ),
  model: optional(Word, "The model to use. Default: Codex's own."),
  effort: optional(Word, 'How much the model reasons: "low", "medium", "high" or another value that Codex accepts.'),
  config: Schema.Record(Word, Schema.Unknown).pipe(
    withDefault({}, 'Settings that override those in config.toml, by dotted name: { "web_search": "disabled" }.')
  ),
  approvalPolicy: optional(
    Schema.Literals(["untrusted", "on-request", "never"]),
    "Which calls Codex asks about. The agent's approvals decide the answers. Default: never if approvals.mode is full_access, untrusted in agentd's sandbox or while a rule denies or asks, on-request otherwise."
  ),
  sandboxMode: optional(
    Schema.Literals(["read-only", "workspace-write", "danger-full-access"]),
    "What Codex's own sandbox lets commands do that it does not ask about. Default: danger-full-access if approvals.mode is full_access or in agentd's sandbox, read-only otherwise."
  ),
  ...process,
  ...confinement,
  share: Schema.Array(SharedFile).pipe(
    withDefault(
      [".codex/auth.json"],
      "Files and folders that are visible in the sandbox, read-only. In your home: by name; elsewhere: by absolute path. Default: your login."
    )
  ),
  ...metering,
  provider: Schema.Struct(key).pipe(
    withDefault(
      {},
      "The API that it uses in the sandbox, and if agentd counts its tokens. If there is a key, agentd adds it to the requests; the agent never has the key. Default of baseUrl: the API that fits your login."
    )
  ),
  ...turns,
  ...starts
})
export type CodexBackend = typeof CodexBackend.Type

export const AcpBackend = Schema.Struct({
  type: described(Schema.Literal("acp"), "An agent that speaks the Agent Client Protocol."),
  argv: described(Argv, 'The agent and its arguments: ["opencode", "acp"].'),
  model: optional(Word, "The model to set, by the agent's name for it. Default: the agent's own choice."),
  mode: optional(
    Word,
    "The agent's session mode to set. Default: a mode that asks for permission, if the agent has one and approvals.mode is not full_access."
  ),
  trustKinds: Schema.Array(Schema.Literals(["read", "search", "think", "fetch"])).pipe(
    withDefault(
      [],
      "Kinds of its tool calls that count as free of side effects; agentd cannot check that. Default: none."
    )
  ),
  readOnlyTools: Schema.Array(Word).pipe(
    withDefault(
      [],
      "Tools that count as free of side effects, by the names that agentd shows; agentd cannot check that. Default: none."
    )
  ),
  authMethod: optional(Word, "Which of the agent's login methods to use, if it requires a login."),
  ...process,
  ...confinement,
  ...metering,
  ...reached,
  ...turns,
  ...starts
}).check(needsProvider)
export type AcpBackend = typeof AcpBackend.Type

/** A removed backend. Its fields are still accepted, so that one agent with this type does not stop a whole project. */
export const ExecBackend = Schema.Struct({
  type: described(
    Schema.Literal("exec"),
    'No longer exists: an agent with this type fails. Use "acp" (docs/own-agent.md). The fields have no effect.'
  ),
  argv: described(Argv, "The program and its arguments."),
  readOnlyTools: Schema.Array(Word).pipe(withDefault([], "Names of tools.")),
  ...process,
  ...confinement,
  ...metering,
  ...reached,
  ...turns,
  ...starts
}).check(needsProvider)
export type ExecBackend = typeof ExecBackend.Type

export const McpServerConfig = Schema.Struct({
  argv: optional(Argv, "The server program and its arguments; it uses standard input and output. Either this or url."),
  url: optional(BaseUrl, "URL of a remote server that speaks streamable HTTP. Either this or argv."),
  bearerEnv: optional(
    VariableName,
    "The daemon's environment variable whose value is sent to a remote server as the token. Without it: the token from `agentd login`, if there is one."
  ),
  clientId: optional(
    Word,
    "Client id for the login at a remote server that does not register new clients, or the https URL of a client id metadata document. Such a document is used if the issuer supports it."
  ),
  env: Environment.pipe(withDefault({}, "Environment variables to set.")),
  passEnv,
  trustHints: Schema.Boolean.pipe(
    withDefault(
      false,
      "Whether the server is trusted to say which of its tools have no side effects (readOnlyHint). If not, all tools count as having side effects."
    )
  )
}).check(
  Schema.makeFilter((server: { readonly argv?: ReadonlyArray<string>; readonly url?: string }) =>
    (server.argv === undefined) === (server.url === undefined) ? "must have exactly one of argv and url" : true
  )
)
export type McpServerConfig = typeof McpServerConfig.Type

export const MODEL_TOOLS = ["shell", "read", "write", "edit", "list", "search"] as const

/** The environment variable that contains the provider's key, if the config names no other. */
export const KEY_ENV = { anthropic: APIS.anthropic.key, openai: APIS.openai.key } as const

export const ModelBackend = Schema.Struct({
  type: described(
    Schema.Literal("model"),
    "A model behind an API; agentd's own model agent, a program, runs the turns and the tools."
  ),
  provider: described(
    Schema.Literals(["anthropic", "openai"]),
    "Which API to use: Anthropic Messages, or chat completions, which OpenAI and many others offer."
  ),
  baseUrl: optional(BaseUrl, "URL of the API. Default: the provider's own."),
  model: described(Word, "The model to use."),
  keyEnv: optional(
    Word,
    `The daemon's environment variable with the key. Default: ${Object.values(KEY_ENV).join(" or ")}.`
  ),
  keyFile: optional(FilePath, "A file whose first line is the key."),
  maxOutputTokens: whole(1, 1_000_000).pipe(withDefault(8192, "Maximum number of tokens in one answer.")),
  contextTokens: optional(
    whole(1_000, 100_000_000),
    "Maximum number of tokens that the model takes at once, prompt and answer together. A longer conversation is compacted first. Default: the limit that the provider reports when it rejects a longer one."
  ),
  maxRounds: whole(1, 10_000).pipe(withDefault(200, "Maximum number of requests in one turn.")),
  retries: whole(0, 20).pipe(withDefault(4, "How often a failed request is repeated if it may succeed later.")),
  price: optional(
    Schema.Struct({
      input: described(Schema.Finite, "USD for a million input tokens."),
      output: described(Schema.Finite, "USD for a million output tokens.")
    }),
    "Prices of tokens, for budgets in USD."
  ),
  tools: Schema.Array(Schema.Literals(MODEL_TOOLS)).pipe(
    withDefault([...MODEL_TOOLS], "Which of agentd's own tools the model gets.")
  ),
  mcp: Schema.Record(Name, McpServerConfig).pipe(withDefault({}, "MCP servers whose tools the model gets, by name.")),
  network: Schema.Boolean.pipe(withDefault(false, "Whether its shell commands can reach the network.")),
  sandbox: Schema.Literals(["required", "ask"]).pipe(
    withDefault(
      "ask",
      "If this machine has no sandbox. ask: every shell command needs approval. required: no shell command runs."
    )
  ),
  env: Environment.pipe(withDefault({}, "Environment variables to set for its shell commands.")),
  passEnv,
  ...turns,
  silence: Span.pipe(withDefault("2 minutes", "A request without any output for this long is aborted and repeated."))
})
export type ModelBackend = typeof ModelBackend.Type

export const BackendConfig = Schema.Union([
  CommandBackend,
  ClaudeBackend,
  CodexBackend,
  AcpBackend,
  ModelBackend,
  ExecBackend
])
export type BackendConfig = typeof BackendConfig.Type

/** Why no agent can run with a backend of this type, and the remedy; undefined if agents can. */
export const retired = ({
  type
}: {
  readonly type: string
}): { readonly message: string; readonly remedy: string } | undefined =>
  type !== "exec"
    ? undefined
    : {
        message: 'agentd no longer has the backend type "exec": use "acp" (docs/own-agent.md)',
        remedy:
          'Make its program an ACP agent, as docs/own-agent.md shows. Set "type": "acp" in agentd.jsonc, then start the agent.'
      }
