/**
 * AgentWeather: the state ("weather") of the providers that one agent may ask: which of its backends may ask now, and
 * the results of asking. A backend that asks no provider is always available.
 *
 * Guarantees: the agent's own backend goes first, whenever it may ask. A fallback takes its place only while its
 * provider is unavailable, or has reached its limit and the config lets the agent move.
 */
import { Effect } from "effect"
import { accountOf } from "../run/AccountOf.ts"
import type { AgentConfig } from "../../config/AgentConfig.ts"
import type { Noted } from "../../domain/UsageWindow.ts"
import { type Account, type Forecast, nameOf, type News, type Standing, troubles } from "../../domain/Weather.ts"

/** The backend that may ask, by its index. `why`: the trouble of the agent's own backend. */
export interface Picked {
  readonly index: number
  readonly why?: string
}

export interface AgentWeather {
  /** Undefined if no backend may ask: `wake` is then called as soon as asking again may succeed. */
  readonly pick: (wake: () => void) => Picked | undefined
  /** `index`: the backend that asked. */
  readonly tell: (news: News, index: number) => Effect.Effect<void>
  /** The usage windows of the backend's account that are nearly used up. */
  readonly near: (index: number) => ReadonlyArray<Noted>
  /** Undefined if all is well, or if a fallback is available. */
  readonly trouble: () => Standing | undefined
}

export const fair: AgentWeather = {
  pick: () => ({ index: 0 }),
  tell: () => Effect.void,
  near: () => [],
  trouble: () => undefined
}

type Settings = Pick<AgentConfig, "backend" | "fallback" | "onLimit">

const wordsOf = (standing: Standing): string => `${nameOf(standing)} ${troubles[standing.state]}: ${standing.message}`

/** Whether a fallback takes the place of the agent's own backend. */
const moves = ({ state }: Standing, { onLimit }: Settings): boolean =>
  state === "Unavailable" || state === "LoginNeeded" || (state === "LimitedUntil" && onLimit === "move")

/** `who`: a unique name of the agent. */
export const make = (
  forecast: Forecast,
  who: string,
  settings: () => Settings,
  /** Duration of an outage before a person is notified, ms. Undefined: nobody is notified. */
  lasts: () => number | undefined
): AgentWeather => {
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
