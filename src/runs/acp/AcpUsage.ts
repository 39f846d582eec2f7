/**
 * AcpUsage: what an agent says it has spent, as differences. Pure.
 *
 * Agents tell tokens with the answer to a prompt, one of them as a sum since its process began, some with each request
 * to their model, too; and the cost of their session as a sum, over all of its processes. Guarantees: what was told with the requests is not told again with the answer; a sum that
 * becomes smaller gives nothing back; a turn whose cost is said says so of its tokens.
 */
import type { RunEvent } from "../Backend.ts"
import * as Messages from "./AcpMessages.ts"

/** Knowledge of a session, for a daemon that hears it from there on. */
export interface KnownUsage {
  readonly model: string
  readonly cost: number
  readonly meters?: boolean
  /** Tokens since the process began, where the agent tells such sums. */
  readonly total?: typeof NONE | undefined
}

const MAX_SESSIONS = 1_000

/** The costs of sessions as they were said last, for further processes of the same ones. */
export class SessionCosts {
  private readonly costs = new Map<string, number>()

  get(sessionId: string): number | undefined {
    return this.costs.get(sessionId)
  }

  set(sessionId: string, cost: number): void {
    this.costs.delete(sessionId)
    if (cost > 0) this.costs.set(sessionId, cost)
    if (this.costs.size > MAX_SESSIONS) this.costs.delete(this.costs.keys().next().value!)
  }
}

const NONE = { inputTokens: 0, outputTokens: 0, cacheRead: 0, cacheWrite: 0 }

const each = (count: (of: keyof typeof NONE) => number): typeof NONE => ({
  inputTokens: Math.max(0, count("inputTokens")),
  outputTokens: Math.max(0, count("outputTokens")),
  cacheRead: Math.max(0, count("cacheRead")),
  cacheWrite: Math.max(0, count("cacheWrite"))
})

const whole = (spent: Messages.Spent) => each((of) => spent[of] ?? 0)

const less = (all: typeof NONE, known: typeof NONE) => each((of) => all[of] - known[of])

export class AcpUsage {
  /** As the session, or its newest update, names it. */
  model: string
  private cost: number
  private remembers: (cost: number) => void = () => undefined
  /** Set until the first sum of the cost of a further process of its session; "unknown": nobody knows the one before it. */
  private resumed: "known" | "unknown" | undefined = undefined
  /** True of an agent that tells tokens: where a turn has none, something is amiss. */
  meters: boolean
  private total: typeof NONE | undefined
  /** How full the session's context is, as its newest update says. */
  private context: { readonly used: number; readonly window?: number } | undefined = undefined
  /** The cost of the turn under way is said by the agent. */
  private isPriced = false
  /** With the requests of the turn. */
  private told = NONE

  constructor({ cost, meters = false, model, total }: KnownUsage = { cost: 0, model: "" }) {
    this.cost = cost
    this.model = model
    this.meters = meters
    this.total = total
  }

  get known(): KnownUsage {
    const { cost, meters, model, total } = this
    return { cost, meters, model, ...(total === undefined ? {} : { total }) }
  }

  /** Counts a session's spending as its agent tells it: `resume`: the session that it was to go on with. */
  opens(
    { isSum, sessionId }: { readonly isSum: boolean; readonly sessionId: string },
    resume: { readonly sessionId: string; readonly fork: boolean } | undefined,
    costs: SessionCosts
  ): void {
    this.remembers = (cost) => costs.set(sessionId, cost)
    if (isSum) {
      this.meters = true
      this.total ??= NONE
    }
    const goesOn = resume !== undefined && (resume.fork || resume.sessionId === sessionId)
    // some say their cost as they load the session
    if (!goesOn || this.cost > 0) return
    const before = costs.get(resume.sessionId)
    this.cost = before ?? 0
    this.resumed = before === undefined ? "unknown" : "known"
  }

  /** Tokens of the turn under way are told. */
  get isTold(): boolean {
    return this.told.inputTokens + this.told.outputTokens > 0
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
    const { resumed } = this
    this.resumed = undefined
    // the first sum of a further process: where nobody knows the one before it only says where to count from
    if (resumed === "unknown") this.cost = cost.amount
    // and one that is smaller is counted anew
    else if (resumed === "known" && cost.amount < this.cost) this.cost = 0
    const usd = Math.max(0, cost.amount - this.cost)
    this.cost = Math.max(this.cost, cost.amount)
    this.remembers(this.cost)
    if (usd === 0 || !inTurn) return []
    this.isPriced = true
    return [{ _tag: "Usage", inputTokens: 0, outputTokens: 0, ...this.named, usd }]
  }

  /** A piece of an answer, which may tell of its request. */
  chunk(update: unknown): ReadonlyArray<RunEvent> {
    const usage = Messages.callUsageOf(update)
    if (usage === undefined) return []
    const now = whole(usage)
    const { told } = this
    this.told = each((of) => told[of] + now[of])
    return this.tell(now)
  }

  /** The prompt's answer: all of the turn. */
  answer(usage: Messages.Spent): ReadonlyArray<RunEvent> {
    const all = whole(usage)
    const spent = less(all, this.total ?? NONE)
    if (this.total !== undefined && all.inputTokens + all.outputTokens > 0) this.total = all
    return this.tell(less(spent, this.told))
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
    this.meters = true
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
