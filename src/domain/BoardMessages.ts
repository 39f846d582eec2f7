/**
 * BoardMessages: the board as it crosses the control socket: agents, coding sessions, goals, channels, projects that
 * are over, and all else that needs a person, in one shape. `ps`, the board in the terminal and the page show it.
 */
import { Schema } from "effect"
import { REASONS, WORDS } from "./Words.ts"

export const Word = Schema.Literals(WORDS)
export const Reason = Schema.Literals(REASONS)

export const ROW_KINDS = ["agent", "session", "goal", "channel", "project", "matter"] as const

export const BoardRow = Schema.Struct({
  /** The same as long as its thing is there. */
  id: Schema.String,
  kind: Schema.Literals(ROW_KINDS),
  /** Empty where it has none. */
  conversation: Schema.String,
  /** The project's name, or the folder's; empty where it has none. */
  project: Schema.String,
  /** Without the project: `builder`, `#reviews`, a goal's id, a session's title. */
  name: Schema.String,
  /** The name that commands take from any folder; empty where they take none. */
  called: Schema.String,
  word: Word,
  reason: Schema.NullOr(Reason),
  /** When it goes on by itself, ms since the epoch. */
  until: Schema.NullOr(Schema.Finite),
  /** In plain words, a line: what it does or waits for. */
  says: Schema.String,
  /** When its word became true, ms since the epoch; 0: not known. */
  since: Schema.Finite,
  /** The rune that its status rests on; 0: none. */
  restsOn: Schema.Int,
  /** The machine's state; empty where it has none. */
  state: Schema.String,
  /** Calls and questions that ask a person here, as `approve` and `answer` take it, oldest first. */
  asks: Schema.Array(Schema.String),
  /** Remedies where it needs a person or has failed: commands that work as they stand, the first one first. */
  commands: Schema.Array(Schema.Struct({ does: Schema.String, command: Schema.String })),
  role: Schema.String,
  /** Not there: it works for messages, or is no agent. */
  mode: Schema.optionalKey(Schema.Literal("loop")),
  /** Set for a sub-agent: the agent that began it. */
  parent: Schema.optionalKey(Schema.String),
  /** Groups that it belongs to; not there: none. */
  labels: Schema.optionalKey(Schema.Array(Schema.String)),
  model: Schema.String,
  /** Runs that ended well, and the one under way. */
  runs: Schema.Int,
  /** How full the model's context is, in tokens; null: not told. */
  context: Schema.NullOr(Schema.Struct({ used: Schema.Finite, window: Schema.optionalKey(Schema.Finite) })),
  /** Spent since midnight, in tokens and USD; null: nothing that is known. */
  today: Schema.NullOr(Schema.Struct({ tokens: Schema.Finite, usd: Schema.Finite })),
  /** Errors in a row and in all, each with its limit; null where none are counted. */
  errors: Schema.NullOr(
    Schema.Struct({ inRow: Schema.Int, maxInRow: Schema.Int, total: Schema.Int, maxTotal: Schema.Int })
  ),
  /** Messages that wait for it. */
  inbox: Schema.Int,
  /** The part of it that is done, of all of it; null where it has no parts. */
  progress: Schema.NullOr(Schema.Struct({ done: Schema.Int, all: Schema.Int })),
  branch: Schema.NullOr(Schema.String),
  cwd: Schema.NullOr(Schema.String),
  pid: Schema.NullOr(Schema.Int)
})
export type BoardRow = typeof BoardRow.Type

/** The line above the rows. */
export const BoardHead = Schema.Struct({
  /** The newest rune. */
  rune: Schema.Int,
  /** When the daemon began, ms since the epoch. */
  startedAt: Schema.Finite,
  /** Spent since midnight by all. */
  today: Schema.Struct({ tokens: Schema.Finite, usd: Schema.Finite })
})
export type BoardHead = typeof BoardHead.Type

/** All of the board; rows in the order in which a person looks for them. */
export const Board = Schema.Struct({ head: BoardHead, rows: Schema.Array(BoardRow) })
export type Board = typeof Board.Type

/** Changes since the last one; the first one has all. */
export const BoardNews = Schema.Struct({
  head: BoardHead,
  /** Rows that are new or not what they were. */
  rows: Schema.Array(BoardRow),
  /** Ids of rows that are there no more. */
  gone: Schema.Array(Schema.String)
})
export type BoardNews = typeof BoardNews.Type
