/**
 * Budgets: an agent that has spent what its file allows ends, in the midst of its turn, too, and
 * begins no further one until somebody starts it anew. What it spent is what the log says.
 */
import { Duration, Schema } from "effect"
import { Span } from "../../../src/config/Span.ts"
import type { Rune } from "../../../src/core/event-log/Rune.ts"
import type { Check, Verdicts } from "./Check.ts"

/** As the project's file has it. */
export interface Budget {
  readonly tokens?: number
  readonly toolCalls?: number
  readonly wallTime?: string
}

interface Spent {
  tokens: number
  toolCalls: number
  wallTime: number
}

export class Budgets implements Check {
  private readonly verdicts: Verdicts
  private readonly budgetOf: (agent: string) => Budget | undefined
  private readonly spent = new Map<string, Spent>()
  /** Agents whose next news has to be their end. */
  private readonly over = new Map<string, string>()
  private readonly ended = new Set<string>()

  /** `budgetOf`: undefined where the file says nothing. */
  constructor(verdicts: Verdicts, budgetOf: (agent: string) => Budget | undefined) {
    this.verdicts = verdicts
    this.budgetOf = budgetOf
  }

  rune({ actor, eventId, kind, payload, stream }: Rune): void {
    const agent = actor.slice(actor.indexOf("/") + 1)
    const key = `${stream} ${agent}`
    if (kind === "agent.spawning") {
      this.spent.delete(key)
      this.ended.delete(key)
    }
    if (kind === "agent.terminated" || kind === "agent.failed") this.ended.add(key)
    if (kind === "agent.usage") this.uses(agent, key, payload, eventId)
    else if (actor.startsWith("agent/")) this.over.delete(key)
    if (kind !== "turn.started") return
    const over = this.exhausted(agent, this.spent.get(key))
    if (over !== undefined)
      this.verdicts.broken("who has spent its budget begins nothing", `${agent}: ${over}, rune ${eventId}`)
  }

  private uses(agent: string, key: string, payload: Rune["payload"], eventId: number): void {
    const over = this.over.get(key)
    if (over !== undefined)
      this.verdicts.broken("who has spent its budget ends", `${agent}: ${over}, then rune ${eventId}`)
    const wasOver = this.exhausted(agent, this.spent.get(key)) !== undefined
    this.used(key, payload)
    const isOver = wasOver ? undefined : this.exhausted(agent, this.spent.get(key))
    // what its last run still spends ends nothing more
    if (isOver === undefined || this.ended.has(key)) return
    this.verdicts.sometimes("a budget is spent")
    this.over.set(key, isOver)
  }

  private used(key: string, payload: Rune["payload"]): void {
    const { tokens, tool_calls, wall_time } = payload as { readonly [field: string]: number }
    const spent = this.spent.get(key) ?? { tokens: 0, toolCalls: 0, wallTime: 0 }
    this.spent.set(key, {
      tokens: spent.tokens + tokens!,
      toolCalls: spent.toolCalls + tool_calls!,
      wallTime: spent.wallTime + wall_time!
    })
  }

  private exhausted(agent: string, spent: Spent | undefined): string | undefined {
    const budget = this.budgetOf(agent)
    if (budget === undefined || spent === undefined) return undefined
    const { tokens = Infinity, toolCalls = Infinity, wallTime } = budget
    if (spent.tokens >= tokens) return `${spent.tokens} of ${tokens} tokens`
    if (spent.toolCalls >= toolCalls) return `${spent.toolCalls} of ${toolCalls} tool calls`
    const most = wallTime === undefined ? Infinity : Duration.toMillis(Schema.decodeSync(Span)(wallTime))
    return spent.wallTime >= most ? `${spent.wallTime} of ${most} ms` : undefined
  }
}
