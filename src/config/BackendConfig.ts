/**
 * BackendConfig: the backends that a config can name, by `type`.
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
    Schema.makeFilter((names: ReadonlyArray<string>) => names.length <= 100, { message: "must hold at most 100 names" })
  ),
  'Variables of the daemon that are handed on, by name: ["GITHUB_TOKEN"]. Without it a program sees only what any needs, and a coding agent its own settings and key.'
)

/** Working directory, environment and kill timeout, for all backends with a process. */
const process = {
  cwd: optional(FilePath, "Where it runs, relative to the project's root or the agent's worktree. Default: there."),
  env: Environment.pipe(
    withDefault({}, "Variables that are set. Names: letters, digits and _; AGENTD_… are set by agentd itself.")
  ),
  passEnv,
  killGrace: Span.pipe(withDefault("5 seconds", "The time from SIGTERM to SIGKILL."))
}

const BaseUrl = Schema.String.check(matching(/^https?:\/\/[^\s]+$/u, "must be a URL such as https://api.example.org"))

/** Where a provider's key is stored; the agent never sees it. */
const key = {
  baseUrl: optional(BaseUrl, "Where the API is. Default: the provider's own."),
  keyEnv: optional(Word, "The environment variable of the daemon that holds the key. Default: the provider's own."),
  keyFile: optional(FilePath, "A file whose first line is the key.")
}

/** The APIs of models, each with its address and the variable of its key. */
export const APIS = {
  anthropic: { url: "https://api.anthropic.com", key: "ANTHROPIC_API_KEY" },
  openai: { url: "https://api.openai.com/v1", key: "OPENAI_API_KEY" },
  gemini: { url: "https://generativelanguage.googleapis.com", key: "GEMINI_API_KEY" }
} as const

const Provider = Schema.Struct({
  api: described(Schema.Literals(["anthropic", "openai", "gemini"]), "Which API the agent speaks."),
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
      "Whether it is held in its workspace and a home of its own: on where this machine can, or (required) it does not run elsewhere."
    )
  ),
  network: Schema.Boolean.pipe(
    withDefault(
      false,
      "Whether, in the sandbox, it and the commands that it has run reach the machine's network; else its provider alone, or nothing."
    )
  ),
  share: Schema.Array(SharedFile).pipe(
    withDefault(
      [],
      'Files and folders that it sees in the sandbox, read-only: those of your home by name, [".codex/auth.json"], others by their path.'
    )
  )
}

/** Whether the agent's or the gateway's token counts are used. */
const metering = {
  metering: optional(
    Schema.Literals(["agent", "gateway"]),
    "Whose word on its tokens counts: the agent's own, or (gateway) what agentd counts of the answers of its provider, which it reaches through agentd then, in a sandbox or not: at $AGENTD_GATEWAY_URL. Default: agent."
  )
}

const needsProvider = Schema.makeFilter(
  (backend: { readonly metering?: "agent" | "gateway"; readonly provider?: unknown }) =>
    backend.metering === "gateway" && backend.provider === undefined
      ? { path: ["metering"], issue: 'is "gateway", which needs a provider: add "provider" with its api' }
      : true
)

/**
 * Any program, started for each run. The prompt is its input, its lines are the output, its exit
 * code is the outcome.
 */
export const CommandBackend = Schema.Struct({
  type: described(Schema.Literal("command"), "Which kind of backend."),
  argv: optional(Argv, 'The program and its arguments, as they are: ["claude", "-p"]. Either this or shell.'),
  shell: optional(Word, "A line for `sh -c`. Either this or argv."),
  ...process,
  ...confinement,
  ...metering,
  provider: optional(
    Provider,
    "The model that it reaches: in the sandbox, where agentd puts the key in and it has none, or for metering."
  ),
  promptBy: Schema.Literals(["stdin", "argument", "file"]).pipe(
    withDefault(
      "stdin",
      "How the prompt reaches it: on its standard input, as its last argument, or in a file named by its last argument. One that is too long for an argument comes in a file that the argument names; AGENTD_PROMPT_FILE says so."
    )
  ),
  readyAfter: Span.pipe(withDefault("1 second", "Having lived this long it counts as started."))
}).check(
  Schema.makeFilter((backend: { readonly argv?: ReadonlyArray<string>; readonly shell?: string }) =>
    (backend.argv === undefined) === (backend.shell === undefined) ? "must have exactly one of argv and shell" : true
  ),
  needsProvider
)
export type CommandBackend = typeof CommandBackend.Type

