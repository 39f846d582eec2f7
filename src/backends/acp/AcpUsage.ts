/**
 * AcpUsage: what an agent says it has spent, as differences. Pure.
 *
 * Agents tell tokens with the answer to a prompt, some of them with each request to their model, too; and the cost of
 * their session as a sum. Guarantees: what was told with the requests is not told again with the answer; a sum that
 * becomes smaller gives nothing back; a turn whose cost is said says so of its tokens.
 */
import type { RunEvent } from "../Backend.ts"
import * as Messages from "./AcpMessages.ts"

/** Knowledge of a session, for a daemon that hears it from there on. */
export interface KnownUsage {
  readonly model: string
  readonly cost: number
}

const NONE = { inputTokens: 0, outputTokens: 0, cacheRead: 0, cacheWrite: 0 }

const whole = ({ cacheRead = 0, cacheWrite = 0, inputTokens, outputTokens }: Messages.Spent) => ({
  inputTokens: Math.max(0, inputTokens),
  outputTokens: Math.max(0, outputTokens),
  cacheRead: Math.max(0, cacheRead),
  cacheWrite: Math.max(0, cacheWrite)
})

export class AcpUsage {
  /** As the session, or its newest update, names it. */
  model: string
  private cost: number
  /** How full the session's context is, as its newest update says. */
  private context: { readonly used: number; readonly window?: number } | undefined = undefined
  /** The cost of the turn under way is said by the agent. */
  private isPriced = false
  /** With the requests of the turn. */
  private told = NONE

  constructor({ cost, model }: KnownUsage = { cost: 0, model: "" }) {
    this.cost = cost
    this.model = model
  }

  get known(): KnownUsage {
    return { cost: this.cost, model: this.model }
  }

  begin(): void {
    this.isPriced = false
    this.told = NONE
  }

  /** A `usage_update`. */
  update(update: unknown, inTurn: boolean): ReadonlyArray<RunEvent> {
    const { _meta: meta, cost, size, used } = Messages.read(Messages.UsageUpdate, update) ?? {}
    this.model = meta?.["_claude/model"] ?? this.model
    if ((used ?? 0) > 0) this.context = { used: used!, ...((size ?? 0) > 0 ? { window: size! } : {}) }
    if (cost === undefined || cost === null || cost.currency !== "USD") return []
    const usd = Math.max(0, cost.amount - this.cost)
    this.cost = Math.max(this.cost, cost.amount)
    if (usd === 0 || !inTurn) return []
    this.isPriced = true
    return [{ _tag: "Usage", inputTokens: 0, outputTokens: 0, ...this.named, usd }]
  }

  /** A piece of an answer, which may tell of its request. */
  chunk(update: unknown): ReadonlyArray<RunEvent> {
    const usage = Messages.callUsageOf(update)
    if (usage === undefined) return []
    const now = whole(usage)
    this.told = {
      inputTokens: this.told.inputTokens + now.inputTokens,
      outputTokens: this.told.outputTokens + now.outputTokens,
      cacheRead: this.told.cacheRead + now.cacheRead,
      cacheWrite: this.told.cacheWrite + now.cacheWrite
    }
    return this.tell(now)
  }

  /** The prompt's answer: all of the turn. */
  answer(usage: Messages.Spent): ReadonlyArray<RunEvent> {
    const { told } = this
    const all = whole(usage)
    return this.tell({
      inputTokens: Math.max(0, all.inputTokens - told.inputTokens),
      outputTokens: Math.max(0, all.outputTokens - told.outputTokens),
      cacheRead: Math.max(0, all.cacheRead - told.cacheRead),
      cacheWrite: Math.max(0, all.cacheWrite - told.cacheWrite)
    })
  }

  private get named(): {
    readonly model?: string
    readonly context?: { readonly used: number; readonly window?: number }
  } {
    return {
      ...(this.model === "" ? {} : { model: this.model }),
      ...(this.context === undefined ? {} : { context: this.context })
    }
  }

  private tell({ cacheRead, cacheWrite, inputTokens, outputTokens }: typeof NONE): ReadonlyArray<RunEvent> {
    if (inputTokens + outputTokens === 0) return []
    const event: RunEvent = {
      _tag: "Usage",
      inputTokens,
      outputTokens,
      ...(cacheRead === 0 ? {} : { cacheRead }),
      ...(cacheWrite === 0 ? {} : { cacheWrite }),
      ...this.named,
      ...(this.isPriced ? { usd: 0 } : {})
    }
    return [event]
  }
}
