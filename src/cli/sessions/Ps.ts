/** `agentd ps`: agents, sessions, goals, channels and all that needs a person, one per row; -w updates the list. */
import type { BoardRow } from "../../domain/BoardMessages.ts"
import { WORDS } from "../../domain/Words.ts"
import { ascii } from "../render/Ascii.ts"
import { BY, render } from "./Board.ts"
import { chosen } from "./Choose.ts"
import { csv, type Field, moment } from "../render/Csv.ts"
import { choice, declare, map, off, option, options, read, words } from "../parse/DeclaredVerb.ts"
import { ExitCode } from "../parse/ExitCode.ts"
import { plain } from "../render/Output.ts"

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

export const ps = declare({
  path: ["ps"],
  description: "List everything that is running, items waiting for you first",
  examples: [
    { command: "agentd ps", description: "Items that need you come first, each with the command that helps" },
    { command: "agentd ps 'shop/*' --is failed", description: "Failed agents and goals of one project" },
    { command: "agentd ps --label web --by project", description: "All with one label, project by project" },
    { command: "agentd ps -w", description: "Stay, and show what changes" },
    { command: "agentd ps --csv", description: "For a spreadsheet" }
  ],
  args: {
    names: words("Names or patterns: builder, shop, 'shop/*'", "NAME"),
    project: option("NAME", "Only rows of this project"),
    labels: options("label", "LABEL", "Only agents with this label; repeatable", "l"),
    is: choice(["any", ...TYPED], "any", "Only rows with this status"),
    sort: choice(["state", "name", "age", "cost"], "state", "The order within each group"),
    by: choice(BY, "state", "What rows are grouped by"),
    all: off("Also what ended more than a day ago", "a"),
    watch: off("Stay, and show what changes: the board", "w"),
    bell: off("With --watch: ring the terminal's bell when a session starts to wait"),
    notify: off("With --watch: show a desktop notification then, if notify-send is installed"),
    plates: off("All that is known of each session instead: agentd ps --plates --help"),
    csv: off("As comma-separated values"),
    ascii: off("Use only ASCII characters as marks")
  },
  wrong: (input) => {
    const { bell, notify, watch } = input
    if (!watch && (bell || notify)) {
      return {
        message: `--${bell ? "bell" : "notify"} works only with the board.`,
        remedy: "Give --watch with it: agentd ps --watch --bell",
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
      message: `${given} does not go with --watch: the board has an order and a filter of its own.`,
      remedy: "Choose there: / finds rows by words, and s sorts them. Of a label: agentd ps --watch --label LABEL",
      exitCode: ExitCode.usage
    }
  },
  rpc: ({ all, ascii, by, csv, is, labels, names, project, sort }, { config }) =>
    map(read("Board", { all }), (board) => ({
      board: {
        ...board,
        ...(by === "state" ? {} : { by }),
        rows: chosen(board.rows, { names, labels, project, sort, word: WORDS[TYPED.indexOf(is)] }, config)
      },
      ascii,
      csv
    })),
  view: ({ ascii: isAscii, board, csv: isCsv }, world) => {
    if (isCsv) return csv(FIELDS, board.rows)
    const lines = render(board, world.now, world)
    return isAscii ? lines.map(ascii) : lines
  },
  value: ({ board }) => board,
  quick: ({ watch }) => !watch
})
