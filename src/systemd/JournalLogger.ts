/**
 * JournalLogger: writes the daemon's log in the format of the systemd journal. Each line has its priority but no time,
 * because the journal adds the time. An event (LogEvent) is also sent as an entry with separate fields.
 *
 * Guarantees: this format is used only if standard error is the journal's own stream. systemd names that stream in a
 * variable, so a redirected standard error is recognized. Otherwise the log is written in the usual format.
 */
import { Cause, Effect, Layer, Logger, type LogLevel, References } from "effect"
import { fstatSync } from "node:fs"
import * as JournalEntry from "./JournalEntry.ts"

/** Log levels as priorities of syslog(3). */
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

/**
 * A log entry as text. Each of its lines starts with the entry's priority; otherwise the journal would use the priority
 * of the stream. Pure.
 */
export const text = (level: LogLevel.LogLevel, message: unknown, cause: Cause.Cause<unknown>): string =>
  [wordsOf(message), ...(Cause.isCause(cause) && cause.reasons.length > 0 ? [Cause.pretty(cause)] : [])]
    .join(" ")
    .split("\n")
    .map((line) => `<${priorities[level]}>${line}`)
    .join("\n")

/** True if the descriptor is the stream that JOURNAL_STREAM names as "device:inode". */
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
