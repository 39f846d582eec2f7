/**
 * Prices: what a model's tokens cost, in USD for a million of each kind. Pure.
 *
 * The table holds only lines that somebody has read on a public page, each with that page and the day on which it was
 * read; prices change, and some accounts have others. A config's own `prices` come first.
 *
 * Guarantees: a model that is not in the table, nor in a config, has no price: none is guessed from another's.
 */
import { plainModel } from "../runs/gateway/Estimated.ts"
import { Context } from "effect"

export interface Price {
  /** Tokens that no cache gave. */
  readonly input: number
  readonly output: number
  /** Left out: as `input`. */
  readonly cacheRead?: number | undefined
  readonly cacheWrite?: number | undefined
}

export type Prices = { readonly [model: string]: Price }

interface Line extends Price {
  readonly page: string
  /** The day on which it was read. */
  readonly read: string
}

const ANTHROPIC = "https://platform.claude.com/docs/en/about-claude/pricing"
const ANTHROPIC_ZH = "https://platform.claude.com/docs/zh-CN/about-claude/pricing"
const overview = (model: string) => `https://platform.claude.com/docs/zh-CN/models/${model}/overview`

/** Cache writes are those for five minutes. */
const line = (
  page: string,
  [input, cacheWrite, cacheRead, output]: readonly [number, number, number, number]
): Line => ({ input, output, cacheRead, cacheWrite, page, read: "2026-11-24" })

export const TABLE: { readonly [model: string]: Line } = {
  "claude-fable-5-1": line(ANTHROPIC, [10, 12.5, 0.25, 50]),
  "claude-fable-5": line(ANTHROPIC, [10, 12.5, 1, 50]),
  "claude-opus-5-5": line(overview("opus-5-5"), [4, 5, 0.2, 20]),
  "claude-opus-5": line(ANTHROPIC, [5, 6.25, 0.5, 25]),
  "claude-opus-4-8": line(ANTHROPIC, [5, 6.25, 0.5, 25]),
  "claude-opus-4-7": line(ANTHROPIC, [5, 6.25, 0.5, 25]),
  "claude-opus-4-6": line(ANTHROPIC, [5, 6.25, 0.5, 25]),
  "claude-opus-4-5": line(ANTHROPIC, [5, 6.25, 0.5, 25]),
  "claude-opus-4-1": line(ANTHROPIC, [15, 18.75, 1.5, 75]),
  "claude-sonnet-5-5": line(overview("sonnet-5-5"), [2, 2.5, 0.2, 10]),
  "claude-sonnet-5": line(overview("sonnet-5"), [2, 2.5, 0.2, 10]),
  "claude-sonnet-4-6": line(ANTHROPIC_ZH, [3, 3.75, 0.3, 15]),
  "claude-haiku-4-5": line(ANTHROPIC_ZH, [1, 1.25, 0.1, 5])
}

/** Where a program says which provider's model it is, and the day of the model's snapshot. */
const PREFIX = /^(?:anthropic|openai|google)\//
const SNAPSHOT = /-20\d{6}$/

/** Undefined: the model is unpriced. `own`: what configs say, the nearest first. */
export const priceOf = (model: string, ...own: ReadonlyArray<Prices>): Price | undefined => {
  const told = plainModel(model)
  const plain = told.replace(PREFIX, "")
  const names = [told, plain, plain.replace(SNAPSHOT, "")]
  for (const prices of [...own, TABLE]) {
    const name = names.find((one) => Object.hasOwn(prices, one))
    if (name !== undefined) return prices[name]
  }
  return undefined
}

/** The parts of a cache are in the input. */
export interface Tokens {
  readonly input: number
  readonly output: number
  readonly cacheRead: number
  readonly cacheWrite: number
}

/** USD. */
export const costOf = (price: Price, { cacheRead, cacheWrite, input, output }: Tokens): number =>
  ((input - cacheRead - cacheWrite) * price.input +
    cacheRead * (price.cacheRead ?? price.input) +
    cacheWrite * (price.cacheWrite ?? price.input) +
    output * price.output) /
  1e6

/** The prices that the user's own config names, for all projects. */
export const UserPrices = Context.Reference<Prices>("agentd/domain/UserPrices", { defaultValue: () => ({}) })
