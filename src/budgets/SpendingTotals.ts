/**
 * SpendingTotals: the spending of one conversation, from its runes. It has sums for each agent and for the
 * conversation: for the turn, the day, the month and in total. For cost reports it also has rows by day, agent, model
 * and goal, and rows of the newest hours.
 *
 * Guarantees: memory is bounded for any length of the log: old days are merged into months, then into one sum, and only
 * the newest agents are stored. Warnings that were given are stored, too.
 */
import * as Calendar from "../domain/Calendar.ts"
import type { Cost } from "../domain/SpendingLimits.ts"
import { Option, Schema } from "effect"
import { ArchivedSpending, readUsage, type Usage } from "../domain/UsageKinds.ts"
import type { Rune } from "../core/event-log/Rune.ts"
import { readBudget } from "./BudgetKinds.ts"

export interface Sum {
  readonly tokens: number
  readonly usd: number
  readonly toolCalls: number
  /** Duration, ms. */
  readonly wallTime: number
}

export const nothing: Sum = { tokens: 0, usd: 0, toolCalls: 0, wallTime: 0 }

/** A sum of spending, and the turn, day or month in which it was spent. */
interface Of {
  readonly label: string
  readonly sum: Sum
  /** The previous day or month, which continues if a clock that was ahead for a moment ended it too early. */
  readonly before?: Omit<Of, "before">
}

/** The sums of one agent, or of all agents in the conversation. */
export interface Account {
  /** Implausible spending that was reported for the newest turn, and that turn's id. */
  readonly unlikely?: NonNullable<Usage["unlikely"]> & { readonly turn: string }
  /** Costs of earlier turns, newest last. */
  readonly usual?: ReadonlyArray<Pick<Sum, "tokens" | "usd">>
  readonly total: Sum
  readonly turn: Of
  readonly day: Of
  readonly month: Of
}

const none: Of = { label: "", sum: nothing }
export const empty: Account = { total: nothing, turn: none, day: none, month: none }

/** A row of spending. `conversation` is set only for an archived conversation, in the daemon's stream. */
type Row = Omit<Cost, "conversation"> & { readonly conversation?: string }

/** The totals of one stream. They are changed in place. */
export interface SpendingTotals {
  /** All spending so far, which is never reset. */
  ever: Sum
  project: Account
  readonly agents: Map<string, Account>
  readonly rows: Map<string, Row>
  /** Rows of the newest hours, without goals. Their `day` contains the hour. */
  readonly hours: Map<string, Row>
  /** Keys of the warnings that were sent to the user. */
  readonly told: Set<string>
}

export const fresh = (): SpendingTotals => ({
  ever: nothing,
  project: empty,
  agents: new Map(),
  rows: new Map(),
  hours: new Map(),
  told: new Set()
})

const MAX_AGENTS = 2_000
const MAX_ROWS = 4_000
const MAX_HOURS = 2_000
const MAX_TOLD = 1_000
/** Number of earlier turns from which the usual cost is computed. */
const MAX_USUAL = 20
/** Value of `day` in rows that are older than all stored months. */
const EARLIER = "earlier"

export const add = (a: Sum, b: Sum): Sum => ({
  tokens: a.tokens + b.tokens,
  usd: a.usd + b.usd,
  toolCalls: a.toolCalls + b.toolCalls,
  wallTime: a.wallTime + b.wallTime
})

/**
 * The sum of the period that contains the day. If the clock was set back, the period does not restart. If a clock that
 * was far ahead had begun a later period, that period's sum is added to the one before.
 */
export const present = (of: Of, day: string, now: string): Of => {
  const { before, label, sum } = of
  if (!Calendar.isOver(label, day)) return of
  if (label < now) return { label: now, sum: nothing, before: { label, sum } }
  return { label: now, sum: before?.label === now ? add(before.sum, sum) : nothing }
}

const into = (of: Of, day: string, now: string, more: Sum): Of => {
  const { sum, ...period } = present(of, day, now)
  return { ...period, sum: add(sum, more) }
}

export const spent = (account: Account, day: string, more: Sum): Account => ({
  ...account,
  total: add(account.total, more),
  day: into(account.day, day, day, more),
  month: into(account.month, day, Calendar.monthOf(day), more)
})

/** Adds to the sum of a turn. If another turn has begun since, its sum is only what is added. */
export const intoTurn = ({ label, sum }: Of, turn: string, more: Sum): Of =>
  label === turn ? { label, sum: add(sum, more) } : { label: turn, sum: more }

/** Costs of earlier turns. If a new turn has begun, the cost of the previous one is added. */
const usualOf = ({ turn: { label, sum }, usual = [] }: Account, turn: string): NonNullable<Account["usual"]> =>
  label === turn || label === "" ? usual : [...usual, { tokens: sum.tokens, usd: sum.usd }].slice(-MAX_USUAL)

