/**
 * AgentProviders: the availability ("weather") of one agent's providers. It selects the backend for the next request,
 * and records the results of requests. A backend without a provider is always available.
 *
 * Guarantees: The agent's own backend is used whenever it is available. A fallback replaces it only while its provider
 * is unavailable or needs a login, or has reached its limit and the config permits the move.
 */
import { Effect } from "effect"
import { accountOf } from "../run/AccountOf.ts"
import type { AgentConfig } from "../../config/AgentConfig.ts"
import type { Noted } from "../../domain/UsageWindow.ts"
import { type Account, type Forecast, nameOf, type News, type Standing, troubles } from "../../domain/ProviderStatus.ts"

/** Index of the backend to use. `why`: why the agent's own backend cannot be used. */
export interface Picked {
  readonly index: number
  readonly why?: string
}

export interface AgentProviders {
  /** The backend to use now; undefined if there is none, and `wake` is then called when a retry may succeed. */
  readonly pick: (wake: () => void) => Picked | undefined
  /** `index`: the backend that made the request. */
  readonly tell: (news: News, index: number) => Effect.Effect<void>
  /** Usage windows of the backend's account that are almost exhausted. */
  readonly near: (index: number) => ReadonlyArray<Noted>
  /** The problem of the agent's own provider; undefined if there is none, or if a fallback is available. */
  readonly trouble: () => Standing | undefined
}

export const fair: AgentProviders = {
  pick: () => ({ index: 0 }),
  tell: () => Effect.void,
  near: () => [],
  trouble: () => undefined
}

type Settings = Pick<AgentConfig, "backend" | "fallback" | "onLimit">

const wordsOf = (standing: Standing): string => `${nameOf(standing)} ${troubles[standing.state]}: ${standing.message}`

/** Whether the config allows a fallback to replace the agent's own backend. */
const moves = ({ state }: Standing, { onLimit }: Settings): boolean =>
  state === "Unavailable" || state === "LoginNeeded" || (state === "LimitedUntil" && onLimit === "move")

/** `who`: a unique name of the agent. `settings`: the agent's current backend config. */
export const make = (
  forecast: Forecast,
  who: string,
  settings: () => Settings,
  /** Duration of an outage before the user is notified, ms. If undefined, the user is not notified. */
  lasts: () => number | undefined
): AgentProviders => {
  let known: Settings | undefined
  let accounts: ReadonlyArray<Account | undefined> = []
  const all = (): ReadonlyArray<Account | undefined> => {
    const now = settings()
    if (now !== known) [known, accounts] = [now, [now.backend, ...now.fallback].map(accountOf)]
    return accounts
  }
  const standingOf = (account: Account): Standing | undefined => {
    const standing = forecast.standing(account)
    return standing?.state === "Available" ? undefined : standing
  }
  return {
    pick: (wake) => {
      let why: string | undefined
      for (const [index, account] of all().entries()) {
        if (account === undefined || forecast.admits(account, who, wake))
          return why === undefined ? { index } : { index, why }
        const standing = standingOf(account)
        if (index > 0) continue
        if (standing === undefined || !moves(standing, settings())) return undefined
        why = wordsOf(standing)
      }
      return undefined
    },
    tell: (news, index) =>
      Effect.suspend(() => {
        const asked = all()[index]
        if (asked === undefined) return Effect.void
        const age = news._tag === "failed" ? lasts() : undefined
        return forecast.tell(asked, who, news._tag === "failed" && age !== undefined ? { ...news, lasts: age } : news)
      }),
    near: (index) => {
      const account = all()[index]
      return account === undefined ? [] : forecast.near(account)
    },
    trouble: () => {
      const [own, ...others] = all()
      const standing = own === undefined ? undefined : standingOf(own)
      if (standing === undefined || !moves(standing, settings())) return standing
      return others.some((account) => account === undefined || standingOf(account) === undefined) ? undefined : standing
    }
  }
}
