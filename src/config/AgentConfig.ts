/**
 * AgentConfig: the config of one agent, with all defaults filled in.
 */
import { Schema } from "effect"
import { BackendConfig } from "./BackendConfig.ts"
import { described, matching, Name, optional, Text, whole, withDefault, Word } from "./Fields.ts"
import { Rules } from "./RuleConfig.ts"
import { LimitsConfig } from "./LimitsConfig.ts"
import { Span, SpanOrOff } from "./Span.ts"

export const BackoffConfig = Schema.Struct({
  base: Span.pipe(
    withDefault("2 seconds", "The wait after the first error in a row. It doubles after each further error.")
  ),
  cap: Span.pipe(withDefault("60 seconds", "The longest wait after an error.")),
  jitter: Schema.Finite.check(
    Schema.isBetween({ minimum: 0, maximum: 1 }, { message: "must be a number from 0 to 1" })
  ).pipe(withDefault(0, "How much of a wait is random: 0 is none, 0.2 makes it up to a fifth longer or shorter.")),
  by: Schema.Literals(["failures", "streak"]).pipe(
    withDefault(
      "failures",
      "What makes a wait longer. failures: each failure since the last turn that ended with an answer. streak: only errors in a row; a run that starts resets their count."
    )
  )
})
export type BackoffConfig = typeof BackoffConfig.Type

export const OutputConfig = Schema.Struct({
  maxBytesPerRun: whole(1024, 1_073_741_824).pipe(
    withDefault(1_048_576, "How much output of one run is kept, in bytes. Further output is counted and dropped.")
  ),
  tailLines: whole(1, 1000).pipe(
    withDefault(40, "How many of the last lines of output `status`, `why` and mails show.")
  )
})
export type OutputConfig = typeof OutputConfig.Type

const Tokens = whole(1, 1_000_000_000_000)
const Usd = Schema.Finite.check(
  Schema.isBetween({ minimum: 0.0001, maximum: 1_000_000_000 }, { message: "must be a number above 0" })
)

const Amounts = Schema.Struct({
  tokens: optional(Tokens, "Input and output tokens."),
  usd: optional(Usd, "US dollars, if the cost is known.")
})

const off = Schema.Literal("off")

const TurnAmounts = Schema.Struct({
  tokens: optional(Schema.Union([off, Tokens]), 'Input and output tokens; "off": no limit. Default: off.'),
  usd: optional(
    Schema.Union([off, Usd]),
    'US dollars, if the cost is known; "off": no limit. Default for agents that work in turns: 25.'
  ),
  wallTime: optional(
    Schema.Union([off, Span]),
    'Duration without the waits for a user; "off": no limit. Default for agents that work in turns: 2 hours.'
  ),
  toolCalls: optional(
    Schema.Union([off, whole(1, 1_000_000_000)]),
    'Tool calls; "off": no limit. Default for agents that work in turns: 1000.'
  )
})

const periods = {
  perTurn: optional(
    TurnAmounts,
    "Limits of one turn. At a limit the turn is interrupted, and its agent needs you. Nothing is lost: agentd retry, or a message, continues the work."
  ),
  perDay: optional(Amounts, "Limits for one calendar day of the machine."),
  perMonth: optional(Amounts, "Limits for one calendar month of the machine."),
  whenSpent: optional(
    Schema.Literals(["wait", "stop"]),
    "What happens when the limit of a day or month is reached: wait until the next one begins, or stop permanently. Default: wait."
  )
}

/** The budget of an agent per incarnation, or of a conversation between two resets. An omitted field sets no limit. */
export const BudgetConfig = Schema.Struct({
  tokens: optional(Tokens, "Input and output tokens."),
  toolCalls: optional(whole(1, 1_000_000_000), "Tool calls."),
  wallTime: optional(Span, "Time spent in turns."),
  usd: optional(Usd, "US dollars, if the backend reports its cost or its model has a price."),
  ...periods
})
export type BudgetConfig = typeof BudgetConfig.Type

export const MachineBudget = Schema.Struct({
  tokens: optional(Tokens, "Input and output tokens of everything in the log."),
  usd: optional(Usd, "US dollars for everything in the log."),
  ...periods
})

const Dollars = Schema.Finite.check(
  Schema.isBetween({ minimum: 0, maximum: 1_000_000 }, { message: "must be a number from 0 to 1000000" })
)

export const PricesConfig = Schema.Record(
  Word,
  Schema.Struct({
    input: described(Dollars, "USD for a million input tokens."),
    output: described(Dollars, "USD for a million output tokens."),
    cacheRead: optional(Dollars, "USD for a million input tokens from a cache. Default: the price of input."),
    cacheWrite: optional(Dollars, "USD for a million input tokens written to a cache. Default: the price of input.")
  })
).check(
  Schema.makeFilter((prices: object) => Object.keys(prices).length <= 1000, {
    message: "must contain at most 1000 models"
  })
)

