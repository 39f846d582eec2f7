/**
 * Procedure: what the procedures of the control protocol have in common: the
 * bounds on what a caller may send, how things are named, how a call fails.
 */
import { Schema } from "effect"
import { Caller, CommandRefused } from "../domain/Messages.ts"
import { StorageError } from "../event-log/EventLog.ts"

/** What a caller may send. A line holds the longest text in its longest JSON spelling, and the rest. */
export const Limits = {
  textBytes: 256 * 1024,
  nameLength: 256,
  pathLength: 4096,
  reasonLength: 1024,
  /** To the questions of a call: so many, each so long. */
  answers: { count: 8, length: 8 * 1024 },
  kinds: 64,
  /** Runes that one `tail` may ask for. */
  tail: 10_000,
  /** Of a report: so many pieces, each so long. */
  evidence: { count: 64, length: 8 * 1024 },
  lineBytes: 2 * 1024 * 1024,
  connections: 256,
  /** Calls under way at one time, followers of the log among them. */
  calls: 512
} as const

/** How a command fails. */
export const error = Schema.Union([CommandRefused, StorageError])

/** What a command is about, and who gives it. */
export const named = { name: Schema.String, caller: Caller }
