/**
 * AgentConfig: the config of one agent, with every default filled in.
 */
import { Schema } from "effect"
import { BackendConfig } from "./BackendConfig.ts"
import { described, Name, optional, Text, whole, withDefault, Word } from "./Fields.ts"
import { LimitsConfig } from "./LimitsConfig.ts"
import { Span, SpanOrOff } from "./Span.ts"

export const BackoffConfig = Schema.Struct({
  base: Span.pipe(withDefault("2 seconds", "The wait after the first error in a row; it doubles with each.")),
  cap: Span.pipe(withDefault("60 seconds", "The longest wait.")),
  jitter: Schema.Finite.check(
    Schema.isBetween({ minimum: 0, maximum: 1 }, { message: "must be a number from 0 to 1" })
  ).pipe(withDefault(0, "How much of a wait is left to chance: 0 is none, 0.2 up to a fifth more or less.")),
  by: Schema.Literals(["failures", "streak"]).pipe(
    withDefault(
      "failures",
      "What makes a wait longer: each failure since a turn last came to its answer, or only errors in a row, which a start of a run clears."
    )
  )
})
export type BackoffConfig = typeof BackoffConfig.Type

export const OutputConfig = Schema.Struct({
  maxBytesPerRun: whole(1024, 1_073_741_824).pipe(
    withDefault(1_048_576, "How much output of one run is kept; what comes after it is counted and dropped.")
  ),
  tailLines: whole(1, 1000).pipe(withDefault(40, "How many last lines `status`, `why` and mails show."))
})
export type OutputConfig = typeof OutputConfig.Type

const Tokens = whole(1, 1_000_000_000_000)
const Usd = Schema.Finite.check(
  Schema.isBetween({ minimum: 0.0001, maximum: 1_000_000_000 }, { message: "must be a number above 0" })
)

/** Tokens and money of one period. */
const Amounts = Schema.Struct({
  tokens: optional(Tokens, "Input and output tokens."),
  usd: optional(Usd, "US dollars, where they are known.")
})

const off = Schema.Literal("off")

/** The limits of one turn; each can be off. */
const TurnAmounts = Schema.Struct({
  tokens: optional(Schema.Union([off, Tokens]), 'Input and output tokens; "off": no limit. Default: off.'),
  usd: optional(
    Schema.Union([off, Usd]),
    'US dollars, where they are known; "off": no limit. Default of an agent whose runs take turns: 25.'
  ),
  wallTime: optional(
    Schema.Union([off, Span]),
    'Time without the waits for a person; "off": no limit. Default of an agent whose runs take turns: 2 hours.'
  ),
  toolCalls: optional(
    Schema.Union([off, whole(1, 1_000_000_000)]),
    'Tool calls; "off": no limit. Default of an agent whose runs take turns: 1000.'
  )
})

const periods = {
  perTurn: optional(
    TurnAmounts,
    "What one turn may take: then it is interrupted, and its agent needs you. Nothing is lost: agentd retry, or a message, lets it go on."
  ),
  perDay: optional(Amounts, "What may be spent in a day of the machine's calendar."),
  perMonth: optional(Amounts, "What may be spent in a month of the machine's calendar."),
  whenSpent: optional(
    Schema.Literals(["wait", "stop"]),
    "When a day's or a month's part is spent: wait until the next one begins, or stop for good. Default: wait."
  )
}

/**
 * The budget of an agent in one incarnation, or of a conversation between two resets. An omitted
 * field sets no limit.
 */
export const BudgetConfig = Schema.Struct({
  tokens: optional(Tokens, "Input and output tokens."),
  toolCalls: optional(whole(1, 1_000_000_000), "Tool calls."),
  wallTime: optional(Span, "Time spent in turns."),
  usd: optional(Usd, "US dollars, where the backend says what it costs or its model has a price."),
  ...periods
})
export type BudgetConfig = typeof BudgetConfig.Type

export const MachineBudget = Schema.Struct({
  tokens: optional(Tokens, "Input and output tokens, of all that is in the log."),
  usd: optional(Usd, "US dollars, of all that is in the log."),
  ...periods
})

const Dollars = Schema.Finite.check(
  Schema.isBetween({ minimum: 0, maximum: 1_000_000 }, { message: "must be a number from 0 to 1000000" })
)

/** Prices of tokens, by model name. */
export const PricesConfig = Schema.Record(
  Word,
  Schema.Struct({
    input: described(Dollars, "USD for a million input tokens."),
    output: described(Dollars, "USD for a million output tokens."),
    cacheRead: optional(Dollars, "USD for a million input tokens from a cache. Default: as input."),
    cacheWrite: optional(Dollars, "USD for a million input tokens put into a cache. Default: as input.")
  })
).check(
  Schema.makeFilter((prices: object) => Object.keys(prices).length <= 1000, {
    message: "must hold at most 1000 models"
  })
)

/** The rules by which tool calls wait for a person. */
export const ApprovalPolicy = Schema.Struct({
  mode: Schema.Literals(["read_only", "auto", "full_access"]).pipe(
    withDefault(
      "auto",
      "read_only: calls without side effects run, the others are denied. auto: the others ask. full_access: all run."
    )
  ),
  always: Schema.Array(Word).pipe(withDefault([], "Tools that always ask, whatever the mode; * stands for any text.")),
  never: Schema.Array(Word).pipe(withDefault([], "Tools that never ask, whatever the mode; * stands for any text.")),
  timeout: SpanOrOff.pipe(
    withDefault("off", "How long a call waits for an answer; then it is refused, and you are told. off: for ever.")
  )
})
export type ApprovalPolicy = typeof ApprovalPolicy.Type

