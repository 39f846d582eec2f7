/**
 * BoardFrame: draws the board as a page of terminal cells of any size. Pure.
 *
 * Guarantees: there is one list, grouped by who must act next. The pane of the selected row is below the list, or
 * beside it if there is room. The last line shows the keys for the selected row. If the daemon does not answer, the
 * first line says so, and the list shows the last known rows.
 */
import * as ApprovalView from "../agents/ApprovalView.ts"
import { scopeWords } from "../../approvals/AnswerScope.ts"
import { nameOf, short, spentOf } from "../sessions/Board.ts"
import { inWorld } from "../parse/HintCommand.ts"
import { age, plain } from "../render/Output.ts"
import type { BoardRow } from "../../domain/BoardMessages.ts"
import { telling } from "../../domain/CallSummary.ts"
import type { AskedCall } from "../../domain/Messages.ts"
import { isNear } from "../../domain/ErrorLimit.ts"
import { afterPhrase, isOver, LOOKS, phrase, type Word } from "../../domain/StatusWords.ts"
import { PANES, type PaneLine, STORIES } from "./BoardPane.ts"
import { type Item, labelsOf } from "./BoardItems.ts"
import { type BoardState, NOTE, SCOPE_KEYS } from "./BoardState.ts"
import { displayWidth } from "../render/Width.ts"
import { Cells, fit, type Style, wrap } from "./TerminalCells.ts"

export interface Terminal {
  readonly columns: number
  readonly rows: number
  readonly ascii: boolean
  /** State directory that commands on the page must name; null for the default one. */
  readonly world: string | null
}

const DARK = { you: 214, failed: 203, work: 75, quiet: 246, good: 78, faint: 246, line: 239, chosen: 236 }
const LIGHT = { you: 130, failed: 160, work: 26, quiet: 241, good: 28, faint: 241, line: 250, chosen: 254 }

/** Minimum terminal width, in columns, at which the pane is shown beside the list. */
const WIDE = 132
/** Minimum terminal height, in rows, at which the pane is shown below the list. */
const HIGH = 16

interface Brush {
  readonly cells: Cells
  readonly terminal: Terminal
  readonly now: number
  readonly colours: typeof DARK
}

const of = ({ colours }: Brush, word: Word): Style => ({ fg: colours[LOOKS[word].colour] })
const faint = ({ colours }: Brush): Style => ({ fg: colours.faint })
const glyph = ({ terminal }: Brush, word: Word): string => (terminal.ascii ? LOOKS[word].ascii : LOOKS[word].glyph)

const counted = (state: BoardState) => {
  const counts = { "Needs you": 0, Failed: 0, Working: 0, Idle: 0 }
  for (const { word } of state.rows.values()) counts[LOOKS[word].group]++
  return counts
}

const drawHead = (brush: Brush, state: BoardState): void => {
  const { cells, now } = brush
  const { gone, head } = state
  let x = cells.put(1, 0, "agentd", { bold: true })
  if (gone !== undefined) {
    cells.put(
      x + 2,
      0,
      fit(`${gone.message} For ${age(now - gone.since)}; trying again`, cells.columns - x - 3),
      of(brush, "failed")
    )
    return
  }
  if (head === undefined) return
  const counts = counted(state)
  const you = counts["Needs you"]
  x =
    you === 0
      ? cells.put(x + 2, 0, "nothing waits for you", of(brush, "done"))
      : cells.put(x + 2, 0, `${glyph(brush, "needs you")} ${you} ${you === 1 ? "needs" : "need"} you`, {
          ...of(brush, "needs you"),
          bold: true
        })
  if (counts.Failed > 0)
    x = cells.put(x + 2, 0, `${glyph(brush, "failed")} ${counts.Failed} failed`, of(brush, "failed"))
  x = cells.put(x + 2, 0, `${counts.Working} working`, faint(brush))
  if (cells.columns >= 72) x = cells.put(x + 2, 0, `${counts.Idle} idle`, faint(brush))
  const spent = spentOf(head.today)
  const end = `${spent}${spent.startsWith("$") ? "" : " tokens"} today`
  if (spent !== "" && cells.columns - x > end.length + 3) cells.right(cells.columns - 1, 0, end, faint(brush))
}