/** The fields of all backends whose runs take one turn after the other. */
const turns = {
  resume: Schema.Boolean.pipe(withDefault(true, "Whether a new run goes on with the conversation of the last one.")),
  silence: Span.pipe(
    withDefault("15 minutes", "A turn in which nothing is heard of it for this long is ended and counts as an error.")
  )
}

const starts = {
  startTimeout: Span.pipe(withDefault("60 seconds", "How long it may take to be ready."))
}

const reached = {
  provider: optional(
    Provider,
    "The model that it reaches: in the sandbox, where agentd puts the key in and it has none, or for metering."
  )
}

/** The Claude Code CLI, controlled by stream-json. */
export const ClaudeBackend = Schema.Struct({
  type: described(Schema.Literal("claude"), "Claude Code."),
  binary: Word.pipe(withDefault("claude", "The program: a name on the PATH, or a path.")),
  model: optional(Word, "Which model. Default: Claude Code's own."),
  permissionMode: Schema.Literals(["default", "acceptEdits", "plan", "bypassPermissions"]).pipe(
    withDefault("default", "What Claude Code asks for; what it asks is answered by the agent's approvals.")
  ),
  args: Schema.Array(Text).pipe(withDefault([], "Further arguments, as they are.")),
  ...process,
  ...confinement,
  share: Schema.Array(SharedFile).pipe(
    withDefault(
      [".claude/.credentials.json"],
      "Files and folders that it sees in the sandbox, read-only: those of your home by name, others by their path. Default: your login."
    )
  ),
  provider: Schema.Struct(key).pipe(
    withDefault({}, "In the sandbox: the API that it reaches. agentd puts the key in, where there is one; it has none.")
  ),
  ...turns,
  ...starts
})
export type ClaudeBackend = typeof ClaudeBackend.Type

/** Any agent that speaks the Agent Client Protocol over its standard input and output. */
export const AcpBackend = Schema.Struct({
  type: described(Schema.Literal("acp"), "An agent that speaks the Agent Client Protocol."),
  argv: described(Argv, 'The agent and its arguments: ["opencode", "acp"].'),
  model: optional(Word, "The model to set, as the agent offers it. Default: as it starts."),
  mode: optional(
    Word,
    "The agent's own session mode to set. Default: one in which a person is asked, where it has one and approvals.mode is not full_access."
  ),
  trustKinds: Schema.Array(Schema.Literals(["read", "search", "think", "fetch"])).pipe(
    withDefault(
      [],
      "Kinds of its own tool calls that are taken to have no side effects, on its word alone. Default: none."
    )
  ),
  authMethod: optional(Word, "Which of the agent's ways to log in is asked for, where it wants one."),
  ...process,
  ...confinement,
  ...metering,
  ...reached,
  ...turns,
  ...starts
}).check(needsProvider)
export type AcpBackend = typeof AcpBackend.Type

/** Any program that speaks agentd's own protocol, one JSON record per line: docs/exec-backend.md. */
export const ExecBackend = Schema.Struct({
  type: described(Schema.Literal("exec"), "A program that speaks agentd's own records over its input and output."),
  argv: described(
    Argv,
    'The program and its arguments: ["my-backend", "--fast"]. Try it: agentd conformance -- my-backend'
  ),
  readOnlyTools: Schema.Array(Word).pipe(
    withDefault([], "Tools of its that are taken to have no side effects, by name, on its word alone. Default: none.")
  ),
  ...process,
  ...confinement,
  ...metering,
  ...reached,
  ...turns,
  ...starts
}).check(needsProvider)
export type ExecBackend = typeof ExecBackend.Type

