/**
 * UsageMeter: the usage of one run, by model, from its events. Pure except for its own sums.
 *
 * A reported cost counts as reported. Without one, the cost is estimated if the model has a price, so that a budget in
 * USD need not wait for the turn's end. A later report replaces the estimate. A model without a price has no cost.
 *
 * Guarantees: no event of a run makes the sums smaller, or larger than its turn can have spent by now. Usage beyond
 * that is summed separately.
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

/** Sums of a run and its turn: the reported cost, the estimate since then, and the counted cost; in USD. */
export interface KnownUsage {
  readonly turn: TurnUsage
  readonly said: number
  readonly estimated: number
  readonly counted: number
}

/** Limits of one event: larger amounts are not believed, whatever a run reports. */
const MOST_TOKENS = 1e10
const MOST_USD = 1e6
/** Maximum number of models that one rune names; the others are summed up. */
const MAX_MODELS = 8
const OTHERS = "others"
const MAX_NAME = 100

/** An amount that a run reports. Invalid amounts count as 0. */
const amount = (said: number, most: number): number => (Number.isFinite(said) && said > 0 ? Math.min(said, most) : 0)

const NONE: TurnUsage = { inputTokens: 0, outputTokens: 0, usd: 0 }

/** A run's name of a model, cleaned and bounded for the log. */
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
  /** Cost of the run in USD: as reported, as estimated since then, and as counted. */
  private said = 0
  private estimated = 0
  private counted = 0
  /** The model of the newest request, as the run names it, and how full the context is. */
  newest: { readonly model: string; readonly context: Usage["context"] } = { model: "", context: undefined }
  /** Usage that is not reported yet, by model. */
  private untold = new Map<string, ModelUsage>()
  private unlikely: Unlikely | undefined = undefined
  /** Plausible usage of the current turn; undefined if it has reported none, and its start is unknown. */
  private believed: Plausible.Turn | undefined = undefined

  constructor(priceOf: (model: string) => Prices.Price | undefined) {
    this.priceOf = priceOf
  }

  /** Begins a run, with sums of its own. */
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

  /** Begins a turn at `now`, ms since the epoch. */
  opens(now: number): void {
    this.believed = Plausible.began(now)
  }

  /** `now`: set if the run reports the usage, which must then be plausible; omitted if a gateway counted it. */
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

  /** The part of the cost that is not counted yet, USD. */
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

  /** Returns the unreported usage, once. */
  takeUntold(): ReadonlyArray<ModelUsage> {
    const models = [...this.untold.values()]
    this.untold = new Map()
    return models
  }

  /** Returns the implausible usage, once. */
  takeUnlikely(): Unlikely | undefined {
    const { unlikely } = this
    this.unlikely = undefined
    return unlikely
  }

  /** Returns the sums of the turn, once. */
  takeTurn(): TurnUsage {
    const { believed, turn } = this
    this.turn = NONE
    // for a run that does not report the next turn's start, the time counts from this turn's start
    this.believed = believed === undefined ? undefined : Plausible.began(believed.began)
    return turn
  }
}