const drawFilter = ({ cells, colours }: Brush, { filter, mode }: BoardState): void => {
  cells.put(1, 1, "/", { fg: colours.faint })
  const x = cells.put(2, 1, filter)
  if (mode === "filter") cells.put(x, 1, "▏", { fg: colours.work })
}

/** A column to the right of a row's text. `from`: width of the list from which on the column is shown. */
interface Column {
  readonly head: string
  readonly from: number
  readonly width: number
  readonly text: (row: BoardRow, now: number) => string
  readonly bad?: (row: BoardRow) => boolean
}
const RIGHT: ReadonlyArray<Column> = [
  {
    head: "errors",
    from: 80,
    width: 7,
    text: ({ errors }) => (errors === null || errors.inRow === 0 ? "" : `${errors.inRow}/${errors.maxInRow}`),
    bad: () => true
  },
  { head: "inbox", from: 70, width: 6, text: ({ inbox }) => (inbox === 0 ? "" : `${inbox}✉`) },
  { head: "model", from: 150, width: 16, text: ({ model }) => plain(model).slice(-14) },
  {
    head: "context",
    from: 110,
    width: 8,
    text: ({ context }) =>
      context === null
        ? ""
        : context.window === undefined
          ? short(context.used)
          : `${Math.min(100, Math.round((context.used / context.window) * 100))}%`
  },
  { head: "today", from: 90, width: 8, text: ({ today }) => spentOf(today) },
  { head: "for", from: 0, width: 5, text: ({ since }, now) => (since === 0 ? "" : age(now - since)) }
]

/** The columns that have room, and a value in at least one row; the others would narrow the rows' text. */
const rightOf = ({ now }: Brush, { rows }: BoardState, width: number): ReadonlyArray<Column> =>
  RIGHT.filter(({ from, text }) => width >= from && [...rows.values()].some((row) => text(row, now) !== ""))

const KINDS: { readonly [kind in BoardRow["kind"]]: string } = {
  agent: "",
  session: "by hand",
  goal: "goal",
  channel: "",
  project: "project",
  matter: ""
}

const isWarned = ({ errors, word }: BoardRow): boolean =>
  errors !== null &&
  word !== "failed" &&
  isNear({
    totalErrors: errors.total,
    maxTotalErrors: errors.maxTotal
  })

interface Line {
  readonly y: number
  readonly width: number
  readonly right: ReadonlyArray<Column>
}

const drawRow = (brush: Brush, row: BoardRow, { right, width, y }: Line, isChosen: boolean): void => {
  const { cells, colours, now } = brush
  const back = isChosen ? { bg: colours.chosen } : {}
  if (isChosen) cells.fill(0, y, width, back)
  const put = (x: number, text: string, style: Style, room?: number) =>
    cells.put(x, y, text, { ...style, ...back }, room)
  put(1, glyph(brush, row.word), of(brush, row.word))
  const room = Math.min(34, Math.max(16, Math.floor(width * 0.26)))
  const project = row.project === "" || row.kind === "project" ? "" : `${plain(row.project)}/`
  let x = put(3, fit(project, Math.floor(room / 2)), faint(brush))
  x = put(x, fit(plain(row.name), 3 + room - x), { bold: true })
  const kind = row.kind === "agent" ? plain(labelsOf(row)) : KINDS[row.kind]
  if (kind !== "" && 3 + room - x > kind.length + 1) put(x + 1, kind, faint(brush))
  const end = width - right.reduce((sum, column) => sum + column.width, 0) - 1
  let at = 3 + room + 1
  const waits = row.word === "retrying" || row.word === "waiting"
  if (waits) at = put(at, `${fit(phrase(row, now), end - at - 1)} `, of(brush, row.word))
  const style = row.word === "failed" ? of(brush, "failed") : row.word === "needs you" ? {} : faint(brush)
  const says = inWorld(plain(row.says), brush.terminal.world)
  put(at, fit(waits ? afterPhrase(says) : says, end - at), style)
  let edge = end + 1
  for (const { bad, text, width: wide } of right) {
    const isBad = bad?.(row) === true || isWarned(row)
    cells.right(edge + wide - 1, y, text(row, now), {
      ...(bad !== undefined && isBad ? of(brush, "failed") : faint(brush)),
      ...back
    })
    edge += wide
  }
}

