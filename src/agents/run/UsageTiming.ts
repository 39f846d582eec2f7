/**
 * UsageTiming: when agentd learns an agent's usage: after each request, at the end of a turn, only for some requests,
 * or never. This depends on the backend. Pure.
 *
 * Guarantees: If a limit takes effect later than the request that exceeds it, or never, a warning is given before the
 * first request. The warning names the agent and a remedy.
 */
import type { AgentConfig, BudgetConfig } from "../../config/AgentConfig.ts"
import type { BackendConfig } from "../../config/BackendConfig.ts"
import type { Price } from "../../domain/Prices.ts"

/** `request`: after each request. `turn`: at the end of a turn, if at all. `part`: for some requests. `none`: never. */
export type UsageTiming = "request" | "turn" | "part" | "none"

/** Programs that report only some of their requests, or none. */
const KNOWN: ReadonlyMap<string, UsageTiming> = new Map([
  ["qwen", "part"],
  ["qwen-code", "part"],
  ["cline", "none"],
  ["droid", "none"]
])

const howOf = (argv: ReadonlyArray<string>): UsageTiming | undefined =>
  argv.map((word) => KNOWN.get(word.slice(word.lastIndexOf("/") + 1))).find((how) => how !== undefined)

export const of = (backend: BackendConfig): UsageTiming => {
  switch (backend.type) {
    case "model":
    case "claude":
    case "exec":
    case "codex":
      return "request"
    case "acp":
      if (backend.metering === "gateway") return "request"
      return howOf(backend.argv) ?? "turn"
    case "command":
      return backend.metering === "gateway" ? "request" : "none"
  }
}

const isLimited = (budgets: ReadonlyArray<BudgetConfig>, resource: "tokens" | "usd"): boolean =>
  budgets.some((budget) =>
    [budget, budget.perTurn, budget.perDay, budget.perMonth].some((part) => (part?.[resource] ?? "off") !== "off")
  )

/** The model that the config names; undefined if the program selects the model. */
const modelOf = (backend: BackendConfig): string | undefined =>
  backend.type === "model" || backend.type === "claude" || backend.type === "codex" ? backend.model : undefined

/** Whether the cost of a request is known when the request ends. */
const isPriced = (backend: BackendConfig, priceOf: (model: string) => Price | undefined): boolean => {
  if (backend.type === "model" && backend.price !== undefined) return true
  const model = modelOf(backend)
  return model !== undefined && priceOf(model) !== undefined
}

/** Why an agent's limits cannot be fully enforced. Shown with the agent, and reported at its start. */
export interface Gap {
  /** A few words for the agent's row in a list. */
  readonly word: string
  readonly text: string
}

/**
 * The gap in the enforcement of limits; undefined if limits are enforced after each request. `budgets`: the budgets of
 * the agent and its project.
 */
export const gapOf = (
  name: string,
  { backend }: Pick<AgentConfig, "backend">,
  budgets: ReadonlyArray<BudgetConfig>,
  priceOf: (model: string) => Price | undefined
): Gap | undefined => {
  const inUsd = isLimited(budgets, "usd")
  if (!inUsd && !isLimited(budgets, "tokens")) return undefined
  const how = of(backend)
  if (how === "none") {
    const text = `${name} is unmetered: its program does not report its usage, so its limits on tokens and USD cannot be enforced. Count the usage at the gateway ("metering" in its backend), or limit its time (wallTime) or its runs (maxRunsPerHour).`
    return { word: "unmetered", text }
  }
  if (how === "part") {
    const text = `${name} is metered in part: its program reports only some of its requests, so its limits on tokens and USD cover only those. Count the usage at the gateway: "metering" in its backend.`
    return { word: "metered in part", text }
  }
  if (how === "turn") {
    const text = `${name} is unmetered within a turn: its program reports its usage at a turn's end, if at all, so its limits are checked only between turns. Some programs report only their last request. Count the usage at the gateway: "metering" in its backend.`
    return { word: "unmetered within a turn", text }
  }
  if (!inUsd || isPriced(backend, priceOf)) return undefined
  const model = modelOf(backend)
  const which = model === undefined ? "its config names no model" : `its model ${model} has no price`
  return backend.type === "claude"
    ? {
        word: "USD unmetered within a turn",
        text: `${name} reports its cost at a turn's end, and ${which}: within a turn its limit on USD applies only if agentd knows the price of the model in use. Set the price in "prices", or limit tokens.`
      }
    : {
        word: "USD unmetered",
        text: `${name} is unpriced: ${which}, so its limit on USD cannot be enforced. Set the price in "prices", or limit tokens.`
      }
}
