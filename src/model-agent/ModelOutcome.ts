/**
 * ModelOutcome: determines how a turn ends, and the outcome of the run that follows from this. Pure.
 *
 * Guarantees: every kind of error has its outcome. An error that only concerns the input does not end the run.
 */
import * as Fault from "../runs/Fault.ts"
import type { Outcome } from "../runs/Outcome.ts"
import { type Answer, LONGEST_WAIT } from "./ProviderRequest.ts"
import { passes, type ProviderError } from "./Provider.ts"

export type TurnEnd =
  | { readonly _tag: "Completed"; readonly output: string }
  | { readonly _tag: "Interrupted"; readonly output: string }
  | {
      readonly _tag: "Failed"
      readonly errorType: string
      readonly message: string
      readonly retry: boolean
      /** The outcome of the run if this turn is its last. */
      readonly outcome: Outcome
      /** True if the next turn would also fail, so that the run ends. */
      readonly fatal: boolean
    }

export type Failed = Extract<TurnEnd, { _tag: "Failed" }>

/** Ends a turn with a failure that concerns only this turn; the next turn can succeed. */
export const failed = (errorType: string, message: string): Failed => ({
  _tag: "Failed",
  errorType,
  message,
  retry: false,
  outcome: { _tag: "Error", detail: message },
  fatal: false
})

/** Ends a turn whose answer is incomplete. The turn fails, but the run's outcome is a success. */
const half = (message: string): Failed => ({ ...failed("max_tokens", message), outcome: { _tag: "Success" } })

export const endOf = (error: ProviderError, now: number): TurnEnd => {
  const { kind, message, remedy, retryAfter } = error
  const end = (outcome: Outcome, retry: boolean): TurnEnd => ({
    _tag: "Failed",
    errorType: kind,
    message: `${message}; ${remedy}`,
    retry,
    outcome,
    fatal: true
  })
  switch (kind) {
    case "rate_limit":
      return end({ _tag: "Uncounted", reason: "quota", until: now + (retryAfter ?? LONGEST_WAIT) }, true)
    // compaction could not make room, so a retry would be rejected again
    case "overflow":
      return failed(kind, `${message}; ${remedy}`)
    case "overloaded":
    case "server":
    case "connection":
    case "stream": {
      const until = retryAfter === undefined ? {} : { until: now + retryAfter }
      return end({ _tag: "Uncounted", reason: "unavailable", ...until }, true)
    }
    case "auth":
      return end(Fault.refusedLogin(message, remedy).outcome, true)
    case "billing":
    case "not_found":
      return end({ _tag: "Fatal", detail: message, remedy }, true)
    default:
      return end({ _tag: "Error", detail: message }, passes(error) || kind === "storage")
  }
}

/** How the turn ends after an answer; undefined if the model must be asked again. */
export const ended = ({ stop }: Answer, output: string): TurnEnd | undefined => {
  switch (stop) {
    case "pause":
      return undefined
    case "refusal":
      return failed("refusal", `the model refused${output === "" ? "" : `: ${output.slice(0, 500)}`}`)
    case "filter":
      return failed("content_filter", "the provider's content filter blocked the answer")
    case "length":
      return output.trim() === ""
        ? failed("max_tokens", "the answer was cut off before it said anything; set a larger maxOutputTokens")
        : half("the answer was cut off at maxOutputTokens; set a larger one")
    case "end":
      return { _tag: "Completed", output }
  }
}