/**
 * A server of the Model Context Protocol: a program that is started with each run, or a server that
 * is reached by HTTP.
 */
export const McpServerConfig = Schema.Struct({
  argv: optional(
    Argv,
    "The server and its arguments; it speaks over its standard input and output. Either this or url."
  ),
  url: optional(BaseUrl, "Where a remote server is: it speaks streamable HTTP. Either this or argv."),
  bearerEnv: optional(
    VariableName,
    "The variable of the daemon whose value a remote server is sent as its token. Without it: what `agentd login` was given, where it was."
  ),
  clientId: optional(Word, "Our name at the login of a remote server, where it takes no new clients."),
  env: Environment.pipe(withDefault({}, "Variables that are set.")),
  passEnv,
  trustHints: Schema.Boolean.pipe(
    withDefault(
      false,
      "Whether its word is taken for which of its tools have no side effects (readOnlyHint). Without it all have some."
    )
  )
}).check(
  Schema.makeFilter((server: { readonly argv?: ReadonlyArray<string>; readonly url?: string }) =>
    (server.argv === undefined) === (server.url === undefined) ? "must have exactly one of argv and url" : true
  )
)
export type McpServerConfig = typeof McpServerConfig.Type

export const MODEL_TOOLS = ["shell", "read", "write", "edit", "list", "search"] as const

/** The environment variable with the provider's key, unless the config names another. */
export const KEY_ENV = { anthropic: APIS.anthropic.key, openai: APIS.openai.key } as const

/** A model behind a provider's API; the turn loop and the tools are agentd's own. */
export const ModelBackend = Schema.Struct({
  type: described(Schema.Literal("model"), "A model behind an API; agentd itself runs the turns and the tools."),
  provider: described(
    Schema.Literals(["anthropic", "openai"]),
    "Which API it speaks: Anthropic Messages, or chat completions as OpenAI and many others have them."
  ),
  baseUrl: optional(BaseUrl, "Where the API is. Default: the provider's own."),
  model: described(Word, "Which model."),
  keyEnv: optional(
    Word,
    `The environment variable of the daemon that holds the key. Default: ${Object.values(KEY_ENV).join(" or ")}.`
  ),
  keyFile: optional(FilePath, "A file whose first line is the key."),
  maxOutputTokens: whole(1, 1_000_000).pipe(withDefault(8192, "The longest answer to one request.")),
  contextTokens: optional(
    whole(1_000, 100_000_000),
    "The tokens that the model takes at once, prompt and answer together: the conversation is compacted before it is longer. Default: what the provider says when it refuses one."
  ),
  maxRounds: whole(1, 10_000).pipe(withDefault(200, "The most requests within one turn.")),
  retries: whole(0, 20).pipe(withDefault(4, "How often a request that may succeed later is repeated.")),
  price: optional(
    Schema.Struct({
      input: described(Schema.Finite, "USD for a million input tokens."),
      output: described(Schema.Finite, "USD for a million output tokens.")
    }),
    "What tokens cost, for budgets in USD."
  ),
  tools: Schema.Array(Schema.Literals(MODEL_TOOLS)).pipe(
    withDefault([...MODEL_TOOLS], "Which of agentd's own tools it is given.")
  ),
  mcp: Schema.Record(Name, McpServerConfig).pipe(withDefault({}, "MCP servers whose tools it is given, by name.")),
  network: Schema.Boolean.pipe(withDefault(false, "Whether its shell commands reach the network.")),
  sandbox: Schema.Literals(["required", "ask"]).pipe(
    withDefault("ask", "Without a sandbox on this machine: ask before every shell command, or (required) run none.")
  ),
  env: Environment.pipe(withDefault({}, "Variables that are set for its shell commands.")),
  passEnv,
  ...turns,
  silence: Span.pipe(
    withDefault("2 minutes", "A request whose answer is silent for this long is broken off and repeated.")
  )
})
export type ModelBackend = typeof ModelBackend.Type

export const BackendConfig = Schema.Union([CommandBackend, ClaudeBackend, AcpBackend, ModelBackend, ExecBackend])
export type BackendConfig = typeof BackendConfig.Type
