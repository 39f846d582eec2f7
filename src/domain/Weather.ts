/**
 * Weather: whether a provider of models is available, as agents ask for it and report it. The feature behind it is
 * providers/; without it every provider counts as available.
 */
import { Context, Effect, Schema } from "effect"
import type { UsageWindow } from "../runs/gateway/LimitHeaders.ts"
import type { Noted } from "./UsageWindow.ts"

/** A provider of models, and the account that is used: agents with the same pair share its availability. */
export interface Account {
  /** A name, or the host of an address: "anthropic", "127.0.0.1:8080", "opencode acp". */
  readonly provider: string
  /** Where the key comes from, never the key: "ANTHROPIC_API_KEY", "login". */
  readonly account: string
}

export const nameOf = ({ account, provider }: Account): string => `${provider} (${account})`

/** The outcome of a request; `began`: when that request began, ms since the epoch. */
export type News =
  | { readonly _tag: "answered"; readonly began: number }
  | {
      readonly _tag: "failed"
      readonly began: number
      readonly message: string
      /** When the provider asks to retry, ms since the epoch. */
      readonly retryAt?: number | undefined
      /** How long an outage lasts before a person is notified, ms; undefined: 15 minutes. */
      readonly lasts?: number
    }
  | { readonly _tag: "refused"; readonly began: number; readonly message: string }
  | { readonly _tag: "limited"; readonly message: string; readonly until: number }
  /** The usage windows of the account, as an answer reports them. */
  | { readonly _tag: "used"; readonly windows: ReadonlyArray<UsageWindow> }

/** A usage window as the log and the control socket store it. */
export const Window = Schema.Struct({
  name: Schema.String,
  used: Schema.optionalKey(Schema.Finite),
  status: Schema.optionalKey(Schema.Literals(["allowed", "warning", "rejected"])),
  resetsAt: Schema.optionalKey(Schema.Finite),
  limit: Schema.optionalKey(Schema.Finite),
  remaining: Schema.optionalKey(Schema.Finite),
  at: Schema.Finite
})

export type Sky = "Available" | "Degraded" | "Unavailable" | "LimitedUntil" | "LoginNeeded"

/** The account's problem in words, without the provider's own message. */
export const troubles: { readonly [state in Sky]: string } = {
  Available: "",
  Degraded: "cannot be had",
  Unavailable: "cannot be had",
  LimitedUntil: "has reached its limit",
  LoginNeeded: "needs a login"
}

export interface Standing extends Account {
  readonly state: Sky
  /** When the trouble began, ms since the epoch, like `until`. */
  readonly since: number
  /** When the next request is allowed. */
  readonly until: number
  readonly message: string
  /** eventId of the newest rune about the account. */
  readonly restsOn: number
}

/** An account that has reported something; `windows`: as last reported. */
export interface AccountStanding extends Standing {
  readonly windows: ReadonlyArray<Noted>
}

export interface Forecast {
  /**
   * Whether `who` may send a request now. If not, `wake` is called as soon as it is worth asking again; only the newest
   * `wake` counts.
   */
  readonly admits: (account: Account, who: string, wake: () => void) => boolean
  /**
   * Reports the outcome of a request; trouble is durable when this returns. Costs almost nothing while the provider is
   * available.
   */
  readonly tell: (account: Account, who: string, news: News) => Effect.Effect<void>
  /** Undefined if there was never any trouble. */
  readonly standing: (account: Account) => Standing | undefined
  readonly near: (account: Account) => ReadonlyArray<Noted>
  /** Every account that was reported on. */
  readonly accounts: () => ReadonlyArray<AccountStanding>
  /** Outages that were long enough to notify a person, and logins that a person must renew. */
  readonly lasting: () => ReadonlyArray<Standing>
}

export const Weather = Context.Reference<Forecast>("agentd/domain/Weather", {
  defaultValue: () => ({
    admits: () => true,
    tell: () => Effect.void,
    standing: () => undefined,
    near: () => [],
    accounts: () => [],
    lasting: () => []
  })
})
