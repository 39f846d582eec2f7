/**
 * Budget: compares the usage of agents with their limits. Pure.
 *
 * When the limit of one resource is exceeded, no new turn starts. Usage of unlimited resources is also counted, so that
 * the user can see it.
 */
import { Duration } from "effect"
import type { AgentConfig, BudgetConfig } from "../../config/AgentConfig.ts"
import type { Spending } from "../../domain/Messages.ts"
import type { Usage } from "../../domain/UsageKinds.ts"

export interface Spent {
  /** Number of input and output tokens. */
  readonly tokens: number
  readonly toolCalls: number
  /** Total duration of turns, ms. */
  readonly wallTime: number
  readonly usd: number
}

/** Tokens and cost of one model. `input` includes the tokens of cache reads and writes. */
export interface ModelUsage {
  /** The model's name; empty if the run does not report it. */
  readonly model: string
  readonly input: number
  readonly output: number
  readonly cacheRead: number
  readonly cacheWrite: number
  readonly usd: number
}

/** Reported usage that is too high to be plausible. */
export type Unlikely = NonNullable<Usage["unlikely"]>

export type Expense = Partial<Spent> & {
  readonly models?: ReadonlyArray<ModelUsage>
  readonly unlikely?: Unlikely
}

export const ofModels = (models: ReadonlyArray<ModelUsage>): Expense =>
  models.length === 0
    ? {}
    : {
        tokens: models.reduce((sum, { input, output }) => sum + input + output, 0),
        usd: models.reduce((sum, { usd }) => sum + usd, 0),
        models
      }

export const nothing: Spent = { tokens: 0, toolCalls: 0, wallTime: 0, usd: 0 }

/** The usage in a rune `agent.usage`, without implausible usage. */
export const ofUsage = ({ tokens, tool_calls: toolCalls, usd, wall_time: wallTime }: Usage): Spent => ({
  tokens,
  toolCalls,
  wallTime,
  usd
})

/** Usage that counts toward the agent's own budget: all reported usage, even if agentd considers it implausible. */
export const ofOwn = (usage: Usage): Spent => add(ofUsage(usage), usage.unlikely ?? {})

export const add = (a: Spent, b: Partial<Spent>): Spent => ({
  tokens: a.tokens + (b.tokens ?? 0),
  toolCalls: a.toolCalls + (b.toolCalls ?? 0),
  wallTime: a.wallTime + (b.wallTime ?? 0),
  usd: a.usd + (b.usd ?? 0)
})

/** The resource whose limit is exceeded, with the fields of the event `budget_exhausted`. */
export interface Exhausted {
  readonly resource: "tokens" | "tool_calls" | "wall_time" | "usd"
  readonly spent: number
  readonly limit: number
}

/** The first resource whose limit is reached; undefined if there is none. */
export const exhausted = (limits: BudgetConfig, spent: Spent): Exhausted | undefined => {
  const rows: ReadonlyArray<readonly [Exhausted["resource"], number, number | undefined]> = [
    ["tokens", spent.tokens, limits.tokens],
    ["tool_calls", spent.toolCalls, limits.toolCalls],
    ["wall_time", spent.wallTime, limits.wallTime === undefined ? undefined : Duration.toMillis(limits.wallTime)],
    ["usd", spent.usd, limits.usd]
  ]
  for (const [resource, used, limit] of rows) {
    if (limit !== undefined && used >= limit) return { resource, spent: used, limit }
  }
  return undefined
}

/** Default limits of one turn, for backends whose runs have several turns. */
const PER_TURN = { wallTime: Duration.hours(2), toolCalls: 1_000, usd: 25 } as const

/** Default time limit of a run that is one turn. */
const RUN_TIME: Duration.Duration = Duration.minutes(30)

/** Whether the agent's runs have several turns. */
export const takesTurns = ({ backend }: Pick<AgentConfig, "backend">): boolean => backend.type !== "command"

/** The agent's budget, with the default limits of a turn. */
export const of = (config: Pick<AgentConfig, "backend" | "budget">): BudgetConfig =>
  takesTurns(config) ? { ...config.budget, perTurn: { ...PER_TURN, ...config.budget.perTurn } } : config.budget

/** Maximum duration of one turn of the agent, ms; undefined if there is no limit. */
export const turnTime = (config: Pick<AgentConfig, "backend" | "budget">): number | undefined => {
  const time = of(config).perTurn?.wallTime
  return time === undefined || time === "off" ? undefined : Duration.toMillis(time)
}

/** Maximum duration of a run, ms; undefined if there is no limit. A run that is one turn has a limit by default. */
export const runTime = (config: Pick<AgentConfig, "backend" | "runTimeout">): number | undefined => {
  const time = config.runTimeout ?? (takesTurns(config) ? "off" : RUN_TIME)
  return time === "off" ? undefined : Duration.toMillis(time)
}

export const shown = (spent: Spent): Spending => ({ ...spent })

export const limitsShown = ({ tokens, toolCalls, usd, wallTime }: BudgetConfig): Spending => ({
  tokens: tokens ?? null,
  toolCalls: toolCalls ?? null,
  wallTime: wallTime === undefined ? null : Duration.toMillis(wallTime),
  usd: usd ?? null
})