/** Draws the heads of the columns at the right of a line. */
const drawHeads = (brush: Brush, { right, width, y }: Line): void => {
  let edge = width
  for (const { head, width: wide } of right.toReversed()) {
    brush.cells.right(edge - 1, y, head, faint(brush))
    edge -= wide
  }
}

const drawItem = (brush: Brush, item: Item, line: Line, state: BoardState): void => {
  const { y } = line
  if (item._tag === "Row") return drawRow(brush, item.row, line, item.row.id === state.at)
  if (item._tag === "Project") {
    const end = brush.cells.put(3, y, `${plain(item.project)}/`, faint(brush), 34)
    brush.cells.put(end + 1, y, `${item.count} folded; click to unfold, or P for all`, faint(brush))
    return
  }
  const { ascii } = brush.terminal
  const mark = state.folded.has(item.group) ? (ascii ? "+" : "▸") : ascii ? "-" : "▾"
  brush.cells.put(1, y, mark, faint(brush))
  const x = brush.cells.put(3, y, item.group, { bold: true })
  brush.cells.put(x + 1, y, String(item.count), faint(brush))
}

const partsOf = ({ columns, rows }: Terminal, { filter, mode }: BoardState) => {
  const first = filter !== "" || mode === "filter" ? 2 : 1
  const isWide = columns >= WIDE
  const paneColumns = isWide ? Math.min(72, Math.floor(columns * 0.36)) : columns
  const paneRows = isWide ? rows - first - 1 : rows < HIGH ? 0 : Math.min(12, Math.floor(rows * 0.38))
  return {
    first,
    isWide,
    paneColumns,
    paneRows,
    listColumns: isWide ? columns - paneColumns - 1 : columns,
    listRows: Math.max(1, rows - first - 1 - (isWide ? 0 : paneRows))
  }
}

interface Place {
  readonly x: number
  readonly y: number
}

export const itemAt = (terminal: Terminal, state: BoardState, { x, y }: Place): Item | undefined => {
  const { first, listColumns, listRows } = partsOf(terminal, state)
  const isOutside = state.isZoomed || x >= listColumns || y < first || y >= first + listRows
  return isOutside ? undefined : state.items[state.top + y - first]
}

export const isPane = (terminal: Terminal, state: BoardState, { x, y }: Place): boolean => {
  const { first, isWide, listColumns, listRows, paneRows } = partsOf(terminal, state)
  if (state.row === undefined) return false
  return state.isZoomed || (paneRows > 0 && (isWide ? x >= listColumns : y >= first + listRows))
}

const LOOK_STYLES: { readonly [look in NonNullable<PaneLine["look"]>]: Word | undefined } = {
  strong: undefined,
  bad: "failed",
  good: "done",
  you: "needs you"
}

const drawPane = (brush: Brush, state: BoardState, x: number, y: number, width: number, height: number): void => {
  const { cells, colours } = brush
  const row = state.row!
  let at = cells.put(x + 1, y, ` ${fit(nameOf(row), 24)} `, { bold: true })
  for (const pane of PANES) {
    if (at + pane.length + 2 > x + width) break
    cells.fill(at, y, pane.length + 2)
    at = cells.put(at + 1, y, pane, pane === state.pane ? { bold: true, under: true } : { fg: colours.faint }) + 1
  }
  const lines: ReadonlyArray<PaneLine> = [
    ...(state.pane === "why"
      ? row.commands.map(({ command, does }) => ({
          text: `→ ${inWorld(command, brush.terminal.world)}   ${does}`,
          look: "you" as const
        }))
      : []),
    ...(state.shown?.id === row.id && state.shown.pane === state.pane ? state.shown.lines : [{ text: "…" }])
  ]
  const room = height - 1
  const drawn = lines.flatMap(({ isCode, look, text }) =>
    (text === ""
      ? [""]
      : isCode === true
        ? [fit(text, width - 3)]
        : wrap(inWorld(text, brush.terminal.world), width - 3)
    ).map((line) => ({ line, look }))
  )
  const hidden = Math.max(0, drawn.length - room)
  state.paneTop = Math.min(state.paneTop, hidden)
  // in these panes the newest lines are at the end, so scroll relative to the end
  const top = STORIES.has(state.pane) ? hidden - state.paneTop : state.paneTop
  const shown = drawn.slice(top, top + room)
  if (hidden > 0 && at + 12 < x + width)
    cells.right(x + width - 1, y, `${top + shown.length} of ${drawn.length}`, faint(brush))
  for (const [n, { line, look }] of shown.entries()) {
    const word = look === undefined ? undefined : LOOK_STYLES[look]
    const style: Style =
      look === "strong" ? { bold: true } : word === undefined ? { fg: colours.faint } : of(brush, word)
    cells.put(x + 2, y + 1 + n, line, style, width - 3)
  }
}

