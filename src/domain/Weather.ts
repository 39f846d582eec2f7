/**
 * Weather: whether a provider of models can be had, as agents ask for it and tell of it. The
 * feature behind it is providers/; without one it is always fair.
 */
import { Context, Effect, Schema } from "effect"
import type { UsageWindow } from "../runs/gateway/LimitHeaders.ts"
import type { Noted } from "./UsageWindow.ts"

/** A provider of models, and on whose account it is asked: agents with the same two share the weather. */
export interface Account {
  /** A name, or the host of an address: "anthropic", "127.0.0.1:8080", "opencode acp". */
  readonly provider: string
  /** The place of the key, never the key: "ANTHROPIC_API_KEY", "login". */
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
      /** When the provider says to ask again, ms since the epoch. */
      readonly retryAt?: number | undefined
      /** How long an outage lasts before a person is told, ms; left out: 15 minutes. */
      readonly lasts?: number
    }
  | { readonly _tag: "refused"; readonly began: number; readonly message: string }
  | { readonly _tag: "limited"; readonly message: string; readonly until: number }
  /** The windows of the account's use, as an answer tells them. */
  | { readonly _tag: "used"; readonly windows: ReadonlyArray<UsageWindow> }

/** A window as the log and the control socket have it. */
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

/** Trouble of an account in words, but for its own. */
export const troubles: { readonly [state in Sky]: string } = {
  Available: "",
  Degraded: "cannot be had",
  Unavailable: "cannot be had",
  LimitedUntil: "has reached its limit",
  LoginNeeded: "needs a login"
}

export interface Standing extends Account {
  readonly state: Sky
  /** When the trouble began; ms since the epoch, as `until`. */
  readonly since: number
  /** When it is asked again. */
  readonly until: number
  readonly message: string
  /** The newest rune of it. */
  readonly restsOn: number
}

/** An account that has told something of itself; `windows`: as they were told last. */
export interface AccountStanding extends Standing {
  readonly windows: ReadonlyArray<Noted>
}

export interface Forecast {
  /** Whether `who` may ask now. If not, `wake` is called as soon as it is worth asking again; the newest one counts. */
  readonly admits: (account: Account, who: string, wake: () => void) => boolean
  /** Tells of a request; trouble is durable then. Costs next to nothing where the weather is fair. */
  readonly tell: (account: Account, who: string, news: News) => Effect.Effect<void>
  /** Undefined where nothing was ever amiss. */
  readonly standing: (account: Account) => Standing | undefined
  readonly near: (account: Account) => ReadonlyArray<Noted>
  /** Every account of which something was told. */
  readonly accounts: () => ReadonlyArray<AccountStanding>
  /** Outages that last so long that a person was told, and logins that a person is to renew. */
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
