/**
 * AccountMessages: rows about accounts with model providers, in the form in which they are sent over the control
 * socket. A row has the state of an account, its usage windows as the provider reported them, and the agents that use
 * it.
 */
import { Schema } from "effect"
import { accountOf } from "../agents/run/AccountOf.ts"
import type { AgentConfig } from "../config/AgentConfig.ts"
import * as Fallback from "../config/Fallback.ts"
import { type Account, type AccountStanding, Window } from "../domain/ProviderStatus.ts"

export const AccountRow = Schema.Struct({
  provider: Schema.String,
  /** The source of the account's key, but never the key itself. */
  account: Schema.String,
  state: Schema.Literals(["Available", "Degraded", "Unavailable", "LimitedUntil", "LoginNeeded"]),
  /** `since`: when the trouble began; `until`: when a request is allowed. Ms since the epoch; null if available. */
  since: Schema.NullOr(Schema.Finite),
  until: Schema.NullOr(Schema.Finite),
  /** The newest message about the account's trouble; empty if the account is available. */
  message: Schema.String,
  /** Usage windows as the provider last reported them; empty if the provider reports none. */
  windows: Schema.Array(Window),
  /** Agents that use the account, as `project/agent`. If an agent's fallback uses it, with the fallback's name. */
  agents: Schema.Array(Schema.String)
})
export type AccountRow = typeof AccountRow.Type

interface Project {
  readonly name: string
  readonly agents: { readonly [name: string]: AgentConfig }
}

const MAX_AGENTS = 1_000

const keyOf = ({ account, provider }: Account): string => JSON.stringify([provider, account])

const fair = ({ account, provider }: Account): AccountRow => ({
  provider,
  account,
  state: "Available",
  since: null,
  until: null,
  message: "",
  windows: [],
  agents: []
})

const told = ({ account, message, provider, since, state, until, windows }: AccountStanding): AccountRow => ({
  ...fair({ account, provider }),
  windows,
  ...(state === "Available" ? {} : { state, since, until, message })
})

/** All accounts that have reported something or that an agent uses, sorted by name. Pure. */
export const accountsOf = (
  standings: ReadonlyArray<AccountStanding>,
  projects: ReadonlyArray<Project>
): ReadonlyArray<AccountRow> => {
  const rows = new Map(standings.map((standing) => [keyOf(standing), told(standing)]))
  for (const project of projects)
    for (const { config, label } of Fallback.each(project.agents)) {
      const account = accountOf(config.backend)
      if (account === undefined) continue
      const row = rows.get(keyOf(account)) ?? fair(account)
      if (row.agents.length < MAX_AGENTS)
        rows.set(keyOf(account), { ...row, agents: [...row.agents, `${project.name}/${label}`] })
    }
  return [...rows.values()].toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1))
}
