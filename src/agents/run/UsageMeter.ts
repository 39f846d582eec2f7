/**
 * UsageMeter: what one run has spent, by model, as its events tell it. Pure but for its own sums.
 *
 * A cost that is said counts as it is said. Where none is, tokens of a model that has a price are estimated, lest a
 * budget in USD waits for the turn's end; what is said later takes the place of the estimate. A model without a price
 * has tokens and no cost.
 *
 * Guarantees: nothing that a run tells makes the sums smaller, or larger than its turn can truly have spent by now:
 * what is beyond that is a sum of its own.
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

/** Sums of a run, and of its turn: what it said, what was estimated since, what was counted. */
export interface KnownUsage {
  readonly turn: TurnUsage
  readonly said: number
  readonly estimated: number
  readonly counted: number
}

/** More than one event can cover: beyond belief, whatever a run says. */
const MOST_TOKENS = 1e10
const MOST_USD = 1e6
/** Models that one rune names; further ones are the others. */
const MAX_MODELS = 8
const OTHERS = "others"
const MAX_NAME = 100

/** An amount that a run reports; what is no amount counts for nothing. */
const amount = (said: number, most: number): number => (Number.isFinite(said) && said > 0 ? Math.min(said, most) : 0)

const NONE: TurnUsage = { inputTokens: 0, outputTokens: 0, usd: 0 }

/** A run's name of a model, fit for a log. */
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
  /** Of the run, as it was said, as it was estimated since, and as it was counted. */
  private said = 0
  private estimated = 0
  private counted = 0
  /** The model of the newest request, as the run names it, and how full its context is. */
  newest: { readonly model: string; readonly context: Usage["context"] } = { model: "", context: undefined }
  /** Spending that has not been told, by model. */
  private untold = new Map<string, ModelUsage>()
  private unlikely: Unlikely | undefined = undefined
  /** Of the turn under way; undefined: it has said nothing, and nobody knows when it began. */
  private believed: Plausible.Turn | undefined = undefined

  constructor(priceOf: (model: string) => Prices.Price | undefined) {
    this.priceOf = priceOf
  }

  /** A run begins: its sums are its own. */
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

  /** A turn begins. */
  opens(now: number): void {
    this.believed = Plausible.began(now)
  }

  /** `now`: it is the run's own word, which is held against what is possible; left out: it was counted by others. */
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

  /** The part of the cost that has not been counted yet. */
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

  /** Answers with the untold spending, once. */
  takeUntold(): ReadonlyArray<ModelUsage> {
    const models = [...this.untold.values()]
    this.untold = new Map()
    return models
  }

  /** Answers with what was not believed, once. */
  takeUnlikely(): Unlikely | undefined {
    const { unlikely } = this
    this.unlikely = undefined
    return unlikely
  }

  /** Answers with the sums of the turn, once. */
  takeTurn(): TurnUsage {
    const { believed, turn } = this
    this.turn = NONE
    // a run that does not say when the next one begins has had the time since this one did
    this.believed = believed === undefined ? undefined : Plausible.began(believed.began)
    return turn
  }
}
