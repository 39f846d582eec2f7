/**
 * Plausible: checks whether an agent can have used what it reports, given the duration of its turn. Pure.
 *
 * A request cannot have more tokens than the model's context window. The number of requests that a turn can make at
 * once is limited, and so is the rate of output. Usage within these limits counts in all budgets. Usage beyond them
 * counts only in the agent's own budget, so that one agent's false report does not exhaust the budgets of others.
 */

/** Usage in one report. `window`: size of the model's context window according to the report, tokens. */
export interface Said {
  readonly input: number
  readonly output: number
  readonly usd: number
  readonly window?: number | undefined
}

/** Plausible usage since the start of the turn. */
export interface Turn {
  /** When the turn began, ms since the epoch. */
  readonly began: number
  readonly input: number
  readonly output: number
  readonly usd: number
}

/** Sizes of a model's context window, tokens: the default, and the largest that exists. */
const [WINDOW, LARGEST_WINDOW] = [1_000_000, 4_000_000]
/**
 * How many requests with a full context window are plausible at the start of a turn: the CLI may run sub-agents, or sum
 * up several requests in one report.
 */
const AT_ONCE = 4
/**
 * Maximum plausible rates of a turn with all its sub-agents: requests with a full context window per second, and output
 * tokens per second.
 */
const [REQUESTS, WRITTEN] = [0.5, 5_000]
/** Output tokens and USD that are plausible for a turn of any duration. */
const [FREE_OUTPUT, FREE_USD] = [1_000_000, 100]
/** Maximum plausible cost of a turn, USD per second. */
const SPENT = 0.5

export const began = (at: number): Turn => ({ began: at, input: 0, output: 0, usd: 0 })

/** The turn with the usage added; undefined if the report is implausible. */
export const after = (turn: Turn, { input, output, usd, window = WINDOW }: Said, now: number): Turn | undefined => {
  const seconds = Math.max(0, now - turn.began) / 1_000
  const next = { ...turn, input: turn.input + input, output: turn.output + output, usd: turn.usd + usd }
  const full = Math.min(LARGEST_WINDOW, Math.max(WINDOW, window))
  return next.input <= full * (AT_ONCE + REQUESTS * seconds) &&
    next.output <= FREE_OUTPUT + WRITTEN * seconds &&
    next.usd <= FREE_USD + SPENT * seconds
    ? next
    : undefined
}