export const ApprovalPolicy = Schema.Struct({
  mode: Schema.Literals(["read_only", "auto", "full_access"]).pipe(
    withDefault(
      "auto",
      "Calls without side effects run. The others: denied with read_only, need approval with auto, run with full_access. Rules, always and never take precedence."
    )
  ),
  rules: Rules.pipe(
    withDefault(
      [],
      "Calls that run, wait for your approval or are denied, in any mode. deny goes before ask, and ask before allow."
    )
  ),
  inside: Schema.Literals(["ask", "run"]).pipe(
    withDefault(
      "ask",
      "Calls that stay in the agent's sandbox. ask: they need approval as any other. run: they run, if the sandbox has no network; rules that deny or ask still hold."
    )
  ),
  always: Schema.Array(Word).pipe(withDefault([], "Tools that always need approval, in any mode; * matches any text.")),
  never: Schema.Array(Word).pipe(withDefault([], "Tools that never need approval, in any mode; * matches any text.")),
  timeout: SpanOrOff.pipe(
    withDefault("off", "How long a call waits for an answer. Then it is denied, and you are notified. off: no limit.")
  )
})
export type ApprovalPolicy = typeof ApprovalPolicy.Type

/** The tools that `agentd mcp` can offer an agent. */
export const VOICES = ["inbox", "message", "post", "report", "ask", "spawn"] as const
export type Voice = (typeof VOICES)[number]

const MAX_FALLBACKS = 8

const MAX_LABELS = 20

const MAX_PATTERNS = 100

/** A path or pattern in the project. One pattern for all rules, because a second check would lose the description. */
const Inside = Schema.String.check(
  matching(
    // oxlint-disable-next-line no-control-regex
    /^(?![/~]|\.?$)(?!(?:[^/]*\/)*(?:\.\.|\.git)(?:\/|$))(?=[^\u0000]*$)\s*\S/u,
    "must be relative to the project's root, without .., and not below .git"
  )
)

const Patterns = Schema.Array(Inside).check(
  Schema.isMaxLength(MAX_PATTERNS, { message: `must contain at most ${MAX_PATTERNS} entries` })
)

const CacheFolder = Schema.Union([
  Inside,
  Schema.Struct({
    path: described(Inside, "The folder, relative to the project's root."),
    shared: Schema.Boolean.pipe(
      withDefault(
        false,
        "Whether all agents of the project write to the same folder. One agent can then change what another one runs."
      )
    )
  })
])

export const WorktreeConfig = Schema.Struct({
  base: optional(Word, "The commit or branch that the work tree starts from. Default: HEAD."),
  copy: Patterns.pipe(
    withDefault(
      [],
      "Files of your checkout that git does not track and the work tree gets as copies, as in .gitignore: .env, config/*.local.json. The lines of the file .worktreeinclude count, too."
    )
  ),
  link: Patterns.pipe(
    withDefault(
      [],
      "Folders of your checkout that the work tree sees read-only: node_modules. An agent without a sandbox gets a copy."
    )
  ),
  setup: optional(
    Word,
    "A command line for sh that prepares a new work tree: npm ci. It runs as confined as the agent, and again when it changes. A script of the project is read from your checkout."
  ),
  teardown: optional(Word, "A command line for sh that runs before the work tree is removed."),
  timeout: Span.pipe(withDefault("10 minutes", "How long setup and teardown may each take.")),
  ports: optional(
    whole(1, 100),
    "Number of ports that only this agent has: PORT_0, PORT_1 and so on in its environment, and PORT for the first."
  ),
  cache: Schema.Array(CacheFolder)
    .check(Schema.isMaxLength(MAX_PATTERNS, { message: `must contain at most ${MAX_PATTERNS} entries` }))
    .pipe(withDefault([], "Folders of the work tree that are kept when it is removed: .cache, target."))
})
export type WorktreeConfig = typeof WorktreeConfig.Type

const Worktree = Schema.Union([Schema.Boolean, WorktreeConfig])

/** The settings of `"worktree": true`. */
export const PLAIN_WORKTREE: WorktreeConfig = Schema.decodeSync(WorktreeConfig)({})

/** The settings of an agent's work tree; undefined if it has none. */
export const worktreeConfigOf = ({ worktree }: Pick<AgentConfig, "worktree">): WorktreeConfig | undefined =>
  typeof worktree === "object" ? worktree : worktree ? PLAIN_WORKTREE : undefined