const used = (account: Account, turn: string, day: string, more: Sum): Account => ({
  ...spent(account, day, more),
  usual: usualOf(account, turn),
  turn: intoTurn(account.turn, turn, more)
})

export const sumOf = ({ tokens, tool_calls: toolCalls, usd, wall_time: wallTime }: Usage): Sum => ({
  tokens,
  usd,
  toolCalls,
  wallTime
})

/** Adds usage to an agent's own sums. Unlike other sums, these include implausible spending. */
const usedByIt = (account: Account, { turn_id: turn, unlikely }: Usage, day: string, more: Sum): Account => {
  if (unlikely === undefined) return used(account, turn, day, more)
  const { tokens = 0, usd = 0 } = account.unlikely?.turn === turn ? account.unlikely : {}
  return {
    ...used(account, turn, day, add(more, { ...nothing, ...unlikely })),
    unlikely: { turn, tokens: tokens + unlikely.tokens, usd: usd + unlikely.usd }
  }
}

const sumUnlikely = (a: Cost["unlikely"], b: Cost["unlikely"]): Cost["unlikely"] =>
  a === undefined || b === undefined ? (a ?? b) : { tokens: a.tokens + b.tokens, usd: a.usd + b.usd }

const addRow = (rows: Map<string, Row>, row: Row): void => {
  const key = JSON.stringify([row.day, row.agent, row.model, row.goal, row.conversation])
  const known = rows.get(key)
  const unlikely = sumUnlikely(known?.unlikely, row.unlikely)
  rows.set(
    key,
    known === undefined
      ? row
      : {
          ...row,
          input: known.input + row.input,
          output: known.output + row.output,
          cacheRead: known.cacheRead + row.cacheRead,
          cacheWrite: known.cacheWrite + row.cacheWrite,
          usd: known.usd + row.usd,
          unpriced: known.unpriced + row.unpriced,
          ...(unlikely === undefined ? {} : { unlikely })
        }
  )
}

/**
 * Merges rows of the oldest days into rows of their month without goals. If there are no days left, merges months into
 * one row per model.
 */
const shorten = (rows: Map<string, Row>): void => {
  while (rows.size > MAX_ROWS) {
    const all = [...rows.values()]
    const days = all.map(({ day }) => day).filter((day) => day.length === 10)
    const oldest = days.reduce((least, day) => (day < least ? day : least), "9")
    const month = Calendar.monthOf(oldest)
    const isOld = ({ day }: Row) => (days.length === 0 ? day !== EARLIER : day.length === 10 && day.startsWith(month))
    rows.clear()
    for (const row of all)
      if (!isOld(row)) addRow(rows, row)
      else if (days.length === 0) addRow(rows, { ...row, day: EARLIER, agent: "", goal: "" })
      else addRow(rows, { ...row, day: month, goal: "" })
    if (days.length === 0) return
  }
}

const forgetHours = (hours: Map<string, Row>): void => {
  for (const key of hours.keys()) {
    if (hours.size <= MAX_HOURS) return
    hours.delete(key)
  }
}

const rowsOf = (
  usage: Omit<Usage, "unlikely"> & { readonly unlikely?: Usage["unlikely"] | undefined },
  day: string
): ReadonlyArray<Row> => {
  const { agent_id: agent, goal = "", models, tokens, unlikely, usd } = usage
  const of = { day, agent, goal }
  const none = { ...of, model: "", input: 0, output: 0, cacheRead: 0, cacheWrite: 0, usd: 0, unpriced: 0 }
  if (unlikely !== undefined) return [{ ...none, unlikely }, ...rowsOf({ ...usage, unlikely: undefined }, day)]
  if (models === undefined)
    return tokens + usd === 0
      ? []
      : [
          {
            ...of,
            model: "",
            input: tokens,
            output: 0,
            cacheRead: 0,
            cacheWrite: 0,
            usd,
            unpriced: usd === 0 ? tokens : 0
          }
        ]
  return models.map(
    ({ cache_read: cacheRead = 0, cache_write: cacheWrite = 0, input, model, output, usd: cost = 0 }) => ({
      ...of,
      model,
      input,
      output,
      cacheRead,
      cacheWrite,
      usd: cost,
      unpriced: 0
    })
  )
}

const keep = <V>(map: Map<string, V>, key: string, value: V, most: number): void => {
  map.delete(key)
  map.set(key, value)
  const [oldest] = map.keys()
  if (map.size > most && oldest !== undefined) map.delete(oldest)
}

/** Adds usage to all sums. `at`: time of the rune, ms since the epoch. Returns the day to which the usage belongs. */
export const use = (spending: SpendingTotals, usage: Usage, at: number): string => {
  const { agent_id: agent, turn_id: turn } = usage
  const day = usage.day ?? Calendar.dayOf(at)
  const more = sumOf(usage)
  spending.ever = add(spending.ever, more)
  spending.project = used(spending.project, turn, day, more)
  keep(spending.agents, agent, usedByIt(spending.agents.get(agent) ?? empty, usage, day, more), MAX_AGENTS)
  for (const row of rowsOf(usage, day)) {
    addRow(spending.rows, row)
    addRow(spending.hours, { ...row, day: Calendar.hourOf(at), goal: "" })
  }
  shorten(spending.rows)
  forgetHours(spending.hours)
  return day
}

