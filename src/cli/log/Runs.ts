/** `agentd log --runs`: lists the runs of agents, newest first: start, duration, turns, cost, and outcome. */
import type { Rune } from "../../core/event-log/Rune.ts"
import { ENDINGS } from "../../domain/EndReasons.ts"
import { LOOKS, type Word } from "../../domain/StatusWords.ts"
import { csv, type Field, moment as momentOf } from "../render/Csv.ts"
import { all as asked, count, declare, map, off, read, readAll, words, type World } from "../parse/DeclaredVerb.ts"
import { chosen } from "./LogsChoice.ts"
import { age, type Cell, clock, lookColour, plain, table } from "../render/Output.ts"

export interface RunRow {
  readonly run: string
  /** Id of the run's conversation, which is also the name of the run's stream. */
  readonly conversation: string
  readonly agent: string
  /** Number of the run among all runs of its agent, as in `ps`; null if no turn has started in the run. */
  readonly seq: number | null
  /** Start of the run, in ms since the epoch. */
  readonly began: number
  /** End of the run, in ms since the epoch; null while the run is in progress. */
  readonly ended: number | null
  readonly turns: number
  /** Status of the run: working, done, failed or stopped. */
  readonly word: Word
  readonly tokens: number
  readonly usd: number
  /** True if the run's earlier spending was not read, so that `tokens` and `usd` are too low. */
  readonly isMore?: true
  /**
   * How the run ended: "success", "error", "timeout", "uncounted", "quota" or "fatal"; "stopped" if a user stopped it;
   * "cut short" if it exceeded its grace period. Null while the run is in progress.
   */
  readonly how: string | null
  readonly detail: string
  readonly beginsWith: number
  readonly restsOn: number
}

type Event = { readonly _tag: string; readonly [field: string]: unknown }

/**
 * Lists of rune kinds. Each list is read separately, so that frequent runes about spending do not displace the runes
 * about starts.
 */
export const READS = [["worker.moved"], ["turn.started", "turn.completed"], ["agent.usage"]]
/** Estimated number of runes per run, from which the number of runes to read is computed. */
const RUNES = 20
const LEAST = 1_000
const MOST = 1_000

const isObject = (value: unknown): value is Event => typeof value === "object" && value !== null
const textOf = (value: unknown): string => (typeof value === "string" ? value : "")

const eventOf = ({ payload }: Rune): Event | undefined => {
  const { event } = payload
  return isObject(event) && typeof event._tag === "string" ? event : undefined
}

const agentOf = ({ actor }: Rune): string => actor.slice(actor.indexOf("/") + 1)

const isEnding = (reason: string): reason is keyof typeof ENDINGS => Object.hasOwn(ENDINGS, reason)

const endOf = (outcome: unknown): Pick<RunRow, "how" | "detail"> => {
  if (!isObject(outcome)) return { how: "success", detail: "" }
  const reason = textOf(outcome["reason"])
  if (isEnding(reason))
    return { how: outcome._tag.toLowerCase(), detail: `${ENDINGS[reason]} (not counted as an error)` }
  const words = ["detail", "message", "reason"].map((field) => textOf(outcome[field])).find((text) => text !== "")
  const late = outcome._tag === "Timeout" ? "it exceeded its time limit" : ""
  return { how: outcome._tag.toLowerCase(), detail: words ?? late }
}

const endIn = (event: Event): (Pick<RunRow, "how" | "detail"> & { readonly run: string | undefined }) | undefined => {
  switch (event._tag) {
    case "SessionExited":
      return { run: textOf(event["runId"]), ...endOf(event["outcome"]) }
    case "response_done": {
      const { exit } = event
      return isObject(exit) ? { run: textOf(exit["runId"]), ...endOf(undefined) } : undefined
    }
    case "GraceExceeded":
      return { run: textOf(event["runId"]), how: "cut short", detail: "it did not end within its grace period" }
    case "OperatorStop":
      return { run: undefined, how: "stopped", detail: `stopped by ${textOf(event["by"])}` }
    default:
      return undefined
  }
}

/** The status of a run. If a user stopped the run, that is not a failure. */
const wordOf = ({ how }: Pick<RunRow, "how">): Word =>
  how === null ? "working" : how === "success" ? "done" : how === "stopped" ? "stopped" : "failed"

