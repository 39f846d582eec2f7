/**
 * UsageMeter: computes the usage of one run, by model, from the run's events. Pure except for its own sums.
 *
 * If the run reports a cost, that cost is used. If not, the cost is estimated from the model's price, so that a USD
 * budget applies before the turn's end. A later report replaces the estimate. A model without a price has no cost.
 *
 * Guarantees: No event makes the sums smaller, or larger than the turn can plausibly have used so far. Implausible
 * usage is summed separately.
 */
import { plainModel } from "../../runs/gateway/Estimated.ts"
import type { RunEvent } from "../../runs/Backend.ts"
import * as Prices from "../../domain/Prices.ts"
import type { ModelUsage, Unlikely } from "../machines/Budget.ts"
import * as Plausible from "./Plausible.ts"

type Usage = Extract<RunEvent, { readonly _tag: "Usage" }>

export interface TurnUsage {
  readonly inputTokens: number
  readonly outputTokens: number
  readonly usd: number
}

/**
 * Sums of a run and of its turn. `said`: cost that the run reported. `estimated`: estimated cost since that report.
 * `counted`: cost that budgets already contain. All in USD.
 */
export interface KnownUsage {
  readonly turn: TurnUsage
  readonly said: number
  readonly estimated: number
  readonly counted: number
}

/** Maximum amounts in one event. Larger amounts cannot be true, and are reduced to these. */
const MOST_TOKENS = 1e10
const MOST_USD = 1e6
/** Maximum number of models in one rune. The other models are added up as `OTHERS`. */
const MAX_MODELS = 8
const OTHERS = "others"
const MAX_NAME = 100

/** An amount that a run reports. Invalid amounts count as 0. */
const amount = (said: number, most: number): number => (Number.isFinite(said) && said > 0 ? Math.min(said, most) : 0)

const NONE: TurnUsage = { inputTokens: 0, outputTokens: 0, usd: 0 }

/** The name that a run gives a model, cleaned and limited in length for the log. */
const named = (model: string | undefined): string =>
  (model ?? "")
    .replaceAll(/[\p{Cc}\p{Cf}]/gu, "")
    .slice(0, MAX_NAME)
    .toWellFormed()

const add = (a: ModelUsage | undefined, b: ModelUsage): ModelUsage =>
  a === undefined
    ? b
    : {
        model: b.model,
        input: a.input + b.input,
        output: a.output + b.output,
        cacheRead: a.cacheRead + b.cacheRead,
        cacheWrite: a.cacheWrite + b.cacheWrite,
        usd: a.usd + b.usd
      }

export class UsageMeter {
  private readonly priceOf: (model: string) => Prices.Price | undefined
  private turn = NONE
  /**
   * Cost of the run, USD. `said`: as the run reported it. `estimated`: estimated since that report. `counted`: already
   * counted.
   */
  private said = 0
  private estimated = 0
  private counted = 0
  /** The model of the newest request, as the run names it, and how much of its context window is used. */
  newest: { readonly model: string; readonly context: Usage["context"] } = { model: "", context: undefined }
  /** Usage that has not been reported yet, by model. */
  private untold = new Map<string, ModelUsage>()
  private unlikely: Unlikely | undefined = undefined
  /** Plausible usage of the current turn; undefined if the turn's start is unknown and it has reported no usage. */
  private believed: Plausible.Turn | undefined = undefined

  constructor(priceOf: (model: string) => Prices.Price | undefined) {
    this.priceOf = priceOf
  }

  begin(): void {
    this.turn = NONE
    this.said = 0
    this.estimated = 0
    this.counted = 0
    this.newest = { model: "", context: undefined }
    this.believed = undefined
  }

  get known(): KnownUsage {
    const { counted, estimated, said, turn } = this
    return { counted, estimated, said, turn }
  }

  recalls({ counted, estimated, said, turn }: KnownUsage): void {
    this.turn = turn
    this.said = said
    this.estimated = estimated
    this.counted = counted
  }

  /** Starts a turn at `now`, ms since the epoch. */
  opens(now: number): void {
    this.believed = Plausible.began(now)
  }

  /**
   * `now`: the current time if the run itself reports the usage, which must be plausible; omitted if a gateway counted
   * it.
   */
  take(event: Usage, now?: number): void {
    const input = amount(event.inputTokens, MOST_TOKENS)
    const output = amount(event.outputTokens, MOST_TOKENS)
    const cacheRead = Math.min(amount(event.cacheRead ?? 0, MOST_TOKENS), input)
    const cacheWrite = Math.min(amount(event.cacheWrite ?? 0, MOST_TOKENS), input - cacheRead)
    const name = named(event.model)
    const tokens = { input, output, cacheRead, cacheWrite }
    if (now !== undefined && !this.isLikely(name, tokens, event, now)) return
    const usd = this.cost(name, tokens, event.usd)
    const { context = this.newest.context } = event
    this.newest = { model: name === "" ? this.newest.model : plainModel(name), context }
    this.turn = {
      inputTokens: this.turn.inputTokens + input,
      outputTokens: this.turn.outputTokens + output,
      usd: this.turn.usd + usd
    }
    if (input + output + usd === 0) return
    const key = this.untold.has(name) || this.untold.size < MAX_MODELS ? name : OTHERS
    this.untold.set(key, add(this.untold.get(key), { model: key, ...tokens, usd }))
  }

  private isLikely(name: string, tokens: Prices.Tokens, { context, usd: said }: Usage, now: number): boolean {
    const price = this.priceOf(name)
    const { input, output } = tokens
    const usd = said === undefined ? (price === undefined ? 0 : Prices.costOf(price, tokens)) : amount(said, MOST_USD)
    const next = Plausible.after(
      (this.believed ??= Plausible.began(now)),
      { input, output, usd, window: context?.window },
      now
    )
    if (next !== undefined) {
      this.believed = next
      return true
    }
    const { tokens: before = 0, usd: spent = 0 } = this.unlikely ?? {}
    this.unlikely = { tokens: before + input + output, usd: spent + usd }
    return false
  }

  /** Returns the part of the cost that has not been counted yet, USD. */
  private cost(model: string, tokens: Prices.Tokens, said: number | undefined): number {
    if (said === undefined) {
      const price = this.priceOf(model)
      this.estimated += price === undefined ? 0 : Prices.costOf(price, tokens)
    } else {
      this.said += amount(said, MOST_USD)
      this.estimated = said === 0 ? this.estimated : this.said
    }
    const now = Math.max(this.counted, this.said, this.estimated)
    const more = now - this.counted
    this.counted = now
    return more
  }

  takeUntold(): ReadonlyArray<ModelUsage> {
    const models = [...this.untold.values()]
    this.untold = new Map()
    return models
  }

  takeUnlikely(): Unlikely | undefined {
    const { unlikely } = this
    this.unlikely = undefined
    return unlikely
  }

  takeTurn(): TurnUsage {
    const { believed, turn } = this
    this.turn = NONE
    // if the run does not report the start of the next turn, that turn's time is counted from this turn's start
    this.believed = believed === undefined ? undefined : Plausible.began(believed.began)
    return turn
  }
}