type Hint = readonly [key: string, does: string]

/** The keys that approve the call: once, or with the rule whose change is shown. */
const keepHints = (call: BoardState["call"]): ReadonlyArray<Hint> => {
  if (call?.preview !== undefined)
    return [
      ["a", `approve, and keep it ${scopeWords[call.preview.scope]}`],
      ["esc", "not so"]
    ]
  const scopes = Object.entries(SCOPE_KEYS).filter(([, scope]) => call?.asked?.scopes?.includes(scope) === true)
  return [
    ["a", "approve once"],
    ...(call?.batch === undefined ? [] : ([["A", `approve all ${call.batch.calls.length}`]] as const)),
    ...(scopes.length === 0 ? [] : ([[scopes.map(([key]) => key).join(" "), "for longer"]] as const))
  ]
}

/** The rules that an approval can keep, with the keys for each scope. */
const keepLines = ({ asked, offer, preview }: NonNullable<BoardState["call"]>): ReadonlyArray<string> => {
  const { offers = [], onlyHere, scopes = [] } = asked ?? {}
  if (offers.length === 0 || preview !== undefined) return []
  const keys = Object.entries(SCOPE_KEYS).filter(([, scope]) => scopes.includes(scope))
  return [
    "",
    "For longer than this call:",
    ...offers.map(({ words }, n) => `${n + 1 === offer ? "›" : " "} ${n + 1}  ${ApprovalView.line(words)}`),
    ...keys.map(([key, scope]) => `  ${key}  ${scopeWords[scope]}`),
    ...(onlyHere === undefined ? [] : [`  no longer: ${ApprovalView.line(onlyHere)}`])
  ]
}

const others = ({ batch, id }: NonNullable<BoardState["call"]>): ReadonlyArray<AskedCall> =>
  (batch?.calls ?? []).filter((one) => one.id !== id)

/** A row for each call of the batch, before the calls in full. */
const batchRows = (call: NonNullable<BoardState["call"]>): ReadonlyArray<string> =>
  call.batch === undefined || call.preview !== undefined
    ? []
    : [
        ...call.batch.calls.map(
          ({ agent, id, input, tool }) =>
            `${id === call.id ? "›" : " "} ${ApprovalView.line(agent)}: ${ApprovalView.line(telling(input) || tool)}`
        ),
        ""
      ]

