/**
 * RunWeather: the news of a provider in the end of a run that asked it, and the end as its worker is told it. Pure.
 */
import type { RunEvent } from "../../runs/Backend.ts"
import type { Outcome } from "../../runs/Outcome.ts"
import type { AgentConfig } from "../../config/AgentConfig.ts"
import type { ToldWindows } from "../../runs/gateway/LimitHeaders.ts"
import type { News } from "../../domain/Weather.ts"

/** A limit that does not say when it is lifted is asked again so much later, ms. */
const LIMIT_UNKNOWN = 60_000

/** The asking of a run: times in ms since the epoch, `beganAt` of its newest request. */
export interface Asked {
  readonly beganAt: number
  readonly now: number
  readonly trouble: string
}

/** How agents begin what they say of themselves in an answer's place. */
const ASIDE = /^(Info|Warning|(API )?Error): /

/** Whether the model behind the run has answered. */
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

/** The provider was there, could not be had, or has reached its limit; undefined: the end says nothing of it. */
export const newsOf = (outcome: Outcome, { beganAt: began, now, trouble }: Asked): News | undefined => {
  // a command's whole run is its answer
  if (outcome._tag === "Success") return { _tag: "answered", began }
  if (outcome._tag !== "Uncounted") return undefined
  const { detail: message = trouble, reason, until } = outcome
  if (reason === "quota") return { _tag: "limited", message, until: until ?? now + LIMIT_UNKNOWN }
  if (reason === "auth") return { _tag: "refused", began, message }
  return reason === "unavailable" ? { _tag: "failed", began, message, retryAt: until } : undefined
}

/** The news in the windows of its account's use: one that is refused has reached its limit, whatever the run makes of that. */
export const toldOf = ({ rejected, windows }: ToldWindows, now: number): ReadonlyArray<News> => {
  const used: ReadonlyArray<News> = windows.length === 0 ? [] : [{ _tag: "used", windows }]
  // one whose end nobody tells is found out by the run's own end
  if (rejected?.until === undefined || rejected.until <= now) return used
  const message = rejected.name === "" ? "what may be used is used up" : `its window ${rejected.name} is used up`
  return [...used, { _tag: "limited", message, until: rejected.until }]
}

/** The end as its worker is told it: a limit does what the config says, and where another backend may take over nobody waits for it. */
export const endOf = (outcome: Outcome, { fallback, onLimit }: Pick<AgentConfig, "fallback" | "onLimit">): Outcome => {
  if (outcome._tag !== "Uncounted") return outcome
  const { reason, until } = outcome
  if (reason === "quota" && onLimit === "stop") {
    const when = until === undefined ? "" : `, until ${new Date(until).toISOString()}`
    const remedy = "Start it when the limit is lifted, or let it wait or move: onLimit in agentd.jsonc."
    return { _tag: "Fatal", detail: `its account has reached its limit on use${when}`, remedy }
  }
  const moves =
    fallback.length > 0 && (reason === "unavailable" || reason === "auth" || (reason === "quota" && onLimit === "move"))
  return moves ? { _tag: "Uncounted", reason } : outcome
}
