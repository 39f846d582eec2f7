/**
 * ProviderOutcome: at the end of a run, determines the new status of its provider, and the outcome that the worker
 * uses. Pure.
 */
import type { RunEvent } from "../../runs/Backend.ts"
import type { Outcome } from "../../runs/Outcome.ts"
import type { AgentConfig } from "../../config/AgentConfig.ts"
import type { ToldWindows } from "../../runs/gateway/LimitHeaders.ts"
import type { News } from "../../domain/ProviderStatus.ts"

/** Time until the next request if a provider reports a limit but not when the limit ends, ms. */
const LIMIT_UNKNOWN = 60_000

/** A run's requests to its provider. Times are in ms since the epoch. `beganAt`: start of the newest request. */
export interface Asked {
  readonly beganAt: number
  readonly now: number
  readonly trouble: string
}

/** First words of a CLI's own notices, which it can print in place of a model's answer. */
const ASIDE = /^(Info|Warning|(API )?Error): /

export const isAnswer = (event: RunEvent): boolean => {
  switch (event._tag) {
    case "Delta":
      return event.stream === "thinking" || (event.stream === "assistant" && !ASIDE.test(event.text))
    case "ToolCall":
    case "TurnCompleted":
      return true
    case "Passed":
      return true
    case "Usage":
      return event.outputTokens > 0
    default:
      return false
  }
}

/** The provider status that the outcome proves; undefined if it proves nothing. */
export const newsOf = (outcome: Outcome, { beganAt: began, now, trouble }: Asked): News | undefined => {
  // for a command, a successful run proves that the provider answered
  if (outcome._tag === "Success") return { _tag: "answered", began }
  if (outcome._tag !== "Uncounted") return undefined
  const { detail: message = trouble, reason, until } = outcome
  if (reason === "quota") return { _tag: "limited", message, until: until ?? now + LIMIT_UNKNOWN }
  if (reason === "auth") return { _tag: "refused", began, message }
  return reason === "unavailable" ? { _tag: "failed", began, message, retryAt: until } : undefined
}

/** A usage window in which requests are rejected has reached its limit, whether or not the run continues. */
export const toldOf = ({ rejected, windows }: ToldWindows, now: number): ReadonlyArray<News> => {
  const used: ReadonlyArray<News> = windows.length === 0 ? [] : [{ _tag: "used", windows }]
  // if it is unknown when the window resets, the limit is reported at the end of the run
  if (rejected?.until === undefined || rejected.until <= now) return used
  const message = rejected.name === "" ? "its usage limit is reached" : `its usage window ${rejected.name} is used up`
  return [...used, { _tag: "limited", message, until: rejected.until }]
}

/** For a reached limit, the setting `onLimit` decides. If a fallback can be used, the worker does not wait. */
export const endOf = (outcome: Outcome, { fallback, onLimit }: Pick<AgentConfig, "fallback" | "onLimit">): Outcome => {
  if (outcome._tag !== "Uncounted") return outcome
  const { reason, until } = outcome
  if (reason === "quota" && onLimit === "stop") {
    const when = until === undefined ? "" : `, until ${new Date(until).toISOString()}`
    const remedy = "Start it when the limit is lifted, or set onLimit in agentd.jsonc to wait or move."
    return { _tag: "Fatal", detail: `its account has reached its usage limit${when}`, remedy }
  }
  const moves =
    fallback.length > 0 && (reason === "unavailable" || reason === "auth" || (reason === "quota" && onLimit === "move"))
  return moves ? { _tag: "Uncounted", reason } : outcome
}
