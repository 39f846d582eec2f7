/**
 * Board: agents, sessions, goals, channels and whatever else needs a person on one page, by who acts next. Pure;
 * `ps` prints it once, `watch` again and again.
 *
 * Guarantees: what needs a person stands first, each with a command that works as it stands, and no command is cut.
 */
import { isNear, warning } from "../../domain/ErrorLimit.ts"
import type { Board, BoardRow } from "../../domain/BoardMessages.ts"
import { GROUPS, LOOKS, phrase, type Word } from "../../domain/Words.ts"
import { inWorld } from "../parse/Hint.ts"
import { age, type Cell, cut, lookColour, paint, plain, table, type TableOptions } from "../render/Output.ts"
import { displayWidth } from "../render/Width.ts"

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

/** Terminals that are narrower have no column for the state: its group and its mark say the word. */
const WIDE = 100
const isNarrow = ({ columns }: TableOptions): boolean => columns !== null && columns < WIDE

/** Words that a group does not say, where there is no column for them. */
const UNSAID: ReadonlySet<Word> = new Set(["retrying", "waiting", "paused", "stopped", "done"])

/** The text that tells most, and the command that comes first. */
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

/** Columns that make room first, where the terminal is narrow. */
const SPARE = ["BRANCH", "ROLE", "LABELS", "ERRORS", "RUNS", "MODEL", "CONTEXT", "INBOX", "FOR", "TODAY", "STATE"]
/** The room that a row's text and its command get at the cost of those. */
const DETAIL = 56
/** A text that is cut to less, since a command stands behind it, has that below it. */
const READABLE = 32

const NOTHING = [
  "No agents yet. Describe some in agentd.jsonc (agentd init writes a sample), then run agentd start there.",
  "No sessions either. Let Claude Code tell of them: agentd hooks install"
]

export const BY = ["state", "project", "label"] as const
export type By = (typeof BY)[number]

/** The groups of a row: by its labels it may be in several. */
const groupsOf = ({ labels = [], project, word }: BoardRow, by: By): ReadonlyArray<string> => {
  if (by === "state") return [LOOKS[word].group]
  if (by === "project") return [project === "" ? "no project" : plain(project)]
  return labels.length === 0 ? ["no label"] : labels
}

/** A line above each group, and the rows below. */
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

/** Whether a command has to stand below its text, which begins at this column. */
const isBelow = ({ tail = "", text }: Cell, from: number, { columns }: TableOptions): boolean => {
  if (columns === null || tail === "") return false
  const room = columns - from - displayWidth(tail)
  return displayWidth(text) > room && room < READABLE
}

export interface Page extends Pick<Board, "rows"> {
  readonly by?: By
}

export const render = ({ by = "state", rows }: Page, now: number, options: TableOptions): ReadonlyArray<string> => {
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
  // without the commands that stand below, there may be room for more
  const [head, ...shown] = lines(apart)
  const margin = " ".repeat(Math.max(0, displayWidth(head ?? "") - displayWidth("DETAIL")))
  const rowLines = shown.map((line, at) =>
    below[at] === true ? [line, `${margin}${all[at]!.at(-1)!.tail!.trim()}`] : [line]
  )
  return [head!, ...grouped(rows, rowLines, options.colour, by)]
}
