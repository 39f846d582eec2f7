/**
 * BoardMessages: the board as it crosses the control socket. Agents, coding sessions, goals, channels, projects that
 * are over, and everything else that needs a person have one shape. `ps`, the terminal board and the page show it.
 */
import { Schema } from "effect"
import { REASONS, WORDS } from "./Words.ts"

export const Word = Schema.Literals(WORDS)
export const Reason = Schema.Literals(REASONS)

export const ROW_KINDS = ["agent", "session", "goal", "channel", "project", "matter"] as const

export const BoardRow = Schema.Struct({
  /** Constant for as long as the row's subject exists. */
  id: Schema.String,
  kind: Schema.Literals(ROW_KINDS),
  /** Empty: it belongs to no conversation. */
  conversation: Schema.String,
  /** Name of the project or the folder; empty: none. */
  project: Schema.String,
  /** Without the project: `builder`, `#reviews`, a goal's id, a session's title. */
  name: Schema.String,
  /** The name that commands accept from any folder; empty: commands accept none. */
  called: Schema.String,
  word: Word,
  reason: Schema.NullOr(Reason),
  /** When it continues by itself, ms since the epoch. */
  until: Schema.NullOr(Schema.Finite),
  /** Plain text, one line: what it does or waits for. */
  says: Schema.String,
  /** When its word became true, ms since the epoch; 0: unknown. */
  since: Schema.Finite,
  /** eventId of the rune that its status rests on; 0: none. */
  restsOn: Schema.Int,
  /** State of its state machine; empty: none. */
  state: Schema.String,
  /** Calls and questions that wait for a person, by the ids that `approve` and `answer` accept, oldest first. */
  asks: Schema.Array(Schema.String),
  /** Remedies if it needs a person or has failed: commands that can be run as they are, the most useful first. */
  commands: Schema.Array(Schema.Struct({ does: Schema.String, command: Schema.String })),
  role: Schema.String,
  /** Undefined: an inbox agent, which works for messages, or not an agent. */
  mode: Schema.optionalKey(Schema.Literal("loop")),
  /** Set for a sub-agent: the agent that spawned it. */
  parent: Schema.optionalKey(Schema.String),
  /** Groups that it belongs to; undefined: none. */
  labels: Schema.optionalKey(Schema.Array(Schema.String)),
  model: Schema.String,
  /** Number of successful runs, plus the current one. */
  runs: Schema.Int,
  /** How full the model's context is, in tokens; null: not reported. */
  context: Schema.NullOr(Schema.Struct({ used: Schema.Finite, window: Schema.optionalKey(Schema.Finite) })),
  /** Spent since midnight, in tokens and USD; null: nothing is known. */
  today: Schema.NullOr(Schema.Struct({ tokens: Schema.Finite, usd: Schema.Finite })),
  /** Consecutive and total errors, each with its limit; null: errors are not counted. */
  errors: Schema.NullOr(
    Schema.Struct({ inRow: Schema.Int, maxInRow: Schema.Int, total: Schema.Int, maxTotal: Schema.Int })
  ),
  /** Number of messages that wait for it. */
  inbox: Schema.Int,
  /** Number of parts that are done, and of all parts; null: it has no parts. */
  progress: Schema.NullOr(Schema.Struct({ done: Schema.Int, all: Schema.Int })),
  branch: Schema.NullOr(Schema.String),
  cwd: Schema.NullOr(Schema.String),
  pid: Schema.NullOr(Schema.Int)
})
export type BoardRow = typeof BoardRow.Type

/** The line above the rows. */
export const BoardHead = Schema.Struct({
  /** eventId of the newest rune. */
  rune: Schema.Int,
  /** When the daemon started, ms since the epoch. */
  startedAt: Schema.Finite,
  /** Total spent since midnight. */
  today: Schema.Struct({ tokens: Schema.Finite, usd: Schema.Finite })
})
export type BoardHead = typeof BoardHead.Type

/** The whole board; rows are sorted by who acts next. */
export const Board = Schema.Struct({ head: BoardHead, rows: Schema.Array(BoardRow) })
export type Board = typeof Board.Type

/** Changes since the previous message; the first message has all rows. */
export const BoardNews = Schema.Struct({
  head: BoardHead,
  /** Rows that are new or have changed. */
  rows: Schema.Array(BoardRow),
  /** Ids of rows that no longer exist. */
  gone: Schema.Array(Schema.String)
})
export type BoardNews = typeof BoardNews.Type
