/**
 * SentAlerts: lists the alerts of the running daemon, and whether they were sent, from its outbox and its log.
 */
import { Clock, Effect } from "effect"
import { Agents } from "../projects/service/Agents.ts"
import { AlertContext } from "./AlertContext.ts"
import * as AlertList from "./AlertList.ts"
import type { Way } from "./SendTimes.ts"
import { LiveOutbox } from "./LiveOutbox.ts"
import * as Outbox from "./Outbox.ts"
import * as Route from "./Route.ts"
import * as Smtp from "./Smtp.ts"
import type { MailConfig } from "../config/Config.ts"
import type { EventLog } from "../core/event-log/EventLog.ts"
import { DAEMON_STREAM } from "../core/event-log/Rune.ts"

/** Maximum number of runes that are read for each row: those of the row's alerts and of their message. */
const RUNES_A_ROW = 4
const MOST_RUNES = 2_000

export const of = Effect.fnUntraced(function* (
  log: EventLog["Service"],
  options: { readonly count: number; readonly failed: boolean }
) {
  const agents = yield* Agents
  const context = yield* AlertContext
  const state = (yield* (yield* LiveOutbox).seen) ?? Outbox.initial
  const kinds = ["alert.answered", ...(options.failed ? [] : ["alert.overtaken", "alert.queued", "alert.sent"])]
  const count = Math.min(MOST_RUNES, RUNES_A_ROW * options.count)
  const runes = yield* log.tail({ stream: DAEMON_STREAM, kinds }, count)
  const waiting = [...state.batches, ...state.givenUp].flatMap(({ alerts }) =>
    [...alerts.values()].map(({ alert }) => AlertList.streamOf(alert))
  )
  const mails = new Map<string, MailConfig>()
  for (const stream of new Set(waiting)) {
    const mail = yield* context.mailFor(stream)
    if (mail !== undefined) mails.set(stream, mail)
  }
  const mailed = new Map([...mails].map(([stream, mail]) => [stream, Smtp.recipients(mail)] as const))
  const notify = yield* context.notify
  const wayOf = (batch: Outbox.Batch): Way | undefined => {
    const { alerts, channel } = batch
    if (channel !== undefined) return notify && Route.wayOfChannel(batch, channel, notify)
    // as in Alerter, the mail section is that of the first project that has one
    const [mail] = [...alerts.values()].flatMap(({ alert }) => mails.get(AlertList.streamOf(alert)) ?? [])
    return mail && Route.wayOfMail(mail)
  }
  const projects = new Map((yield* agents.projects).map(({ conversation, name }) => [conversation, name]))
  return AlertList.listOf({ state, runes, projects, mailed, wayOf, now: yield* Clock.currentTimeMillis }, options)
})
