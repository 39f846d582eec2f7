/**
 * Later: what a person has put off is told again by the same channel, in a while.
 *
 * Guarantees: it is in the log from the click on, so that a restart loses none; what somebody has answered, before or
 * meanwhile, is told no more; it is a message of its own, which takes nothing else along; quiet hours hold it.
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

/** Runes in which the notices of a message are looked for. */
const MAX_READ = 2_000

interface Found {
  readonly alertId: string
  readonly channel: string
  readonly alert: Alert
}

/** Alerts that were queued under the ids of a message's notices, equal ones of its batch as one. */
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

/** Queues what a message has told once more. */
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
      // another id than before: its receivers may know that one
      const source = { alert, hash: hash("sha256", `${alertId} ${now}`), upTo: ahead.cursor }
      const draft = Outbox.queue(ahead, source, route, now)
      drafts.push(draft)
      ahead = Outbox.evolve(ahead, { ...draft, eventId: ahead.restsOn, at: now })
    }
    return drafts
  })
})
