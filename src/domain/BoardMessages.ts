/**
 * BoardMessages: schemas of the control socket for the board, which `ps`, the terminal board and the page show. One
 * schema is used for all rows: agents, coding sessions, goals, channels, projects that do not work, and other items
 * that need the user.
 */
import { Schema } from "effect"
import { REASONS, WORDS } from "./StatusWords.ts"

export const Word = Schema.Literals(WORDS)
export const Reason = Schema.Literals(REASONS)

export const ROW_KINDS = ["agent", "session", "goal", "channel", "project", "matter"] as const

export const BoardRow = Schema.Struct({
  /** Id of the row. The id is constant while the agent, session, goal or channel exists. */
  id: Schema.String,
  kind: Schema.Literals(ROW_KINDS),
  /** Id of the row's conversation; empty: the row belongs to no conversation. */
  conversation: Schema.String,
  /** Name of the row's project or, for a coding session, of its folder; empty: none. */
  project: Schema.String,
  /** Display name without the project: `builder`, `#reviews`, a goal's id, or a session's title. */
  name: Schema.String,
  /** The full name, which commands accept in any folder; empty: no command accepts a name for this row. */
  called: Schema.String,
  word: Word,
  reason: Schema.NullOr(Reason),
  /** When the row's current wait ends automatically, in ms since the epoch; null: no such time is known. */
  until: Schema.NullOr(Schema.Finite),
  /** Plain text, one line: what the agent, goal, channel or session is doing or waiting for. */
  says: Schema.String,
  /** Since when the status word (`word`) applies, in ms since the epoch; 0: unknown. */
  since: Schema.Finite,
  /** eventId of the rune that caused the current status; 0: there is no such rune. */
  restsOn: Schema.Int,
  /** State of the row's agent, goal, channel or session in its state machine; empty: it has no state machine. */
  state: Schema.String,
  /** Ids of the calls and questions that wait for the user, oldest first, for the commands `approve` and `answer`. */
  asks: Schema.Array(Schema.String),
  /** Commands to run if the row needs the user or has failed, the most useful first. Each runs exactly as written. */
  commands: Schema.Array(Schema.Struct({ does: Schema.String, command: Schema.String })),
  role: Schema.String,
  /** "loop": the agent starts runs without messages. Undefined: only a message starts runs, or the row is no agent. */
  mode: Schema.optionalKey(Schema.Literal("loop")),
  /** For a sub-agent: name of the agent that created the sub-agent. */
  parent: Schema.optionalKey(Schema.String),
  /** Labels of the agent, used to group agents; undefined: none. */
  labels: Schema.optionalKey(Schema.Array(Schema.String)),
  model: Schema.String,
  /** Number of the agent's successful runs, including the current run. */
  runs: Schema.Int,
  /** Used tokens and total tokens of the model's context window; null: not reported. */
  context: Schema.NullOr(Schema.Struct({ used: Schema.Finite, window: Schema.optionalKey(Schema.Finite) })),
  /** Tokens and USD spent since midnight; null: unknown. */
  today: Schema.NullOr(Schema.Struct({ tokens: Schema.Finite, usd: Schema.Finite })),
  /** Number of consecutive errors and total number of errors, each with its limit; null: errors are not counted. */
  errors: Schema.NullOr(
    Schema.Struct({ inRow: Schema.Int, maxInRow: Schema.Int, total: Schema.Int, maxTotal: Schema.Int })
  ),
  inbox: Schema.Int,
  /** For a goal: number of finished tasks (completed, failed or cancelled) and number of all tasks; otherwise null. */
  progress: Schema.NullOr(Schema.Struct({ done: Schema.Int, all: Schema.Int })),
  branch: Schema.NullOr(Schema.String),
  cwd: Schema.NullOr(Schema.String),
  pid: Schema.NullOr(Schema.Int)
})
export type BoardRow = typeof BoardRow.Type

export const BoardHead = Schema.Struct({
  /** eventId of the newest rune in the store. */
  rune: Schema.Int,
  /** When the daemon started, in ms since the epoch. */
  startedAt: Schema.Finite,
  /** Tokens and USD that all agents have spent since midnight. */
  today: Schema.Struct({ tokens: Schema.Finite, usd: Schema.Finite })
})
export type BoardHead = typeof BoardHead.Type

/** Rows of the board. Those that wait for the user come first. */
export const Board = Schema.Struct({
  head: BoardHead,
  rows: Schema.Array(BoardRow),
  /** True if the daemon is still reading its log, so that rows can be missing. */
  reading: Schema.optionalKey(Schema.Boolean)
})
export type Board = typeof Board.Type

/** Changes of the board since the previous message. The first message has all rows. */
export const BoardNews = Schema.Struct({
  head: BoardHead,
  /** Rows that were added or have changed. */
  rows: Schema.Array(BoardRow),
  /** Ids of rows that were removed. */
  gone: Schema.Array(Schema.String),
  /** Changes of the rows of the saved hosts, whose names contain the host. Only the page's stream has them. */
  others: Schema.optionalKey(Schema.Struct({ rows: Schema.Array(BoardRow), gone: Schema.Array(Schema.String) }))
})
export type BoardNews = typeof BoardNews.Type