/** The tools that `agentd mcp` can offer an agent. */
export const VOICES = ["inbox", "message", "post", "report", "ask", "spawn"] as const
export type Voice = (typeof VOICES)[number]

/** Maximum number of backends of an agent besides its own. */
const MAX_FALLBACKS = 8

const MAX_LABELS = 20

const Worktree = Schema.Union([
  Schema.Boolean,
  Schema.Struct({ base: optional(Word, "The commit or branch that it starts from. Default: HEAD.") })
])

export const AgentConfig = Schema.Struct({
  role: optional(Word, "What this agent is, in a few words; shown by `agentd ps`."),
  instructions: optional(Text, "Goes into each of its prompts."),
  prompt: optional(Word, "The standing task: with mode loop the text of every run."),
  backend: described(BackendConfig, "How a run of this agent is made."),
  fallback: Schema.Array(BackendConfig)
    .check(Schema.isMaxLength(MAX_FALLBACKS, { message: `must hold at most ${MAX_FALLBACKS} backends` }))
    .pipe(
      withDefault(
        [],
        'Backends that take its place, the first that can be had, while the provider of the one before cannot: another key, model or provider. One without a type is its own backend with these fields in place of its own: [{ "keyEnv": "OTHER_KEY" }]. Model agents, and Claude Code with the same CLAUDE_CONFIG_DIR, go on with their conversation; others have one for each.'
      )
    ),
  onLimit: Schema.Literals(["wait", "move", "stop"]).pipe(
    withDefault(
      "move",
      "When its account has reached a limit on use: wait until it is lifted, move to a fallback (wait where none can be had), or stop for good."
    )
  ),
  mode: Schema.Literals(["inbox", "loop"]).pipe(
    withDefault("inbox", "inbox: runs when there is a message. loop: starts the next run as soon as one has ended.")
  ),
  autostart: Schema.Boolean.pipe(withDefault(true, "Whether it starts with the project.")),
  worktree: Worktree.pipe(
    withDefault(false, "Whether it works in a git repository of its own, which borrows the project's objects.")
  ),
  maxConsecutiveErrors: whole(1, 10_000).pipe(
    withDefault(5, "So many errors in a row stop it for good; a run that starts ends the row.")
  ),
  maxTotalErrors: whole(1, 1_000_000).pipe(withDefault(20, "So many errors in all stop it for good.")),
  backoff: BackoffConfig.pipe(withDefault({}, "How long it waits after an error.")),
  runTimeout: Span.pipe(
    withDefault(
      "30 minutes",
      "A run of a command that takes longer is ended and counts as an error. Where runs take turns, budget.perTurn limits each turn instead."
    )
  ),
  interruptGrace: Span.pipe(withDefault("10 seconds", "How long a run has to end by itself after an interrupt.")),
  minRunInterval: Span.pipe(withDefault("1 second", "The least time between the starts of two runs.")),
  maxRunsPerHour: optional(whole(1, 100_000), "How many runs it may start in an hour. Default: no such limit."),
  idleTimeout: Span.pipe(
    withDefault("5 minutes", "How long a run that takes turns waits for the next one before it is ended in order.")
  ),
  approvals: ApprovalPolicy.pipe(withDefault({}, "Which of its tool calls wait for a person.")),
  toolTimeout: Span.pipe(
    withDefault(
      "2 minutes",
      "How long a tool call of a model agent may run that names no time of its own. Calls of other agents have maxToolTimeout."
    )
  ),
  maxToolTimeout: Span.pipe(
    withDefault(
      "30 minutes",
      "How long any tool call may run, of every agent; 30 minutes at most. A call that waits for a person does not run."
    )
  ),
  budget: BudgetConfig.pipe(withDefault({}, "What it may spend before it is ended; its next start begins anew.")),
  may: Schema.Array(Schema.Literals(VOICES)).pipe(
    withDefault(
      ["inbox", "message", "post", "report", "ask"],
      "What it may do through agentd: read its inbox, message agents, post to channels, report results, ask a person, spawn sub-agents."
    )
  ),
  can: Schema.Array(Name).pipe(
    withDefault(
      [],
      "What it is able to do, in words of your own; a plan's task that asks for one goes to such an agent."
    )
  ),
  labels: Schema.Array(Name)
    .check(Schema.isMaxLength(MAX_LABELS, { message: `must hold at most ${MAX_LABELS} labels` }))
    .pipe(
      withDefault(
        [],
        "Groups that it belongs to, in words of your own: `agentd restart --label web` means all of them, in all projects."
      )
    ),
  limits: LimitsConfig.pipe(withDefault({}, "What a run of it may take of the machine.")),
  parent: optional(Name, "The agent that it is a sub-agent of: it ends with that one."),
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
 * Index 0 is the agent's own backend, the others are its fallbacks. An index without a fallback
 * gives its own backend.
 */
export const backendAt = ({ backend, fallback }: Pick<AgentConfig, "backend" | "fallback">, index: number) =>
  index === 0 ? backend : (fallback[index - 1] ?? backend)
