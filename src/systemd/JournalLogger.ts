/**
 * JournalLogger: writes the daemon's log for systemd's journal. Each line has its priority, and no time, which the
 * journal adds itself. An event (LogEvent) also has its own fields.
 *
 * Guarantees: this format is used only if standard error is the journal's own stream. systemd names that stream, and a
 * redirected one differs. Otherwise the log is written as usual.
 */
import { Cause, Effect, Layer, Logger, type LogLevel, References } from "effect"
import { fstatSync } from "node:fs"
import * as JournalEntry from "./JournalEntry.ts"

/** Priorities of syslog(3). */
const priorities: { readonly [level in LogLevel.LogLevel]: number } = {
  Fatal: 2,
  Error: 3,
  Warn: 4,
  Info: 6,
  Debug: 7,
  Trace: 7,
  All: 7,
  None: 7
}

const worded = (message: unknown): string =>
  typeof message === "string" ? message : message instanceof Error ? message.message : JSON.stringify(message)

const wordsOf = (message: unknown): string => (Array.isArray(message) ? message : [message]).map(worded).join(" ")

/** Pure. Every line gets the entry's priority; otherwise it would get the priority of the stream. */
export const text = (level: LogLevel.LogLevel, message: unknown, cause: Cause.Cause<unknown>): string =>
  [wordsOf(message), ...(Cause.isCause(cause) && cause.reasons.length > 0 ? [Cause.pretty(cause)] : [])]
    .join(" ")
    .split("\n")
    .map((line) => `<${priorities[level]}>${line}`)
    .join("\n")

/** Whether the descriptor is the stream that JOURNAL_STREAM names as "device:inode". */
export const isJournal = (stream: string | undefined, descriptor: number): boolean => {
  if (stream === undefined) return false
  const { dev, ino } = fstatSync(descriptor)
  return stream === `${dev}:${ino}`
}

const STANDARD_ERROR = 2

const loggerOf = (send: (entry: string) => void) =>
  Logger.withConsoleError(
    Logger.make(({ cause, fiber, logLevel, message }) => {
      const annotations = fiber.getRef(References.CurrentLogAnnotations)
      const line = { message: wordsOf(message), priority: priorities[logLevel] }
      const entry = JournalEntry.entryOf(line, annotations)
      if (entry !== undefined) send(entry)
      return text(logLevel, message, cause)
    })
  )

export const layer = (environment: { readonly [name: string]: string | undefined }): Layer.Layer<never> =>
  Layer.unwrap(
    Effect.sync(() =>
      isJournal(environment["JOURNAL_STREAM"], STANDARD_ERROR)
        ? Logger.layer([loggerOf(JournalEntry.sender(environment["PATH"]))])
        : Layer.empty
    )
  )
