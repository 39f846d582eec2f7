/**
 * Plausible: whether an agent can have spent what it reports in the time that its turn has taken. Pure.
 *
 * A request has at most the tokens of the model's window. A limited number of requests run at one time, and each writes
 * at a limited rate. Usage within these limits counts for everyone. Usage beyond them counts only against the agent's
 * own budget, so that one agent's false report does not use up the budgets of others.
 */

/** Usage reported at one time. `window`: the model's context window, as reported. */
export interface Said {
  readonly input: number
  readonly output: number
  readonly usd: number
  readonly window?: number | undefined
}

/** Plausible usage since the turn began. */
export interface Turn {
  /** ms since the epoch */
  readonly began: number
  readonly input: number
  readonly output: number
  readonly usd: number
}

/** Tokens of a model's context: the default, and the largest that exists. */
const [WINDOW, LARGEST_WINDOW] = [1_000_000, 4_000_000]
/** Number of requests with which a turn may begin: its helpers, and those that one report sums up. */
const AT_ONCE = 4
/** Full requests per second, and output tokens per second, of a turn with all its helpers. */
const [REQUESTS, WRITTEN] = [0.5, 5_000]
/** Output tokens, and USD, that need no time. */
const [FREE_OUTPUT, FREE_USD] = [1_000_000, 100]
/** USD per second. */
const SPENT = 0.5

export const began = (at: number): Turn => ({ began: at, input: 0, output: 0, usd: 0 })

/** The turn including the reported usage; undefined if that is implausible. */
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