const seqIn = (event: Event | undefined): number | undefined => {
  const run = event?.["run"]
  return isObject(run) && typeof run["seq"] === "number" ? run["seq"] : undefined
}

const fresh = (rune: Rune, agent: string, run: string): RunRow => ({
  run,
  conversation: rune.stream,
  agent,
  seq: null,
  began: rune.at,
  ended: null,
  turns: 0,
  word: "working",
  tokens: 0,
  usd: 0,
  how: null,
  detail: "",
  beginsWith: rune.eventId,
  restsOn: rune.eventId
})

const spent = (row: RunRow, { eventId, payload: { tokens, usd } }: Rune): RunRow => ({
  ...row,
  tokens: row.tokens + (typeof tokens === "number" ? tokens : 0),
  usd: row.usd + (typeof usd === "number" ? usd : 0),
  restsOn: eventId
})

/**
 * Computes the runs from the results of the reads, one result per entry of READS. `tail`: number of runes requested per
 * read. Pure.
 */
export const runsOf = (reads: ReadonlyArray<ReadonlyArray<Rune>>, tail: number): ReadonlyArray<RunRow> => {
  const usage = reads.at(-1) ?? []
  const from = usage.length < tail ? 0 : usage[0]!.eventId
  return runsIn(reads.flat().toSorted((a, b) => a.eventId - b.eventId)).map((row) =>
    row.beginsWith < from ? { ...row, isMore: true } : row
  )
}

/** Computes the runs from runes, oldest first. Pure. */
export const runsIn = (runes: ReadonlyArray<Rune>): ReadonlyArray<RunRow> => {
  const rows = new Map<string, RunRow>()
  const newest = new Map<string, string>()
  for (const rune of runes) {
    const event = eventOf(rune)
    const agent = agentOf(rune)
    const of = `${rune.stream}/${agent}`
    if (event?._tag === "PromptReady") {
      const run = textOf(event["runId"])
      newest.set(of, run)
      rows.set(run, fresh(rune, agent, run))
      continue
    }
    const current = rows.get(newest.get(of) ?? "")
    if (rune.kind === "agent.usage" && current !== undefined) rows.set(current.run, spent(current, rune))
    if (rune.kind === "turn.started" && current !== undefined && current.ended === null) {
      const seq = seqIn(event) ?? current.seq
      rows.set(current.run, { ...current, seq, turns: current.turns + 1, restsOn: rune.eventId })
    }
    const end = event === undefined ? undefined : endIn(event)
    const ended = end === undefined ? undefined : end.run === undefined ? current : rows.get(end.run)
    // only the first end counts, because an abandoned run can report another end later
    if (end === undefined || ended === undefined || ended.ended !== null) continue
    const { detail, how } = end
    rows.set(ended.run, {
      ...rows.get(ended.run)!,
      ended: rune.at,
      word: wordOf(end),
      how,
      detail,
      restsOn: rune.eventId
    })
  }
  return [...rows.values()]
}

/**
 * Finds the runs to which the user's text refers: a run's id, or its beginning or end; a number; `last`; or -1 for the
 * run before the last.
 */
export const runNamed = (rows: ReadonlyArray<RunRow>, name: string): ReadonlyArray<RunRow> => {
  const back = name === "last" ? 0 : /^-\d{1,6}$/.test(name) ? -Number(name) : undefined
  if (back === undefined) {
    const byNumber = /^\d{1,9}$/.test(name) ? rows.filter(({ seq }) => seq === Number(name)) : []
    return byNumber.length > 0
      ? byNumber
      : rows.filter(({ run }) => name.length > 3 && (run.startsWith(name) || run.endsWith(name)))
  }
  const own = new Map<string, ReadonlyArray<RunRow>>()
  for (const row of rows) {
    const of = `${row.conversation}/${row.agent}`
    own.set(of, [...(own.get(of) ?? []), row])
  }
  return [...own.values()].flatMap((all) => all.at(-1 - back) ?? [])
}

const moneyOf = ({ isMore, tokens, usd }: RunRow): string => {
  const sum =
    usd > 0 ? `$${usd.toFixed(usd < 1 ? 4 : 2)}` : tokens > 0 ? `${tokens.toLocaleString("en-US")} tokens` : ""
  return isMore === true && sum !== "" ? `over ${sum}` : sum
}

