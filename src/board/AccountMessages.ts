/**
 * AccountMessages: the accounts with providers of models, as they cross the control socket: how each stands, which
 * windows of its use it has told of, and which agents ask it.
 */
import { Schema } from "effect"
import { accountOf } from "../agents/run/AccountOf.ts"
import type { AgentConfig } from "../config/AgentConfig.ts"
import * as Fallback from "../config/Fallback.ts"
import { type Account, type AccountStanding, Window } from "../domain/Weather.ts"

export const AccountRow = Schema.Struct({
  provider: Schema.String,
  /** The place of the key, never the key. */
  account: Schema.String,
  state: Schema.Literals(["Available", "Degraded", "Unavailable", "LimitedUntil", "LoginNeeded"]),
  /** When its trouble began, and when it is asked again, ms since the epoch; null: it can be had. */
  since: Schema.NullOr(Schema.Finite),
  until: Schema.NullOr(Schema.Finite),
  /** The newest words of its trouble; empty: it can be had. */
  message: Schema.String,
  /** As they were told last; none: its provider tells of none. */
  windows: Schema.Array(Window),
  /** `project/agent`, and with which fallback. */
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

/** Every account that told something, or that an agent asks; by name. Pure. */
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
