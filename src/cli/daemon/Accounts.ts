/**
 * `agentd accounts`: shows the accounts at model providers: how much of each limit is used, when it resets, and which
 * agents use the account.
 */
import { isNear, isOver, type Noted, usedWords } from "../../domain/UsageWindow.ts"
import type { AccountRow } from "../../board/AccountMessages.ts"
import { declare, read, type World } from "../parse/DeclaredVerb.ts"
import { age, type Cell, clock, cut, paint, plain, table } from "../render/Output.ts"

const skies: { readonly [state in AccountRow["state"]]: string } = {
  Available: "",
  Degraded: "a request has failed",
  Unavailable: "is unavailable",
  LimitedUntil: "has reached its limit",
  LoginNeeded: "needs a login"
}

/**
 * The problem of an account as one line; undefined if it has none. `most`: maximum length of the provider's message, in
 * characters.
 */
const trouble = ({ message, state, until }: AccountRow, now: number, most: number): string | undefined => {
  if (state === "Available") return undefined
  const when = until === null || until <= now ? "" : `, next request at ${clock(until, now)}`
  return `${skies[state]}${when}: ${cut(plain(message.split("\n")[0]!), most)}`
}

/** The used part of a limit, such as "five_hour 93 % until 21:04". It is yellow if the limit is nearly used up. */
const windowWords = (window: Noted, { colour, now }: World): string => {
  const { name, resetsAt } = window
  const until = resetsAt === undefined || isOver(window, now) ? "" : ` until ${clock(resetsAt, now)}`
  const words = `${plain(name)} ${usedWords(window, now)}${until}`
  return isNear(window, now) ? paint(colour, "yellow", words) : words
}

/** Lines for the accounts that have a problem or limits. `agentd status` also prints these lines. */
export const lines = (rows: ReadonlyArray<AccountRow>, world: World): ReadonlyArray<string> =>
  rows.flatMap((row) => {
    const said = trouble(row, world.now, 200)
    const parts = [
      ...(said === undefined ? [] : [paint(world.colour, "red", said)]),
      ...row.windows.map((window) => windowWords(window, world))
    ]
    return parts.length === 0 ? [] : [`${plain(row.provider)} (${plain(row.account)}): ${parts.join("; ")}`]
  })

const HEAD = ["ACCOUNT", "WINDOW", "USED", "RESETS", "REPORTED", "AGENTS"]

const MAX_NAMED = 3

const named = (agents: ReadonlyArray<string>): string => {
  const left = agents.length - MAX_NAMED
  return `${agents.slice(0, MAX_NAMED).map(plain).join(", ")}${left > 0 ? ` and ${left} more` : ""}`
}

const cells = (row: AccountRow, { now }: World): ReadonlyArray<ReadonlyArray<Cell>> => {
  const who = `${plain(row.provider)} (${plain(row.account)})`
  const said = trouble(row, now, 60)
  const first = said ?? (row.windows.length === 0 ? "reports no usage limits" : undefined)
  const above = first === undefined ? [] : [["", first, "", ""]]
  const each = row.windows.map((window) => {
    const { at, name, resetsAt } = window
    const until = resetsAt === undefined || isOver(window, now) ? "-" : clock(resetsAt, now)
    return [plain(name), usedWords(window, now), until, `${age(Math.max(0, now - at))} ago`]
  })
  return [...above, ...each].map((texts, index) =>
    [index === 0 ? who : "", ...texts, index === 0 ? named(row.agents) : ""].map((text) => ({ text }))
  )
}

export const accounts = declare({
  path: ["accounts"],
  description: "Show the accounts at model providers, with used limits, reset times and agents",
  examples: [{ command: "agentd accounts", description: "Show the values that the providers reported last" }],
  args: {},
  rpc: () => read("Accounts", null),
  view: (rows, world) =>
    rows.length === 0
      ? ["No agent uses an account at a model provider."]
      : table(
          HEAD,
          rows.flatMap((row) => cells(row, world)),
          world
        )
})