const HEAD = ["RUN", "AGENT", "BEGAN", "LASTED", "TURNS", "COST", "OUTCOME", "REASON"]
const SPARE = ["COST", "TURNS", "LASTED"]

const FIELDS: ReadonlyArray<Field<Named>> = [
  { name: "run", of: ({ run }) => run },
  { name: "number", of: ({ seq }) => seq },
  { name: "agent", of: ({ name }) => plain(name) },
  { name: "began", of: ({ began }) => momentOf(began) },
  { name: "ended", of: ({ ended }) => momentOf(ended) },
  { name: "seconds", of: ({ began, ended }) => (ended === null ? null : Math.max(0, ended - began) / 1000) },
  { name: "turns", of: ({ turns }) => turns },
  { name: "tokens", of: ({ tokens }) => tokens },
  { name: "usd", of: ({ usd }) => usd },
  { name: "outcome", of: ({ word }) => word },
  { name: "reason", of: ({ detail }) => plain(detail) }
]

/** A run with its agent's display name. */
type Named = RunRow & { readonly name: string }

/** The newest `lines` runs, newest first. */
const pick = (rows: ReadonlyArray<Named>, failed: boolean, lines: number): ReadonlyArray<Named> =>
  rows
    .filter(({ word }) => !failed || word === "failed")
    .slice(-lines)
    .toReversed()

const isOne = (names: ReadonlyArray<string>): boolean => names.length === 1 && !/[*?]/.test(names[0]!)

export const runs = declare({
  path: ["log", "--runs"],
  description: "List the runs of agents, newest first: start, duration and outcome",
  examples: [
    {
      command: "agentd log --runs builder",
      description: "List the newest runs of builder; to print one of them: agentd log --text builder --run N"
    },
    {
      command: "agentd log --runs 'shop/*' --failed",
      description: "List the failed runs of the project shop, and why they failed"
    },
    { command: "agentd log --runs --csv -n 1000", description: "Print the newest 1000 runs as CSV, for a spreadsheet" }
  ],
  args: {
    names: words("Agents: builder, shop/builder, or a pattern such as 'shop/*'; default: all agents", "agent"),
    failed: off("List only failed runs"),
    csv: off("Print comma-separated values (CSV)"),
    lines: count("List only the newest N runs (default: 20)", 20, { least: 1, most: MOST, alias: "n" })
  },
  rpc: ({ csv, failed, lines, names }, caller) => {
    const tail = Math.min(10_000, Math.max(LEAST, lines * RUNES))
    const agent = isOne(names) ? { agent: names[0]! } : {}
    const log = (kinds: ReadonlyArray<string>) => readAll("Log", { caller, follow: false, kinds, tail, ...agent })
    const [moves, turns, usage] = READS.map(log)
    const reading = asked({ moves: moves!, turns: turns!, usage: usage!, homes: read("Conversations", null) })
    return map(reading, ({ homes, moves, turns, usage }) => {
      const { nameOf } = chosen(isOne(names) ? [] : names, homes, caller.config)
      const all = runsOf([moves, turns, usage], tail).flatMap((row): ReadonlyArray<Named> => {
        const name = nameOf(row.conversation, row.agent)
        return name === undefined ? [] : [{ ...row, name }]
      })
      return { csv, rows: pick(all, failed, lines) }
    })
  },
  view: ({ csv: isCsv, rows }, { colour, columns, now }: World) => {
    if (isCsv) return csv(FIELDS, rows)
    if (rows.length === 0) return ["There are no runs."]
    const cells = rows.map((row): ReadonlyArray<Cell> => {
      const number = row.seq === null ? "-" : String(row.seq)
      return [
        { text: `${number} ${row.run.slice(-8)}` },
        { text: plain(row.name) },
        { text: clock(row.began, now) },
        { text: age(Math.max(0, (row.ended ?? now) - row.began)), right: true },
        { text: String(row.turns), right: true },
        { text: moneyOf(row), right: true },
        { text: row.word, colour: lookColour[LOOKS[row.word].colour] },
        { text: plain(row.detail.split("\n")[0]!) }
      ]
    })
    return table(HEAD, cells, { colour, columns, spare: SPARE })
  },
  value: ({ rows }) => rows
})
