/**
 * Board: agents, sessions, goals, channels and whatever else needs a person on one page, by who acts next. Pure;
 * `ps` prints it once, `watch` again and again.
 *
 * Guarantees: what needs a person stands first, each with a command that works as it stands, and no command is cut.
 */
import { isNear, warning } from "../domain/ErrorLimit.ts"
import type { Board, BoardRow } from "../domain/BoardMessages.ts"
import { GROUPS, LOOKS, phrase } from "../domain/Words.ts"
import { inWorld } from "./Hint.ts"
import { age, type Cell, lookColour, paint, plain, table, type TableOptions } from "./Output.ts"

interface Column {
  readonly head: string
  readonly cell: (row: BoardRow, now: number, options: TableOptions) => Cell
}

export const nameOf = ({ kind, name, project }: BoardRow): string =>
  plain(project === "" || kind === "project" ? name : `${project}/${name}`)

/** Of names that would leave no room. */
const NAME = 36

/** `12k`, `1.2M`. */
export const short = (amount: number): string => {
  if (amount < 1_000) return String(Math.round(amount))
  if (amount < 1_000_000) return `${(amount / 1_000).toFixed(amount < 10_000 ? 1 : 0)}k`
  return `${(amount / 1_000_000).toFixed(1)}M`
}

const contextOf = ({ context }: BoardRow): string => {
  if (context === null) return ""
  const { used, window } = context
  return window === undefined ? short(used) : `${Math.min(999, Math.round((100 * used) / window))}%`
}

/** Spent since midnight: USD where they are known, else tokens. */
export const spentOf = (today: BoardRow["today"]): string => {
  if (today === null) return ""
  return today.usd > 0 ? `$${today.usd.toFixed(2)}` : today.tokens > 0 ? short(today.tokens) : ""
}

const limitsOf = ({ errors }: BoardRow) =>
  errors === null
    ? undefined
    : {
        consecutiveErrors: errors.inRow,
        maxConsecutiveErrors: errors.maxInRow,
        totalErrors: errors.total,
        maxTotalErrors: errors.maxTotal
      }

/** The text that tells most, and the command that comes first. */
const detailOf = (row: BoardRow, options: TableOptions): Cell => {
  const { commands, says, word } = row
  const limits = limitsOf(row)
  const warned = limits !== undefined && word !== "failed" && isNear(limits) ? `${warning(limits)}; ` : ""
  const [first] = commands
  const world = options.world ?? null
  return {
    text: warned + inWorld(plain(says), world),
    ...(first === undefined ? {} : { tail: `  → ${inWorld(plain(first.command), world)}` })
  }
}

const text = (value: string): Cell => ({ text: value })

const COLUMNS: ReadonlyArray<Column> = [
  {
    head: "NAME",
    cell: (row) => {
      const look = LOOKS[row.word]
      const name = nameOf(row)
      const short = name.length > NAME ? `${name.slice(0, NAME - 1)}…` : name
      return { text: `${look.glyph} ${short}`, colour: lookColour[look.colour] }
    }
  },
  { head: "STATE", cell: (row, now) => ({ text: phrase(row, now), colour: lookColour[LOOKS[row.word].colour] }) },
  { head: "FOR", cell: ({ since }, now) => text(since === 0 ? "" : age(now - since)) },
  { head: "ROLE", cell: ({ kind, role }) => text(kind === "agent" ? plain(role).slice(0, 20) : "") },
  { head: "MODEL", cell: ({ model }) => text(plain(model)) },
  { head: "RUNS", cell: ({ runs }) => text(runs === 0 ? "" : String(runs)) },
  { head: "CONTEXT", cell: (row) => text(contextOf(row)) },
  { head: "TODAY", cell: ({ today }) => text(spentOf(today)) },
  {
    head: "ERRORS",
    cell: (row) => {
      const { errors } = row
      if (errors === null || errors.inRow + errors.total === 0) return text("")
      const { inRow, maxInRow, maxTotal, total } = errors
      const isWorth = inRow > 0 || isNear(limitsOf(row)!)
      return { text: `${inRow}/${maxInRow} · ${total}/${maxTotal}`, colour: isWorth ? "yellow" : undefined }
    }
  },
  { head: "INBOX", cell: ({ inbox }) => ({ text: inbox === 0 ? "" : String(inbox), colour: "cyan" }) },
  { head: "BRANCH", cell: ({ branch }) => text(plain(branch ?? "")) },
  { head: "DETAIL", cell: (row, _, options) => detailOf(row, options) }
]

/** Columns that make room first, where the terminal is narrow. */
const SPARE = ["BRANCH", "ROLE", "RUNS", "CONTEXT", "MODEL", "ERRORS", "INBOX", "FOR", "TODAY", "STATE"]

const NOTHING = [
  "No agents yet. Describe some in agentd.jsonc (agentd init writes a sample), then run agentd start there.",
  "No sessions either. Let Claude Code tell of them: agentd hooks install"
]

/** A line above each group, and the rows below. */
const grouped = (rows: ReadonlyArray<BoardRow>, lines: ReadonlyArray<string>, colour: boolean): ReadonlyArray<string> =>
  GROUPS.flatMap((group) => {
    const own = lines.filter((_, at) => LOOKS[rows[at]!.word].group === group)
    return own.length === 0 ? [] : [paint(colour, "bold", `${group} ${own.length}`), ...own]
  })

export const render = ({ rows }: Board, now: number, options: TableOptions): ReadonlyArray<string> => {
  if (rows.length === 0) return NOTHING.map((line) => inWorld(line, options.world ?? null))
  const cells = rows.map((row) => COLUMNS.map(({ cell }) => cell(row, now, options)))
  const kept = COLUMNS.map((_, at) => cells.some((row) => row[at]!.text !== ""))
  const only = <A>(all: ReadonlyArray<A>) => all.filter((_, at) => kept[at])
  const [head, ...lines] = table(only(COLUMNS.map((column) => column.head)), cells.map(only), {
    ...options,
    spare: SPARE
  })
  return [head!, ...grouped(rows, lines, options.colour)]
}
