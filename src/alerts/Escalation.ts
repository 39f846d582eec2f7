/**
 * Escalation: sends a notice that nobody has answered by the next channel, with a title that says that nobody answered.
 * Also finds the channels that can withdraw a message.
 *
 * Guarantees: each further channel sends the notice only once, even after a restart. A channel that has already sent
 * the notice does not send it again. After an answer, no channel sends it.
 */
import { Clock, Duration, Effect } from "effect"
import { span } from "../domain/StatusWords.ts"
import type { RuneDraft } from "../core/event-log/Rune.ts"
import * as AlertChannel from "./AlertChannel.ts"
import { AlertContext } from "./AlertContext.ts"
import type { Alert } from "./Alert.ts"
import * as Notice from "./Notice.ts"
import * as OpenNotices from "./OpenNotices.ts"
import * as Outbox from "./Outbox.ts"
import * as Route from "./Route.ts"

export const able = Effect.gen(function* () {
  const notify = yield* (yield* AlertContext).notify
  const channels = yield* AlertChannel.AlertChannels
  const types = new Set(channels.flatMap(({ name, withdraw }) => (withdraw === undefined ? [] : [name])))
  return new Set(
    Object.entries(notify?.channels ?? {}).flatMap(([name, config]) =>
      types.has(AlertChannel.nameOf(config)) ? [name] : []
    )
  )
})

const NOTHING = { due: [], wait: Infinity } as const

/** Notices that nobody has answered in time, and the time until the next notice is overdue, in ms. */
export const due = Effect.fnUntraced(function* (state: OpenNotices.State) {
  if (state.open.size === 0) return NOTHING
  const escalate = (yield* (yield* AlertContext).notify)?.escalate
  if (escalate === undefined) return NOTHING
  const now = yield* Clock.currentTimeMillis
  const found = OpenNotices.overdue(state, Duration.toMillis(escalate.after), escalate.to, now)
  return { due: found.due, wait: Math.max(0, found.next - now) }
})

const unanswered = (alert: Alert, notice: Notice.Notice, after: Duration.Duration): Alert => {
  const title = Notice.fit(`Nobody answered for ${span(Duration.toMillis(after))}: ${notice.title}`)
  return { ...alert, headline: title, notice: { ...notice, title, urgency: "now" } }
}

export const queue = (begun: ReadonlySet<string>) =>
  Effect.fnUntraced(function* (state: Outbox.State, open: OpenNotices.State) {
    const { due: overdue } = yield* due(open)
    const notify = yield* (yield* AlertContext).notify
    const now = yield* Clock.currentTimeMillis
    const drafts: Array<RuneDraft> = []
    let ahead = state
    for (const { channel, open: one, step } of overdue) {
      const { notice } = one.alert
      if (notify?.escalate === undefined || notice === undefined) continue
      const alert = unanswered(one.alert, notice, notify.escalate.after)
      const route = { ...Route.ofChannel(notify, channel, alert.notice!, now), step }
      const draft = Outbox.queue(ahead, { alert, hash: one.hash, upTo: ahead.cursor }, route, now, begun)
      drafts.push(draft)
      ahead = Outbox.evolve(ahead, { ...draft, eventId: ahead.restsOn, at: now })
    }
    return drafts
  })
