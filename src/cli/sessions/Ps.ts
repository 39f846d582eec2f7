/**
 * `agentd ps`: lists agents, sessions, goals, channels and all other items that need the user, one per row. With -w,
 * the list is updated continuously.
 */
import type { Board, BoardRow } from "../../domain/BoardMessages.ts"
import { WORDS } from "../../domain/StatusWords.ts"
import { ascii } from "../render/Ascii.ts"
import { BY, render } from "./Board.ts"
import { chosen } from "./RowFilter.ts"
import { csv, type Field, moment } from "../render/Csv.ts"
import { choice, declare, map, off, option, options, read, words } from "../parse/DeclaredVerb.ts"
import { ExitCode } from "../parse/ExitCode.ts"
import * as NamePatterns from "../parse/NamePatterns.ts"
import { plain, READING } from "../render/Output.ts"

const TYPED = WORDS.map((word) => word.replace(" ", "-"))

const FIELDS: ReadonlyArray<Field<BoardRow>> = [
  { name: "kind", of: ({ kind }) => kind },
  { name: "project", of: ({ project }) => plain(project) },
  { name: "name", of: ({ name }) => plain(name) },
  { name: "state", of: ({ word }) => word },
  { name: "since", of: ({ since }) => (since === 0 ? null : moment(since)) },
  { name: "until", of: ({ until }) => moment(until) },
  { name: "role", of: ({ kind, role }) => (kind === "agent" ? plain(role) : "") },
  { name: "labels", of: ({ labels = [] }) => plain(labels.join(" ")) },
  { name: "model", of: ({ model }) => plain(model) },
  { name: "runs", of: ({ kind, runs }) => (kind === "agent" ? runs : null) },
  { name: "context", of: ({ context }) => context?.used ?? null },
  { name: "window", of: ({ context }) => context?.window ?? null },
  { name: "tokens today", of: ({ today }) => today?.tokens ?? null },
  { name: "usd today", of: ({ today }) => today?.usd ?? null },
  { name: "errors in a row", of: ({ errors }) => errors?.inRow ?? null },
  { name: "errors", of: ({ errors }) => errors?.total ?? null },
  { name: "inbox", of: ({ inbox, kind }) => (kind === "agent" ? inbox : null) },
  { name: "branch", of: ({ branch }) => (branch === null ? null : plain(branch)) },
  { name: "detail", of: ({ says }) => plain(says) },
  { name: "command", of: ({ commands }) => (commands[0] === undefined ? null : plain(commands[0].command)) }
]

/** The error for a list that lacks what was asked for. In CSV, an incomplete list could not be told from a whole one. */
const absentIn = (
  { reading, rows }: Board,
  { csv, ...asked }: Parameters<typeof NamePatterns.absent>[1] & { readonly csv: boolean },
  config: string | null
) => (reading === true ? (csv ? READING : undefined) : NamePatterns.absent(rows, asked, config))

export const ps = declare({
  path: ["ps"],
  description: "List everything that is running, items waiting for you first",
  examples: [
    {
      command: "agentd ps",
      description: "List everything; items that need you come first, each with a command that helps"
    },
    { command: "agentd ps 'shop/*' --is failed", description: "List the failed agents and goals of the project shop" },
    {
      command: "agentd ps --label web --by project",
      description: "List the agents with the label web, grouped by project"
    },
    { command: "agentd ps -w", description: "Open the board, which shows changes live" },
    { command: "agentd ps --csv", description: "Print the list as CSV, for a spreadsheet" }
  ],
  args: {
    names: words("Names or patterns, such as builder, shop or 'shop/*'; default: everything", "NAME"),
    project: option("NAME", "List only rows of this project"),
    labels: options("label", "LABEL", "List only agents with this label; repeatable", "l"),
    is: choice(["any", ...TYPED], "any", "List only rows with this status"),
    sort: choice(["state", "name", "age", "cost"], "state", "Order of the rows within each group"),
    by: choice(BY, "state", "How the rows are grouped"),
    all: off("Also list items that ended more than a day ago", "a"),
    watch: off("Open the board, which shows changes live", "w"),
    bell: off("With --watch: ring the terminal's bell when a session begins to wait for you"),
    notify: off("With --watch: show a desktop notification when a session begins to wait for you (needs notify-send)"),
    plates: off("List only sessions, with all known details. Help: agentd ps --plates --help"),
    csv: off("Print comma-separated values (CSV)"),
    ascii: off("Use only ASCII characters for the symbols")
  },
  wrong: (input) => {
    const { bell, notify, watch } = input
    if (!watch && (bell || notify)) {
      return {
        message: `--${bell ? "bell" : "notify"} works only with --watch.`,
        remedy: "Add --watch: agentd ps --watch --bell",
        exitCode: ExitCode.usage
      }
    }
    const { all, by, csv, is, names, project, sort } = input
    const others = {
      all,
      csv,
      by: by !== "state",
      is: is !== "any",
      project: project !== undefined,
      sort: sort !== "state"
    }
    const given = names.length > 0 ? "A name" : `--${Object.entries(others).find(([, isGiven]) => isGiven)?.[0] ?? ""}`
    if (!watch || given === "--") return undefined
    return {
      message: `${given} cannot be used with --watch, because the board has its own order and filter.`,
      remedy: "On the board, / filters rows by words, and s sorts them. For one label: agentd ps --watch --label LABEL",
      exitCode: ExitCode.usage
    }
  },
  rpc: ({ all, ascii, by, csv, is, labels, names, project, sort }, { config }) =>
    map(read("Board", { all }), (board) => ({
      absent: absentIn(board, { csv, labels, names, project }, config),
      isFiltered: is !== "any" && board.rows.length > 0,
      board: {
        ...board,
        ...(by === "state" ? {} : { by }),
        rows: chosen(board.rows, { names, labels, project, sort, word: WORDS[TYPED.indexOf(is)] }, config)
      },
      ascii,
      csv
    })),
  absent: ({ absent }) => (absent === undefined ? undefined : { ...absent, exitCode: ExitCode.failed }),
  view: ({ ascii: isAscii, board, csv: isCsv, isFiltered }, world) => {
    if (isCsv) return csv(FIELDS, board.rows)
    const lines =
      isFiltered && board.rows.length === 0 && board.reading !== true
        ? ["Nothing in the list has this status. List everything: agentd ps --all"]
        : render(board, world.now, world)
    return isAscii ? lines.map(ascii) : lines
  },
  value: ({ board }) => board,
  quick: ({ watch }) => !watch
})
