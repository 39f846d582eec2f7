/**
 * AcpUsage: turns the usage that an agent reports into differences. Pure.
 *
 * Agents report tokens with the answer to a prompt. One agent reports a sum since its process began, and some also
 * report each request to their model. The cost of a session is a sum over all processes of the session.
 *
 * Guarantees: usage that was reported with a request is not emitted again with the answer. A sum
 * that becomes smaller never gives a negative difference. If the agent reports the cost of a turn,
 * the tokens of the turn are emitted with `usd: 0`, so that no price is added for them.
 */
import type { RunEvent } from "../Backend.ts"
import * as Messages from "./AcpMessages.ts"
import type * as AcpMeta from "./AcpMeta.ts"

/** State of a session's usage. Stored with a checkpoint, for a daemon that resumes the agent. */
export interface KnownUsage {
  readonly model: string
  readonly cost: number
  readonly meters?: boolean
  /** Number of tokens since the process began, if the agent reports this sum. */
  readonly total?: typeof NONE | undefined
}

const MAX_SESSIONS = 1_000

/** Costs of sessions as last reported, for later processes of the same sessions. */
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
  /** Name of the model, from the start of the session or from its newest update. */
  model: string
  private cost: number
  private remembers: (cost: number) => void = () => undefined
  /**
   * Set when a session is resumed, until its new process reports the first cost. "unknown": the earlier cost of the
   * session is unknown.
   */
  private resumed: "known" | "unknown" | undefined = undefined
  /** True if the agent reports tokens. A turn without tokens is then suspicious. */
  meters: boolean
  private total: typeof NONE | undefined
  /** Number of tokens in the session's context, from its newest update. */
  private context: { readonly used: number; readonly window?: number } | undefined = undefined
  /** True if the agent reports the cost of the current turn. */
  private isPriced = false
  /** Tokens that were reported with single requests of the turn. */
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

  /** A session was opened. `resume`: the session that should have been resumed. */
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
    // some agents report their cost while they load the session
    if (!goesOn || this.cost > 0) return
    const before = costs.get(resume.sessionId)
    this.cost = before ?? 0
    this.resumed = before === undefined ? "unknown" : "known"
  }

  /** True if tokens of the current turn have been reported. */
  get isTold(): boolean {
    return this.told.inputTokens + this.told.outputTokens > 0
  }

  /** True if the agent reports a sum, and this answer repeats the last one: the turn used no tokens. */
  repeats({ inputTokens, outputTokens }: Messages.Spent): boolean {
    const { total } = this
    return total !== undefined && inputTokens === total.inputTokens && outputTokens === total.outputTokens
  }

  begin(): void {
    this.isPriced = false
    this.told = NONE
  }

  /** Handles a `usage_update`. */
  update(update: unknown, inTurn: boolean): ReadonlyArray<RunEvent> {
    const { _meta: meta, cost, size, used } = Messages.read(Messages.UsageUpdate, update) ?? {}
    this.model = meta?.["_claude/model"] ?? this.model
    if ((used ?? 0) > 0) this.context = { used: used!, ...((size ?? 0) > 0 ? { window: size! } : {}) }
    if (cost === undefined || cost === null || cost.currency !== "USD") return []
    const { resumed } = this
    this.resumed = undefined
    // first cost that the new process of a resumed session reports: if the earlier cost is unknown, this is only the
    // starting point
    if (resumed === "unknown") this.cost = cost.amount
    // if the reported cost is lower than the known cost, the agent has started to count from zero
    else if (resumed === "known" && cost.amount < this.cost) this.cost = 0
    const usd = Math.max(0, cost.amount - this.cost)
    this.cost = Math.max(this.cost, cost.amount)
    this.remembers(this.cost)
    if (usd === 0 || !inTurn) return []
    this.isPriced = true
    return [{ _tag: "Usage", inputTokens: 0, outputTokens: 0, ...this.named, usd }]
  }

  /** Handles a part of an answer, which can report the usage of its request. */
  chunk(update: unknown): ReadonlyArray<RunEvent> {
    const usage = Messages.callUsageOf(update)
    if (usage === undefined) return []
    const now = whole(usage)
    const { told } = this
    this.told = each((of) => told[of] + now[of])
    return this.tell(now)
  }

  /** Handles a message that reports the usage since the last report. */
  difference(usage: AcpMeta.Usage | undefined): ReadonlyArray<RunEvent> {
    if (usage === undefined) return []
    const { cacheRead = 0, cacheWrite = 0, input: inputTokens, model, output: outputTokens, usd } = usage
    this.model = model ?? this.model
    const now = { inputTokens, outputTokens, cacheRead, cacheWrite }
    const { told } = this
    this.told = each((of) => told[of] + now[of])
    const events = this.tell(now)
    return usd === undefined ? events : events.map((event) => ({ ...event, usd }))
  }

  /** Handles the prompt's answer, which reports the whole turn. */
  answer(usage: Messages.Spent): ReadonlyArray<RunEvent> {
    const own = this.difference(usage.own)
    const all = whole(usage)
    const spent = less(all, this.total ?? NONE)
    if (this.total !== undefined && all.inputTokens + all.outputTokens > 0) this.total = all
    return [...own, ...this.tell(less(spent, this.told))]
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
