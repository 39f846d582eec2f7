/**
 * Limits: computes which limits apply to an agent, and how much of each is spent. Pure.
 */
import { Duration } from "effect"
import type { BudgetConfig } from "../config/AgentConfig.ts"
import type { Period, Reach, Resource, Whose } from "../domain/SpendingLimits.ts"
import * as Calendar from "../domain/Calendar.ts"
import { type Account, present, type Sum } from "./SpendingTotals.ts"

interface Limit {
  readonly period: Period
  readonly label: string
  readonly sum: Sum
  readonly tokens?: number | undefined
  readonly usd?: number | undefined
  readonly tool_calls?: number | undefined
  readonly wall_time?: number | undefined
}

const RESOURCES: ReadonlyArray<Resource> = ["tokens", "usd", "tool_calls", "wall_time"]

const spentOf = (sum: Sum, resource: Resource): number => {
  switch (resource) {
    case "tokens":
      return sum.tokens
    case "usd":
      return sum.usd
    case "tool_calls":
      return sum.toolCalls
    case "wall_time":
      return sum.wallTime
  }
}

const on = <A>(limit: A | "off" | undefined): A | undefined => (limit === "off" ? undefined : limit)

const turnIn = ({ label, sum }: Account["turn"], perTurn: NonNullable<BudgetConfig["perTurn"]>): Limit => {
  const time = on(perTurn.wallTime)
  return {
    period: "turn",
    label,
    sum,
    tokens: on(perTurn.tokens),
    usd: on(perTurn.usd),
    tool_calls: on(perTurn.toolCalls),
    wall_time: time === undefined ? undefined : Duration.toMillis(time)
  }
}

const limitsIn = (budget: BudgetConfig, account: Account, now: number): ReadonlyArray<Limit> => {
  const day = Calendar.dayOf(now)
  const { perDay, perMonth, perTurn, tokens, toolCalls, usd, wallTime } = budget
  return [
    ...(perTurn === undefined ? [] : [turnIn(account.turn, perTurn)]),
    ...(perDay === undefined ? [] : [{ period: "day" as const, ...present(account.day, day, day), ...perDay }]),
    ...(perMonth === undefined
      ? []
      : [{ period: "month" as const, ...present(account.month, day, Calendar.monthOf(day)), ...perMonth }]),
    {
      period: "total" as const,
      label: "",
      sum: account.total,
      tokens,
      usd,
      tool_calls: toolCalls,
      wall_time: wallTime === undefined ? undefined : Duration.toMillis(wallTime)
    }
  ]
}

const untilOf = (period: Period, now: number): number | null =>
  period === "day" ? Calendar.dayAfter(now) : period === "month" ? Calendar.monthAfter(now) : null

export const reaches = (whose: Whose, budget: BudgetConfig, account: Account, now: number): ReadonlyArray<Reach> =>
  limitsIn(budget, account, now).flatMap((limit) =>
    RESOURCES.flatMap((resource): ReadonlyArray<Reach> => {
      const most = limit[resource]
      if (most === undefined) return []
      const { label, period, sum } = limit
      return [
        {
          whose,
          period,
          label,
          resource,
          spent: spentOf(sum, resource),
          limit: most,
          until: untilOf(period, now),
          stops: budget.whenSpent === "stop"
        }
      ]
    })
  )

/** Minimum number of earlier turns for a comparison, and the multiple of their cost at which a turn is reported. */
const [LEAST, TIMES] = [3, 10]

/**
 * Reports a turn that has cost ten times the median of the agent's earlier turns, in USD if known, otherwise in tokens.
 * Undefined for any other turn.
 */
export const unusual = ({ turn, usual = [] }: Account): Reach | undefined => {
  const resource = turn.sum.usd > 0 ? "usd" : "tokens"
  const costs = usual.map((one) => one[resource]).filter((cost) => cost > 0)
  const median = costs.toSorted((a, b) => a - b)[Math.floor(costs.length / 2)]
  if (median === undefined || costs.length < LEAST || turn.sum[resource] < TIMES * median) return undefined
  const of = { whose: "agent", period: "turn", label: turn.label, resource, until: null, stops: false } as const
  return {
    ...of,
    spent: turn.sum[resource],
    limit: TIMES * median,
    mark: `the turn has cost ${TIMES} times the usual amount`
  }
}

export const isSpent = ({ limit, spent }: Reach): boolean => spent >= limit

/**
 * Whether the limit prevents agents from beginning turns. A limit per turn only ends that turn. The total limits of
 * agents and projects are enforced elsewhere.
 */
export const bars = (reach: Reach): boolean =>
  reach.period === "day" || reach.period === "month" || (reach.period === "total" && reach.whose === "machine")