export const AgentConfig = Schema.Struct({
  role: optional(Word, "What this agent is, in a few words; shown by `agentd ps`."),
  instructions: optional(Text, "Text that is part of each of its prompts."),
  prompt: optional(Word, "The standing task: in mode loop, the prompt of every run."),
  backend: described(BackendConfig, "The program or model that runs of this agent use."),
  fallback: Schema.Array(BackendConfig)
    .check(Schema.isMaxLength(MAX_FALLBACKS, { message: `must contain at most ${MAX_FALLBACKS} backends` }))
    .pipe(
      withDefault(
        [],
        'Backends to use while the provider of the agent\'s own backend is unavailable: another key, model or provider. The first available one is used. An entry without a type is the agent\'s own backend with these fields changed: [{ "keyEnv": "OTHER_KEY" }]. Model agents, and Claude Code with the same CLAUDE_CONFIG_DIR, continue their conversation. Other agents have a separate conversation with each backend.'
      )
    ),
  onLimit: Schema.Literals(["wait", "move", "stop"]).pipe(
    withDefault(
      "move",
      "What happens when its account reaches a usage limit: wait until the limit is lifted, move to a fallback (or wait if none is available), or stop permanently."
    )
  ),
  mode: Schema.Literals(["inbox", "loop"]).pipe(
    withDefault(
      "inbox",
      "inbox: runs when it has a message. loop: starts the next run as soon as the last one has ended."
    )
  ),
  autostart: Schema.Boolean.pipe(withDefault(true, "Whether the agent starts with the project.")),
  worktree: Worktree.pipe(
    withDefault(false, "Whether the agent works in its own git repository, which shares the objects of the project's.")
  ),
  maxConsecutiveErrors: whole(1, 10_000).pipe(
    withDefault(5, "Number of errors in a row that stop it permanently. A run that starts resets the count.")
  ),
  maxTotalErrors: whole(1, 1_000_000).pipe(withDefault(20, "Total number of errors that stop it permanently.")),
  backoff: BackoffConfig.pipe(withDefault({}, "How long the agent waits after an error.")),
  runTimeout: optional(
    SpanOrOff,
    "A run whose turns take longer in total is ended and counts as an error. Waits for a user do not count. Default for a command: 30 minutes. Default for agents that work in turns: off, because budget.perTurn limits each turn."
  ),
  interruptGrace: Span.pipe(withDefault("10 seconds", "How long a run has to end by itself after an interrupt.")),
  minRunInterval: Span.pipe(withDefault("1 second", "Minimum time between the starts of two runs.")),
  maxRunsPerHour: optional(whole(1, 100_000), "Maximum number of runs that start in an hour. Default: no limit."),
  idleTimeout: Span.pipe(
    withDefault(
      "5 minutes",
      "For agents that work in turns: how long a run waits for its next turn before it is ended gracefully."
    )
  ),
  approvals: ApprovalPolicy.pipe(withDefault({}, "Which of its tool calls need a user's approval.")),
  toolTimeout: Span.pipe(
    withDefault(
      "2 minutes",
      "How long a tool call of a model agent may run if the call names no timeout. Calls of other agents are limited by maxToolTimeout."
    )
  ),
  maxToolTimeout: Span.pipe(
    withDefault(
      "30 minutes",
      "How long any tool call of any agent may run; at most 30 minutes. The time that a call waits for a user does not count."
    )
  ),
  budget: BudgetConfig.pipe(
    withDefault({}, "What the agent may spend before it is ended. Its next start resets the count.")
  ),
  may: Schema.Array(Schema.Literals(VOICES)).pipe(
    withDefault(
      ["inbox", "message", "post", "report", "ask"],
      "What the agent may do through agentd: read its inbox, message agents, post to channels, report results, ask a person, spawn sub-agents."
    )
  ),
  can: Schema.Array(Name).pipe(
    withDefault(
      [],
      "Skills of the agent, in words of your choice. A plan's task that needs a skill goes to an agent that has it."
    )
  ),
  labels: Schema.Array(Name)
    .check(Schema.isMaxLength(MAX_LABELS, { message: `must contain at most ${MAX_LABELS} labels` }))
    .pipe(
      withDefault(
        [],
        "Groups of the agent, in words of your choice: `agentd restart --label web` restarts all agents of a group, in all projects."
      )
    ),
  limits: LimitsConfig.pipe(withDefault({}, "How much of the machine's resources a run may use.")),
  parent: optional(Name, "The agent that this is a sub-agent of. When the parent ends, the sub-agent ends."),
  output: OutputConfig.pipe(withDefault({}, "What is kept of a run's output."))
}).check(
  Schema.makeFilter((agent: { readonly mode: "inbox" | "loop"; readonly prompt?: string }) =>
    agent.mode === "loop" && agent.prompt === undefined
      ? { path: ["mode"], issue: 'is "loop", which needs a prompt: add "prompt" with the text of every run' }
      : true
  )
)
export type AgentConfig = typeof AgentConfig.Type

/**
 * The agent's backend with this index: 0 is the agent's own backend, the others are its fallbacks. An index without a
 * fallback gives the agent's own backend.
 */
export const backendAt = ({ backend, fallback }: Pick<AgentConfig, "backend" | "fallback">, index: number) =>
  index === 0 ? backend : (fallback[index - 1] ?? backend)
