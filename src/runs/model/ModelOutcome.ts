/**
 * ModelOutcome: determines how a turn ends, and the outcome that follows. Pure.
 *
 * Guarantees: every kind of error has its outcome. An error that only concerns the input does not end the run.
 */
import * as Fault from "../Fault.ts"
import type { Outcome } from "../Outcome.ts"
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
      /** The run's outcome if it ends with this turn. */
      readonly outcome: Outcome
      /** True if the next turn would also fail: the run ends. */
      readonly fatal: boolean
    }

export type Failed = Extract<TurnEnd, { _tag: "Failed" }>

/** A failure of this turn only; the next turn can succeed. */
export const failed = (errorType: string, message: string): Failed => ({
  _tag: "Failed",
  errorType,
  message,
  retry: false,
  outcome: { _tag: "Error", detail: message },
  fatal: false
})

/** The answer is incomplete. The turn fails, but this is not an error of the run. */
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
    // Compaction could not make room, so a retry would be refused again.
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

/** Undefined: the model must be asked again. */
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
