/** `agentd cost`: shows the spending by project, agent, model, day, hour or goal, as a table, CSV or JSON. */
import * as Calendar from "../../domain/Calendar.ts"
import type { CostKey, CostRow } from "../../board/CostMessages.ts"
import { csv } from "../render/Csv.ts"
import { declare, map, moment, off, option, read } from "../parse/DeclaredVerb.ts"
import { ExitCode } from "../parse/ExitCode.ts"
import { atOf } from "../parse/TimeExpression.ts"
import { type Cell, plain, table } from "../render/Output.ts"

const KEYS = ["project", "agent", "model", "day", "hour", "goal"] as const satisfies ReadonlyArray<CostKey>
const DEFAULT = "agent,model"

/** Parses a comma-separated list of keys; undefined if one of them is unknown. */
const keysOf = (by: string): ReadonlyArray<CostKey> | undefined => {
  const names = [...new Set(by.split(",").map((name) => name.trim()))]
  const keys = names.flatMap((name) => KEYS.filter((key) => key === name))
  return keys.length === names.length ? keys : undefined
}

const named: { readonly [key in CostKey]: string } = {
  project: "",
  agent: "",
  model: "(not named)",
  day: "",
  hour: "",
  goal: "(none)"
}

const tokens = (count: number): string => count.toLocaleString("en-US")

/** The cost of a row as text. An unknown cost is shown as "unpriced", not as 0. Estimated tokens are marked. */
const money = ({
  estimated = 0,
  unlikely,
  unpriced,
  usd
}: Omit<CostRow, "cacheRead" | "cacheWrite" | "input" | "output">): string => {
  if (unlikely !== undefined)
    return `${money({ estimated, unpriced, usd })}, and ${tokens(unlikely.tokens)} tokens ($${unlikely.usd.toFixed(2)}) implausible (only in the agent's own budget)`
  const known = `$${usd.toFixed(usd < 10 ? 4 : 2)}`
  const unsure = estimated === 0 ? "" : `, ${tokens(estimated)} tokens estimated`
  if (unpriced === 0) return `${known}${unsure}`
  return usd === 0 ? `unpriced${unsure}` : `${known} and ${tokens(unpriced)} tokens unpriced${unsure}`
}

const total = (rows: ReadonlyArray<CostRow>): CostRow => {
  const sum = (of: (row: CostRow) => number | undefined): number => rows.reduce((all, row) => all + (of(row) ?? 0), 0)
  const unlikely = { tokens: sum((row) => row.unlikely?.tokens), usd: sum((row) => row.unlikely?.usd) }
  return {
    input: sum(({ input }) => input),
    output: sum(({ output }) => output),
    cacheRead: sum(({ cacheRead }) => cacheRead),
    cacheWrite: sum(({ cacheWrite }) => cacheWrite),
    usd: sum(({ usd }) => usd),
    unpriced: sum(({ unpriced }) => unpriced),
    estimated: sum(({ estimated }) => estimated),
    ...(unlikely.tokens + unlikely.usd > 0 ? { unlikely } : {})
  }
}

/** The percentage of input tokens that came from a cache. */
const hits = ({ cacheRead, input }: CostRow): string =>
  input === 0 ? "-" : `${Math.round((100 * cacheRead) / input)} %`

const NUMBERS = ["INPUT", "CACHE READ", "CACHE WRITE", "HITS", "OUTPUT", "COST"]

const cells = (row: CostRow): ReadonlyArray<Cell> =>
  [tokens(row.input), tokens(row.cacheRead), tokens(row.cacheWrite), hits(row), tokens(row.output), money(row)].map(
    (text) => ({ text, right: true })
  )

const CSV = ["input", "output", "cacheRead", "cacheWrite", "usd", "unpriced", "estimated"] as const

const csvOf = (keys: ReadonlyArray<CostKey>, rows: ReadonlyArray<CostRow>): ReadonlyArray<string> =>
  csv<CostRow>(
    [
      ...keys.map((name) => ({ name, of: (row: CostRow) => plain(row[name] ?? "") })),
      ...CSV.map((name) => ({ name, of: (row: CostRow) => row[name] ?? 0 })),
      { name: "unlikelyTokens", of: ({ unlikely }) => unlikely?.tokens ?? 0 },
      { name: "unlikelyUsd", of: ({ unlikely }) => unlikely?.usd ?? 0 }
    ],
    rows
  )

const wrongBy = {
  message: "--by needs one or more of these, separated by commas: project, agent, model, day, hour, goal.",
  remedy: "For example: agentd cost --by agent,day",
  exitCode: ExitCode.usage
}

export const cost = declare({
  path: ["cost"],
  description: "Show what was spent: tokens, cache hits and cost",
  examples: [
    {
      command: "agentd cost --by project,day --since 7d",
      description: "Show the spending of the last week by project and day"
    },
    {
      command: "agentd cost --by goal,model --csv",
      description: "Print the spending by goal and model as CSV, for a spreadsheet"
    }
  ],
  args: {
    by: option(
      "KEYS",
      `Group by these, separated by commas: project, agent, model, day, hour, goal (default: ${DEFAULT})`
    ),
    since: moment("TIME", "Show only spending since the day of this time:"),
    csv: off("Print comma-separated values (CSV)")
  },
  wrong: ({ by }) => (keysOf(by ?? DEFAULT) === undefined ? wrongBy : undefined),
  rpc: ({ by, csv, since }, _, { now }) => {
    const keys = keysOf(by ?? DEFAULT) ?? []
    const day = since === undefined ? "" : Calendar.dayOf(atOf(since, now))
    return map(read("Costs", { by: keys, since: day }), (rows) => ({ by: keys, since: day, csv, rows }))
  },
  view: ({ by, csv: isCsv, rows, since }, { colour, columns }) => {
    if (isCsv) return csvOf(by, rows)
    if (rows.length === 0) return [since === "" ? "Nothing was spent yet." : `Nothing was spent since ${since}.`]
    const all = total(rows)
    const head = [...by.map((key) => key.toUpperCase()), ...NUMBERS]
    const line = (row: CostRow, names: ReadonlyArray<string>): ReadonlyArray<Cell> => [
      ...names.map((text) => ({ text: plain(text) })),
      ...cells(row)
    ]
    const body = rows.map((row) =>
      line(
        row,
        by.map((key) => row[key] || named[key])
      )
    )
    const inAll =
      rows.length > 1
        ? [
            line(
              all,
              by.map((_, index) => (index === 0 ? "in all" : ""))
            )
          ]
        : []
    return table(head, [...body, ...inAll], { colour, columns })
  }
})
