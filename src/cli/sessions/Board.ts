/**
 * Board: formats agents, sessions, goals, channels and everything that needs the user as one table, grouped by who must
 * act next. Pure. `ps` prints the board once, `ps --watch` updates it.
 *
 * Guarantees: items that need the user come first, each with a command that can be copied. No command is cut.
 */
import { isNear, warning } from "../../domain/ErrorLimit.ts"
import type { Board, BoardRow } from "../../domain/BoardMessages.ts"
import { GROUPS, LOOKS, phrase, type Word } from "../../domain/StatusWords.ts"
import { inWorld } from "../parse/HintCommand.ts"
import {
  age,
  type Cell,
  cut,
  INCOMPLETE,
  lookColour,
  paint,
  plain,
  table,
  type TableOptions
} from "../render/Output.ts"
import { displayWidth } from "../render/Width.ts"

interface Column {
  readonly head: string
  readonly cell: (row: BoardRow, now: number, options: TableOptions) => Cell
}

export const nameOf = ({ kind, name, project }: BoardRow): string =>
  plain(project === "" || kind === "project" ? name : `${project}/${name}`)

/** Maximum length of a name in characters. Longer names would leave too little width for the other columns. */
const NAME = 36

/** A number in short form, such as `12k` or `1.2M`. */
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

/** Spending since midnight: in USD if known, otherwise in tokens. */
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

/** Minimum terminal width for the state column. On narrower terminals, only the group and the symbol show the state. */
const WIDE = 100
const isNarrow = ({ columns }: TableOptions): boolean => columns !== null && columns < WIDE

/** Status words that the group alone does not show. Without a state column, the detail must contain them. */
const UNSAID: ReadonlySet<Word> = new Set(["retrying", "waiting", "paused", "stopped", "done"])

/** The detail of a row: a text that explains the row's status, and the row's first command. */
const detailOf = (row: BoardRow, now: number, options: TableOptions): Cell => {
  const { commands, says, word } = row
  const state = isNarrow(options) && UNSAID.has(word) ? `${phrase(row, now)}: ` : ""
  const limits = limitsOf(row)
  const warned = limits !== undefined && word !== "failed" && isNear(limits) ? `${warning(limits)}; ` : ""
  const [first] = commands
  const world = options.world ?? null
  return {
    text: state + warned + inWorld(plain(says), world),
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
  { head: "ROLE", cell: ({ kind, role }) => text(kind === "agent" ? cut(plain(role), 20) : "") },
  { head: "LABELS", cell: ({ labels = [] }) => text(plain(labels.join(","))) },
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
  { head: "DETAIL", cell: detailOf }
]

/** Columns that can be dropped on a narrow terminal, in this order. */
const SPARE = ["BRANCH", "ROLE", "LABELS", "ERRORS", "RUNS", "MODEL", "CONTEXT", "INBOX", "FOR", "TODAY", "STATE"]
/** Width in cells for a row's text and command. Other columns are dropped until it is available. */
const DETAIL = 56
/**
 * Minimum width of the text in cells. If the command leaves less for the text, the command is printed on the next line.
 */
const READABLE = 32

const NOTHING = [
  "There are no agents. Describe agents in agentd.jsonc (agentd init writes a sample), then run agentd start in its folder.",
  "There are no sessions. To let Claude Code report its sessions: agentd hooks install"
]

export const BY = ["state", "project", "label"] as const
export type By = (typeof BY)[number]

/** The groups that contain a row. A row with several labels is in several groups. */
const groupsOf = ({ labels = [], project, word }: BoardRow, by: By): ReadonlyArray<string> => {
  if (by === "state") return [LOOKS[word].group]
  if (by === "project") return [project === "" ? "no project" : plain(project)]
  return labels.length === 0 ? ["no label"] : labels
}

const grouped = (
  rows: ReadonlyArray<BoardRow>,
  lines: ReadonlyArray<ReadonlyArray<string>>,
  colour: boolean,
  by: By
): ReadonlyArray<string> => {
  const groups = rows.map((row) => groupsOf(row, by))
  const order: ReadonlyArray<string> = by === "state" ? GROUPS : [...new Set(groups.flat())].toSorted()
  return order.flatMap((group) => {
    const own = lines.filter((_, at) => groups[at]!.includes(group))
    return own.length === 0 ? [] : [paint(colour, "bold", `${group} ${own.length}`), ...own.flat()]
  })
}

/** True if the command must be printed on the line below its text. `from`: first column of the text. */
const isBelow = ({ tail = "", text }: Cell, from: number, { columns }: TableOptions): boolean => {
  if (columns === null || tail === "") return false
  const room = columns - from - displayWidth(tail)
  return displayWidth(text) > room && room < READABLE
}

export interface Page extends Pick<Board, "reading" | "rows"> {
  readonly by?: By
}

export const render = (page: Page, now: number, options: TableOptions): ReadonlyArray<string> =>
  page.reading === true
    ? [INCOMPLETE, ...(page.rows.length === 0 ? [] : rendered(page, now, options))]
    : rendered(page, now, options)

const rendered = ({ by = "state", rows }: Page, now: number, options: TableOptions): ReadonlyArray<string> => {
  if (rows.length === 0) return NOTHING.map((line) => inWorld(line, options.world ?? null))
  const columns = COLUMNS.filter(({ head }) => head !== "STATE" || !isNarrow(options))
  const cells = rows.map((row) => columns.map(({ cell }) => cell(row, now, options)))
  const kept = columns.map((_, at) => cells.some((row) => row[at]!.text !== ""))
  const only = <A>(all: ReadonlyArray<A>) => all.filter((_, at) => kept[at])
  const heads = only(columns.map(({ head }) => head))
  const all = cells.map(only)
  const lines = (shown: ReadonlyArray<ReadonlyArray<Cell>>) =>
    table(heads, shown, { ...options, spare: SPARE, room: DETAIL })
  const [first = ""] = lines(all)
  const from = displayWidth(first) - displayWidth("DETAIL")
  const below = all.map((row) => isBelow(row.at(-1)!, from, options))
  const apart = all.map((row, at) => (below[at] === true ? [...row.slice(0, -1), { text: row.at(-1)!.text }] : row))
  // a command on the next line needs no width in the table, so more columns might fit
  const [head, ...shown] = lines(apart)
  const margin = " ".repeat(Math.max(0, displayWidth(head ?? "") - displayWidth("DETAIL")))
  const rowLines = shown.map((line, at) =>
    below[at] === true ? [line, `${margin}${all[at]!.at(-1)!.tail!.trim()}`] : [line]
  )
  return [head!, ...grouped(rows, rowLines, options.colour, by)]
}
