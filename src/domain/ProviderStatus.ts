/**
 * ProviderStatus: the interface through which agents ask whether a model provider is available, and report the outcome
 * of requests. The folder providers/ implements it; without it, every provider counts as available.
 */
import { Context, Effect, Schema } from "effect"
import type { UsageWindow } from "../runs/gateway/LimitHeaders.ts"
import type { Noted } from "./UsageWindow.ts"

/**
 * A model provider and an account at that provider. Agents that use the same provider and account share their
 * availability status.
 */
export interface Account {
  /** Name of the provider, or host and port of its address: "anthropic", "127.0.0.1:8080", "opencode acp". */
  readonly provider: string
  /** Name of the source of the API key, never the key itself: "ANTHROPIC_API_KEY", "login". */
  readonly account: string
}

export const nameOf = ({ account, provider }: Account): string => `${provider} (${account})`

/** Outcome of a request to the provider. `began`: when the request began, in ms since the epoch. */
export type News =
  | { readonly _tag: "answered"; readonly began: number }
  | {
      readonly _tag: "failed"
      readonly began: number
      readonly message: string
      /** When the provider wants the request to be retried, in ms since the epoch. */
      readonly retryAt?: number | undefined
      /** Minimum duration, in ms, of an outage about which the user is notified; undefined: 15 minutes. */
      readonly lasts?: number
    }
  | { readonly _tag: "refused"; readonly began: number; readonly message: string }
  | { readonly _tag: "limited"; readonly message: string; readonly until: number }
  /** The provider's answer contained the account's usage windows. */
  | { readonly _tag: "used"; readonly windows: ReadonlyArray<UsageWindow> }

/** A usage window, as it is in the log and on the control socket. */
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

/** Description of the account's problem, without the provider's error message. */
export const troubles: { readonly [state in Sky]: string } = {
  Available: "",
  Degraded: "is unavailable",
  Unavailable: "is unavailable",
  LimitedUntil: "has reached its limit",
  LoginNeeded: "needs a login"
}

export interface Standing extends Account {
  readonly state: Sky
  /** When the problem began, in ms since the epoch. */
  readonly since: number
  /** When the next request is allowed, in ms since the epoch. */
  readonly until: number
  readonly message: string
  /** eventId of the newest rune about this account's status. */
  readonly restsOn: number
}

/** An account for which something was reported. `windows`: the usage windows of the account, as last reported. */
export interface AccountStanding extends Standing {
  readonly windows: ReadonlyArray<Noted>
}

export interface Forecast {
  /**
   * Returns true if the agent `who` may send a request now. If not, `wake` is called when this may have changed. If an
   * agent calls this repeatedly, only its newest `wake` is called.
   */
  readonly admits: (account: Account, who: string, wake: () => void) => boolean
  /**
   * Reports the outcome of a request. When `tell` returns, a reported problem is durable. While the provider is
   * available, a call takes almost no time.
   */
  readonly tell: (account: Account, who: string, news: News) => Effect.Effect<void>
  /** Returns the status of an account; undefined: the account never had a problem. */
  readonly standing: (account: Account) => Standing | undefined
  readonly near: (account: Account) => ReadonlyArray<Noted>
  /** The status of all accounts for which something was reported. */
  readonly accounts: () => ReadonlyArray<AccountStanding>
  /** Accounts whose outage is long enough to notify the user, or whose login the user must renew. */
  readonly lasting: () => ReadonlyArray<Standing>
}

export const ProviderStatus = Context.Reference<Forecast>("agentd/domain/ProviderStatus", {
  defaultValue: () => ({
    admits: () => true,
    tell: () => Effect.void,
    standing: () => undefined,
    near: () => [],
    accounts: () => [],
    lasting: () => []
  })
})
