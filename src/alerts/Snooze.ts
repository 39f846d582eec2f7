/**
 * Snooze: sends postponed notices again, by the same channel, after 15 minutes.
 *
 * Guarantees: a notice is logged as soon as the user postpones it, so that a restart loses none. It is not sent if
 * somebody answers it first. It is a separate message, which no other notice joins. Quiet hours delay it.
 */
import { hash } from "node:crypto"
import { Clock, Duration, Effect } from "effect"
import { EventLog } from "../core/event-log/EventLog.ts"
import { DAEMON_STREAM, type Rune, type RuneDraft } from "../core/event-log/Rune.ts"
import type { Message } from "./AlertChannel.ts"
import { AlertContext } from "./AlertContext.ts"
import * as AlertKinds from "./AlertKinds.ts"
import { type Alert, together } from "./Alert.ts"
import * as Notice from "./Notice.ts"
import type * as OpenNotices from "./OpenNotices.ts"
import * as Outbox from "./Outbox.ts"
import * as Route from "./Route.ts"

const AFTER = Duration.toMillis("15 minutes")

/** Maximum number of recent runes that are searched for the notices of a message. */
const MAX_READ = 2_000

interface Found {
  readonly alertId: string
  readonly channel: string
  readonly alert: Alert
}

/** The queued alerts that belong to a message's notices. Equal alerts in one batch are folded into one. */
const found = ({ notices }: Message, runes: ReadonlyArray<Rune>): ReadonlyArray<Found> => {
  const queued = runes.flatMap((rune) => {
    const one = AlertKinds.readAlert(rune)
    return one?.kind === "alert.queued" ? [one.payload] : []
  })
  return notices.flatMap(({ id }) => {
    const first = queued.find(({ alertId }) => alertId === id)
    if (first?.channel === undefined) return []
    const { batch, channel } = first
    const alike = queued.filter((one) => one.batch === batch && one.alert.key === first.alert.key)
    return [{ alertId: id, channel, alert: alike.map(({ alert }) => alert).reduce(together) }]
  })
}

const isOver = ({ notice }: Alert, { open }: OpenNotices.State): boolean =>
  notice === undefined || (Notice.asks(notice) && !open.has(notice.about))

export const queue = Effect.fnUntraced(function* (message: Message) {
  const log = yield* EventLog
  const told = found(message, yield* log.tail({ stream: DAEMON_STREAM, kinds: ["alert.queued"] }, MAX_READ))
  return Effect.fnUntraced(function* (state: Outbox.State, open: OpenNotices.State) {
    const notify = yield* (yield* AlertContext).notify
    const now = yield* Clock.currentTimeMillis
    const drafts: Array<RuneDraft> = []
    let ahead = state
    for (const { alert, alertId, channel } of told) {
      if (notify?.channels[channel] === undefined || isOver(alert, open)) continue
      const route = Route.later(notify, channel, alert.notice!, { now, after: AFTER, message: message.id })
      // a new id, because receivers may already have shown a message with the old one
      const source = { alert, hash: hash("sha256", `${alertId} ${now}`), upTo: ahead.cursor }
      const draft = Outbox.queue(ahead, source, route, now)
      drafts.push(draft)
      ahead = Outbox.evolve(ahead, { ...draft, eventId: ahead.restsOn, at: now })
    }
    return drafts
  })
})