const hintsOf = (state: BoardState): ReadonlyArray<Hint> => {
  const { call, mode, pane, row } = state
  if (mode === "filter")
    return [
      ["↵", "keep"],
      ["esc", "all"]
    ]
  if (mode === "call")
    return call?.asked?.questions === undefined
      ? [...keepHints(call), ["d", "deny"], ["j k", "next"], ["↑ ↓", "scroll"], ["esc", "back"]]
      : [
          ["1-9", "choose"],
          ["d", "your answer"],
          ["j k", "next"],
          ["esc", "back"]
        ]
  if (mode === "help") return [["any key", "back"]]
  if (mode === "go")
    return [
      ["↑ ↓", "choose"],
      ["↵", "go"],
      ["esc", "back"]
    ]
  if (state.isZoomed)
    return [
      ["j k", "scroll"],
      ["tab", pane],
      ["z", "back"],
      ["?", "keys"]
    ]
  const over = row !== undefined && isOver(row.word)
  return [
    ...((row?.asks.length ?? 0) > 0 ? ([["a", "look, approve"]] as const) : []),
    ...(row === undefined
      ? []
      : ([["↵", row.kind === "session" ? "jump there" : row.kind === "agent" ? "attach" : "see it"]] as const)),
    ...(row?.kind === "agent"
      ? ([["s", "send"], over ? ["r r", "start"] : ["i i", "interrupt"]] as ReadonlyArray<Hint>)
      : []),
    ...(row === undefined
      ? []
      : ([
          ["tab", pane],
          ["z", "whole"]
        ] as ReadonlyArray<Hint>)),
    ["/", "filter"],
    ["^K", "go"],
    ["?", "keys"],
    ["q", "quit"]
  ]
}

/** Keys that are shown however narrow the terminal is. */
const STAYING: ReadonlySet<string> = new Set(["?", "q", "esc"])

/** The hints that fit, without the last ones that can be spared. */
const fitting = (hints: ReadonlyArray<Hint>, columns: number): ReadonlyArray<Hint> => {
  const spare = hints.findLastIndex(([key]) => !STAYING.has(key))
  const width = hints.reduce((sum, [key, does]) => sum + displayWidth(key) + displayWidth(does) + 3, 0)
  return width <= columns || spare < 0 ? hints : fitting(hints.toSpliced(spare, 1), columns)
}

const LABELS: { readonly [mode in "deny" | "words" | "send"]: string } = {
  deny: "reason: ",
  words: "your answer: ",
  send: "to "
}

const drawFoot = (brush: Brush, state: BoardState): void => {
  const { cells, now } = brush
  const y = cells.rows - 1
  const { input, mode, note, row } = state
  if (mode === "deny" || mode === "words" || mode === "send") {
    const label = mode === "send" ? `${LABELS.send}${row === undefined ? "nobody" : nameOf(row)}: ` : LABELS[mode]
    const x = cells.put(1, y, fit(label, 40), faint(brush))
    const room = cells.columns - x - 20
    const typed = [...input].slice(-Math.max(1, room)).join("")
    cells.put(cells.put(x, y, typed, {}, room), y, "▏", of(brush, "working"))
    cells.right(cells.columns - 1, y, "↵ send  esc cancel", faint(brush))
    return
  }
  if (note !== undefined && now - note.at < NOTE) {
    cells.put(1, y, fit(plain(note.text), cells.columns - 2), { bold: true })
    return
  }
  let x = 1
  for (const [key, does] of fitting(hintsOf(state), cells.columns - 1)) {
    x = cells.put(x, y, key, { bold: true })
    x = cells.put(x + 1, y, does, faint(brush)) + 2
  }
}

/** Draws a box, and returns the position of its content. */
const drawBox = (
  brush: Brush,
  title: string,
  height: number,
  width: number
): { readonly x: number; readonly y: number } => {
  const { cells, colours, terminal } = brush
  const x = Math.max(0, Math.floor((cells.columns - width) / 2))
  const line: Style = { fg: colours.line }
  const [across, down, corners] = terminal.ascii ? ["-", "|", "++++"] : ["─", "│", "╭╮╰╯"]
  cells.put(x, 1, `${corners![0]}${across!.repeat(width - 2)}${corners![1]}`, line)
  for (let n = 1; n < height - 1; n++) {
    cells.fill(x, 1 + n, width)
    cells.put(x, 1 + n, down!, line)
    cells.put(x + width - 1, 1 + n, down!, line)
  }
  cells.put(x, height, `${corners![2]}${across!.repeat(width - 2)}${corners![3]}`, line)
  cells.put(x + 2, 1, ` ${fit(title, width - 8)} `, { bold: true })
  return { x: x + 2, y: 2 }
}

