/**
 * Weather: whether a provider of models can be had, as agents ask for it and tell of it. The
 * feature behind it is providers/; without one it is always fair.
 */
import { Context, Effect } from "effect"

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
  | { readonly _tag: "limited"; readonly message: string; readonly until: number }

export type Sky = "Available" | "Degraded" | "Unavailable" | "LimitedUntil"

/** How it stands with a provider. */
export interface Standing extends Account {
  readonly state: Sky
  /** When the trouble began; ms since the epoch, as `until`. */
  readonly since: number
  /** When it is asked again. */
  readonly until: number
  /** The newest words of it. */
  readonly message: string
  /** The newest rune of it. */
  readonly restsOn: number
}

export interface Forecast {
  /** Whether `who` may ask now. If not, `wake` is called as soon as it is worth asking again; the newest one counts. */
  readonly admits: (account: Account, who: string, wake: () => void) => boolean
  /** Tells of a request. Costs next to nothing where the weather is fair. */
  readonly tell: (account: Account, who: string, news: News) => Effect.Effect<void>
  /** Undefined where nothing was ever amiss. */
  readonly standing: (account: Account) => Standing | undefined
  /** Outages that last so long that a person was told. */
  readonly lasting: () => ReadonlyArray<Standing>
}

export const Weather = Context.Reference<Forecast>("agentd/domain/Weather", {
  defaultValue: () => ({
    admits: () => true,
    tell: () => Effect.void,
    standing: () => undefined,
    lasting: () => []
  })
})
