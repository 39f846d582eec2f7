/**
 * Prices: token prices of models, in USD per million tokens of each kind. Pure.
 *
 * Each price in the table was read on a public page; the table names that page and the day. Prices change, and some
 * accounts have other prices, so `prices` in a config take precedence.
 *
 * Guarantees: a model that is neither in the table nor in a config has no price. A price is never guessed from the
 * price of another model.
 */
import { plainModel } from "../runs/gateway/Estimated.ts"
import { Context } from "effect"

export interface Price {
  /** Price of input tokens that did not come from a cache. */
  readonly input: number
  readonly output: number
  /** Price of tokens read from a cache. Undefined: the price `input` applies, and likewise for `cacheWrite`. */
  readonly cacheRead?: number | undefined
  readonly cacheWrite?: number | undefined
}

export type Prices = { readonly [model: string]: Price }

interface Line extends Price {
  readonly page: string
  /** Day on which the price was read on the page. */
  readonly read: string
}

const ANTHROPIC = "https://platform.claude.com/docs/en/about-claude/pricing"
const ANTHROPIC_ZH = "https://platform.claude.com/docs/zh-CN/about-claude/pricing"
const overview = (model: string) => `https://platform.claude.com/docs/zh-CN/models/${model}/overview`

/** Makes a row of the table. The price of cache writes applies to caches that last five minutes. */
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

/** Prefix of a provider, and date of a model snapshot, that some programs add to a model's name. */
const PREFIX = /^(?:anthropic|openai|google)\//
const SNAPSHOT = /-20\d{6}$/

/** Price of a model; undefined: no price is known. `own`: prices in the configs, the most specific config first. */
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

/** Number of tokens of each kind. `input` includes the tokens read from a cache and written to a cache. */
export interface Tokens {
  readonly input: number
  readonly output: number
  readonly cacheRead: number
  readonly cacheWrite: number
}

/** Cost of the tokens in USD. */
export const costOf = (price: Price, { cacheRead, cacheWrite, input, output }: Tokens): number =>
  ((input - cacheRead - cacheWrite) * price.input +
    cacheRead * (price.cacheRead ?? price.input) +
    cacheWrite * (price.cacheWrite ?? price.input) +
    output * price.output) /
  1e6

/** Prices from the user's own config, which apply to all projects. */
export const UserPrices = Context.Reference<Prices>("agentd/domain/UserPrices", { defaultValue: () => ({}) })
