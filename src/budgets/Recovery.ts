/** Recovery: reads from the log what each conversation has spent, and which warnings were given. */
import { Effect } from "effect"
import * as ConversationId from "../domain/ConversationId.ts"
import { EventLog } from "../core/event-log/EventLog.ts"
import { DAEMON_STREAM } from "../core/event-log/Rune.ts"
import type { StreamFold } from "../core/event-log/StreamFold.ts"
import { apply, fresh, kinds, type SpendingTotals } from "./SpendingTotals.ts"

/** Folds a stream's runes about spending into totals; null if there are none. */
export const fold: StreamFold<SpendingTotals | null> = {
  name: "spending",
  version: 3,
  initial: null,
  of: (stream) => stream === DAEMON_STREAM || ConversationId.mayBe(stream),
  apply: (before, rune) => {
    if (!kinds.has(rune.kind)) return before
    const spending = before ?? fresh()
    apply(spending, rune)
    return spending
  }
}

export interface Read {
  readonly spending: SpendingTotals
  /** `eventId` of the newest rune that is counted. */
  readonly eventId: number
}

export const recover = (stream: string) =>
  Effect.gen(function* () {
    const log = yield* EventLog
    const { spending } = yield* log.recover(stream, { spending: fold })
    const read: Read = { spending: spending.state ?? fresh(), eventId: spending.eventId }
    return read
  })
