/**
 * RejectedReports: records reports that were rejected because they are not valid events.
 *
 * Guarantees: recording a report does not wait for the disk. A faulty sender cannot fill the log: only a limited number
 * of reports per minute are recorded, with a rune each. The next rune says how many reports were left out.
 */
import { Clock, Effect } from "effect"
import { DAEMON_STREAM } from "../core/event-log/Rune.ts"
import type { EventLog } from "../core/event-log/EventLog.ts"
import type { EventRefused } from "./JsonReader.ts"

const MAX_A_MINUTE = 30
const MINUTE = 60_000
/** Maximum length of the error message in a rune, in characters. */
const MAX_TEXT = 500

export class RejectedReports {
  private readonly log: EventLog["Service"]
  private minute = 0
  private written = 0
  private leftOut = 0

  constructor(log: EventLog["Service"]) {
    this.log = log
  }

  /** Queues a rune for the rejected report, then fails with the error. */
  readonly note = Effect.fnUntraced(
    { self: this },
    function* (this: RejectedReports, trigger: string, error: EventRefused): Effect.fn.Return<never, EventRefused> {
      const minute = Math.floor((yield* Clock.currentTimeMillis) / MINUTE)
      if (minute !== this.minute) {
        this.minute = minute
        this.written = 0
      }
      if (this.written >= MAX_A_MINUTE) {
        this.leftOut += 1
        return yield* error
      }
      this.written += 1
      const { leftOut } = this
      this.leftOut = 0
      if (trigger === "cut") yield* Effect.logWarning(error.message)
      yield* this.log.appendLazy([
        {
          stream: DAEMON_STREAM,
          kind: "hook.refused",
          actor: "plates",
          trigger,
          payload: {
            field: error.field,
            message: error.message.slice(0, MAX_TEXT),
            ...(leftOut === 0 ? {} : { leftOut })
          }
        }
      ])
      return yield* error
    }
  )
}
