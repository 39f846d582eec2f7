/**
 * Plausible: whether an agent can have spent what it says, in the time that its turn has taken. Pure.
 *
 * A request holds no more than the model's window, and so many requests run at one time; each writes at some rate. What
 * is within that counts for everybody. What is beyond is not believed: it counts against the agent's own budget alone,
 * so that one agent's word spends nobody else's.
 */

/** Spending that was said at one time; `window`: of the model, as it is said. */
export interface Said {
  readonly input: number
  readonly output: number
  readonly usd: number
  readonly window?: number | undefined
}

/** Spent since the turn began, as far as it was believed. */
export interface Turn {
  /** ms since the epoch */
  readonly began: number
  readonly input: number
  readonly output: number
  readonly usd: number
}

/** Tokens of a model's context, where its agent does not say; the largest that there is. */
const [WINDOW, LARGEST_WINDOW] = [1_000_000, 4_000_000]
/** Requests that a turn may begin with: of helpers at its side, and of what one report sums up. */
const AT_ONCE = 4
/** Full requests a second, and tokens written a second, by a turn with all its helpers. */
const [REQUESTS, WRITTEN] = [0.5, 5_000]
/** Tokens written, and USD, that no time is asked for. */
const [FREE_OUTPUT, FREE_USD] = [1_000_000, 100]
/** USD a second. */
const SPENT = 0.5

export const began = (at: number): Turn => ({ began: at, input: 0, output: 0, usd: 0 })

/** The turn with what was said; undefined: that is beyond belief. */
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
