/**
 * Plausible: checks whether an agent can have used what it reports, given the duration of its turn. Pure.
 *
 * A request has at most the tokens of the model's context window. The number of concurrent requests and the output rate
 * of each are limited. Usage within these limits counts in all budgets. Usage beyond them counts only in the agent's
 * own budget, so that one agent's false report does not exhaust the budgets of others.
 */

/** Usage in one report. `window`: reported size of the model's context window, tokens. */
export interface Said {
  readonly input: number
  readonly output: number
  readonly usd: number
  readonly window?: number | undefined
}

/** Plausible usage since the start of the turn. */
export interface Turn {
  /** Ms since the epoch. */
  readonly began: number
  readonly input: number
  readonly output: number
  readonly usd: number
}

/** Sizes of a model's context window, tokens: the default, and the largest that exists. */
const [WINDOW, LARGEST_WINDOW] = [1_000_000, 4_000_000]
/**
 * Number of full requests that are plausible at the start of a turn: sub-agents of the CLI, and requests summed up in
 * one report.
 */
const AT_ONCE = 4
/** Maximum plausible rates of a turn with all its helpers: full requests per second, and output tokens per second. */
const [REQUESTS, WRITTEN] = [0.5, 5_000]
/** Output tokens and USD that are plausible at any time. */
const [FREE_OUTPUT, FREE_USD] = [1_000_000, 100]
/** Maximum plausible cost, USD per second. */
const SPENT = 0.5

export const began = (at: number): Turn => ({ began: at, input: 0, output: 0, usd: 0 })

/** Undefined if the report is implausible. */
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