const drawCall = (brush: Brush, state: BoardState): void => {
  const { cells, now } = brush
  const call = state.call!
  const width = Math.min(cells.columns - 2, 110)
  const { asks } = state
  const at = asks.indexOf(call.id) + 1
  const title = `${at} of ${asks.length}  ${ApprovalView.line(call.batch?.title ?? call.asked?.agent ?? "")}`
  const body: ReadonlyArray<string> =
    call.asked === undefined
      ? [call.problem ?? "…"]
      : [
          ...(call.preview === undefined
            ? []
            : [
                ...ApprovalView.preview(call.preview, false).flatMap((line) => ApprovalView.wrapped(line, width - 4)),
                ""
              ]),
          ...batchRows(call),
          ...ApprovalView.lines(call.asked, width - 4),
          ...keepLines(call),
          ...others(call).flatMap((one) => ["", ...ApprovalView.lines(one, width - 4)]),
          ...(call.asked.questions ?? [])
            .slice(call.answers.length, call.answers.length + 1)
            .flatMap((question) => [
              "",
              plain(question.question),
              ...question.options.map(
                ({ description, label }, n) =>
                  `  ${n + 1}  ${plain(label)}${description === "" ? "" : `: ${plain(description)}`}`
              )
            ])
        ]
  const height = Math.min(cells.rows - 2, body.length + 3)
  for (let y = 1; y < cells.rows - 1; y++) cells.fill(0, y, cells.columns)
  const { x, y } = drawBox(brush, title, height, width)
  const until = call.asked?.until ?? null
  if (until !== null) cells.right(x + width - 5, 1, ` ${age(Math.max(0, until - now))} left `, faint(brush))
  const room = height - 2
  const top = Math.min(call.top, Math.max(0, body.length - room))
  for (const [n, line] of body.slice(top, top + room).entries()) cells.put(x, y + n, line, {}, width - 4)
  const left = body.length - room - top
  if (left <= 0 && call.batch !== undefined) state.seen = call.batch
  if (left > 0)
    cells.right(x + width - 5, height, ` ${left} more ${left === 1 ? "line" : "lines"} ↓ `, of(brush, "needs you"))
}

const HELP: ReadonlyArray<Hint> = [
  ["j k ↑ ↓", "move down, up; Home, G: to the first, last row"],
  ["↵", "attach to the agent, or go to the session's pane"],
  ["/  esc", "filter the rows; show all rows"],
  ["f  p  P", "fold the group, the project; unfold all projects"],
  ["o", "sort within the groups by state, name, age or cost"],
  ["tab", `next pane: ${PANES.join(", ")}`],
  ["z", "show the pane on the whole page"],
  ["J K", "scroll the pane, as with the mouse wheel over it"],
  ["Ctrl+K", "go to any page or row"],
  ["a", "show the call that waits; press a again to approve it"],
  ["A", "approve all calls that are shown, which are of one kind"],
  ["r n p e", "approve for longer: see first which rule is kept, then a"],
  ["d", "deny with a reason, or type an answer to a question"],
  ["1-9", "choose an option as the answer"],
  ["s", "send a text; !text ends the run first, >text the turn"],
  ["i i  r r  x x", "interrupt, (re)start, stop: press the key twice"],
  ["g a  g b", "show the next call that waits; show all rows"],
  ["g g  g c  g s  g p", "show only goals, channels, sessions, projects"],
  ["g t  g m", "show the pane timeline, cost"],
  ["q", "quit; the agents continue"]
]

const drawHelp = (brush: Brush): void => {
  const width = Math.min(brush.cells.columns - 2, 78)
  const { x, y } = drawBox(brush, "keys", Math.min(brush.cells.rows - 2, HELP.length + 2), width)
  for (const [n, [key, does]] of HELP.slice(0, brush.cells.rows - 4).entries()) {
    brush.cells.put(x, y + n, key, { bold: true })
    brush.cells.put(x + 21, y + n, fit(does, width - 25), faint(brush))
  }
}

