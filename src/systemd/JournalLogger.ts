/**
 * JournalLogger: the daemon's log as the journal takes it: each line with its priority, without the time, which the
 * journal has itself; and an event (LogEvent) with fields besides.
 *
 * Guarantees: only where standard error is the journal's own stream: systemd says which that is, and one that was
 * redirected since is another. Elsewhere the log is written as ever.
 */
import { Cause, Effect, Layer, Logger, type LogLevel, References } from "effect"
import { fstatSync } from "node:fs"
import * as JournalEntry from "./JournalEntry.ts"

/** syslog(3) */
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

/** Pure. A line without a priority of its own would have the stream's. */
export const text = (level: LogLevel.LogLevel, message: unknown, cause: Cause.Cause<unknown>): string =>
  [wordsOf(message), ...(Cause.isCause(cause) && cause.reasons.length > 0 ? [Cause.pretty(cause)] : [])]
    .join(" ")
    .split("\n")
    .map((line) => `<${priorities[level]}>${line}`)
    .join("\n")

/** Whether that descriptor is the stream that JOURNAL_STREAM names: "device:inode". */
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