/** Removes the stored warnings about a total that is reset, so that they are given again. */
const forget = (told: Set<string>, beginning: string): void => {
  for (const key of told) if (key.startsWith(beginning)) told.delete(key)
}

export const began = (spending: SpendingTotals, agent: string): void => {
  const account = spending.agents.get(agent)
  if (account !== undefined) spending.agents.set(agent, { ...account, total: nothing })
  forget(spending.told, `agent/${agent}/total/`)
}

export const renewed = (spending: SpendingTotals): void => {
  spending.project = { ...spending.project, total: nothing }
  forget(spending.told, "project/total/")
}

export const tell = (told: Set<string>, key: string): void => {
  told.add(key)
  const [oldest] = told
  if (told.size > MAX_TOLD && oldest !== undefined) told.delete(oldest)
}

/** Maximum number of rows in the rune that archives a conversation. */
const MAX_ARCHIVED = 200

export const archivedOf = ({ ever, project, rows }: SpendingTotals): ArchivedSpending => {
  const all = new Map<string, Row>()
  const isLong = rows.size > MAX_ARCHIVED
  for (const one of rows.values()) {
    // only plausible spending is archived
    const { unlikely: _, ...row } = one
    const month = row.day.length === 10 ? Calendar.monthOf(row.day) : row.day
    addRow(all, isLong ? { ...row, day: month, goal: "" } : row)
  }
  const costs = [...all.values()]
  const kept = costs.slice(-MAX_ARCHIVED)
  const older = new Map<string, Row>()
  for (const row of costs.slice(0, -MAX_ARCHIVED))
    addRow(older, { ...row, day: EARLIER, agent: "", model: "", goal: "" })
  const period = ({ label, sum }: Of) => ({ label, tokens: sum.tokens, usd: sum.usd })
  return {
    tokens: ever.tokens,
    usd: ever.usd,
    day: period(project.day),
    month: period(project.month),
    costs: [...older.values(), ...kept]
  }
}

/** Adds the sum of an archived conversation to a period's sum, if it belongs to the newest period. */
const newest = (of: Of, { label, tokens, usd }: ArchivedSpending["day"]): Of => {
  const sum: Sum = { ...nothing, tokens, usd }
  if (label < of.label) return of
  return { label, sum: label === of.label ? add(of.sum, sum) : sum }
}

/** Adds the sums of an archived conversation to those of the daemon. */
const archived = (spending: SpendingTotals, conversation: string, of: ArchivedSpending): void => {
  const { costs, day, month, tokens, usd } = of
  spending.ever = add(spending.ever, { ...nothing, tokens, usd })
  const { project } = spending
  spending.project = { ...project, day: newest(project.day, day), month: newest(project.month, month) }
  for (const row of costs) addRow(spending.rows, { ...row, conversation })
  shorten(spending.rows)
}

const decodeArchived = Schema.decodeUnknownOption(
  Schema.Struct({ summary: Schema.Struct({ conversation: Schema.String, spending: ArchivedSpending }) })
)

export const kinds: ReadonlySet<string> = new Set([
  "agent.usage",
  "agent.spawning",
  "session.unsuspended",
  "session.archived",
  "budget.near",
  "budget.spent"
])

export const apply = (spending: SpendingTotals, rune: Rune): void => {
  const usage = readUsage(rune)
  if (usage !== undefined) return void use(spending, usage.payload, rune.at)
  if (rune.kind === "agent.spawning") return began(spending, rune.actor.slice(rune.actor.indexOf("/") + 1))
  if (rune.kind === "session.unsuspended") return renewed(spending)
  if (rune.kind === "session.archived") {
    const found = Option.getOrUndefined(decodeArchived(rune.payload))?.summary
    return found === undefined ? undefined : archived(spending, found.conversation, found.spending)
  }
  const said = readBudget(rune)
  if (said !== undefined) tell(spending.told, said.payload.key)
}

/**
 * Rows of spending. Tokens of a model without a price count as unpriced. `hours`: rows by hour, in which `day` contains
 * the hour.
 */
export const costsOf = (
  spending: SpendingTotals,
  conversation: string,
  since: string,
  { hours }: { readonly hours: boolean } = { hours: false }
): ReadonlyArray<Cost> =>
  [...(hours ? spending.hours : spending.rows).values()]
    .filter(({ day }) => since === "" || day.slice(0, since.length) >= since.slice(0, day.length))
    .map((row) => ({
      conversation,
      ...row,
      unpriced: row.usd === 0 ? row.input + row.output : row.unpriced
    }))