const drawPalette = (brush: Brush, state: BoardState): void => {
  const { cells, colours } = brush
  const { entries, goAt, input } = state
  const width = Math.min(cells.columns - 2, 78)
  const room = Math.max(1, Math.min(14, cells.rows - 6))
  const { x, y } = drawBox(brush, "go to any page or row", room + 3, width)
  const typed = [...input].slice(4 - width).join("")
  cells.put(cells.put(x, y, typed, {}, width - 5), y, "▏", of(brush, "working"))
  if (entries.length === 0) cells.put(x, y + 1, "Nothing has this name.", faint(brush))
  const top = Math.max(0, Math.min(goAt - Math.floor(room / 2), entries.length - room))
  for (const [n, { does, label }] of entries.slice(top, top + room).entries()) {
    const back = top + n === goAt ? { bg: colours.chosen } : {}
    cells.fill(x, y + 1 + n, width - 4, back)
    const end = cells.put(x + 1, y + 1 + n, fit(plain(label), width - 8), { bold: top + n === goAt, ...back })
    cells.put(end + 2, y + 1 + n, fit(plain(does), x + width - end - 8), { ...faint(brush), ...back })
  }
}

const EMPTY = "There are no agents. To start:  cd your-project && agentd init && agentd start"
const NONE = "No row matches the filter.  esc shows all rows"

/** Scrolls the list so that the selected row is visible. */
const scrolled = (state: BoardState, rows: number): void => {
  const { items } = state
  const at = items.findIndex((item) => item._tag === "Row" && item.row.id === state.at)
  if (at >= 0 && at - 1 < state.top) state.top = Math.max(0, at - 1)
  if (at >= state.top + rows) state.top = at - rows + 1
  state.top = Math.max(0, Math.min(state.top, items.length - rows))
}

/** Explains why the list is empty. */
const drawEmpty = (brush: Brush, { gone, head, rows }: BoardState, y: number): void => {
  const { cells, terminal } = brush
  const lines = (text: string, style: Style) => wrap(text, cells.columns - 4).map((line) => [line, style] as const)
  const drawn =
    gone !== undefined
      ? [...lines(gone.message, of(brush, "failed")), ...(gone.remedy === "" ? [] : lines(`→ ${gone.remedy}`, {}))]
      : head === undefined
        ? []
        : lines(rows.size === 0 ? inWorld(EMPTY, terminal.world) : NONE, faint(brush))
  for (const [n, [line, style]] of drawn.slice(0, cells.rows - y - 1).entries()) cells.put(3, y + n, line, style)
}

/** Draws the list, and the pane of the selected row. */
const drawList = (brush: Brush, state: BoardState): void => {
  const { cells, terminal } = brush
  const { first, isWide, listColumns, listRows, paneColumns, paneRows } = partsOf(terminal, state)
  if (first === 2) drawFilter(brush, state)
  scrolled(state, listRows)
  const right = rightOf(brush, state, listColumns)
  for (let n = 0; n < listRows; n++) {
    const item = state.items[state.top + n]
    const line = { y: first + n, width: listColumns, right }
    if (item !== undefined) drawItem(brush, item, line, state)
    if (n === 0 && item?._tag === "Group") drawHeads(brush, line)
  }
  if (state.items.length === 0) drawEmpty(brush, state, first + 1)
  if (state.row !== undefined && paneRows > 0) {
    const line: Style = { fg: brush.colours.line }
    const [x, y] = isWide ? [listColumns + 1, first] : [0, first + listRows]
    if (isWide) for (let n = 0; n < paneRows; n++) cells.put(listColumns, first + n, terminal.ascii ? "|" : "│", line)
    else cells.put(0, y!, (terminal.ascii ? "-" : "─").repeat(cells.columns), line)
    drawPane(brush, state, x!, y!, paneColumns, paneRows)
  }
}

export const draw = (state: BoardState, terminal: Terminal, now: number): Cells => {
  const cells = new Cells(terminal.columns, terminal.rows)
  const brush: Brush = { cells, terminal, now, colours: state.isLight ? LIGHT : DARK }
  drawHead(brush, state)
  if (state.isZoomed && state.row !== undefined) drawPane(brush, state, 0, 1, terminal.columns, terminal.rows - 2)
  else drawList(brush, state)
  if (state.call !== undefined) drawCall(brush, state)
  if (state.mode === "help") drawHelp(brush)
  if (state.mode === "go") drawPalette(brush, state)
  drawFoot(brush, state)
  return cells
}
