/**
 * Alerter: reads the log, queues the alerts for the user, and sends them: by mail, and by the channels of `notify`.
 *
 * Guarantees: an alert is queued once for each channel, durably, before it is sent. It stays queued until its receiver
 * has accepted it, a rune says that it was given up, or it is answered or outdated. After a restart the alerter
 * continues after the last rune that it examined, from the log alone. The rune `alert.sent` is appended right after the
 * receiver's answer. If the daemon is killed between the two, the message is sent again under the same id. Without a
 * mail section nothing is mailed; queued alerts are sent once there is one. A receiver that is slow or unreachable
 * delays no other.
 */
import { hash } from "node:crypto"
import { Clock, Duration, Effect, FiberSet, Result, Semaphore } from "effect"
import type { MailConfig } from "../config/Config.ts"
import { channelsFor, type NotifyConfig } from "../config/NotifyConfig.ts"
import { DAEMON_STREAM, type Rune, type RuneDraft } from "../core/event-log/Rune.ts"
import { EventLog, type StorageError } from "../core/event-log/EventLog.ts"
import { type Alert, together } from "./Alert.ts"
import { kinds, type News, newsOf } from "./AlertPolicy.ts"
import { AlertContext } from "./AlertContext.ts"
import { AlertChannels } from "./AlertChannel.ts"
import * as Snooze from "./Snooze.ts"
import * as MailText from "./MailText.ts"
import { LiveOutbox } from "./LiveOutbox.ts"
import * as Mail from "./Mail.ts"
import { Mailer } from "./Mailer.ts"
import * as LogEvent from "../domain/LogEvent.ts"
import * as AlertKinds from "./AlertKinds.ts"
import * as AnsweredNotices from "./AnsweredNotices.ts"
import * as Escalation from "./Escalation.ts"
import * as OpenNotices from "./OpenNotices.ts"
import * as Outbox from "./Outbox.ts"
import * as Route from "./Route.ts"
import type { SendError } from "./SendError.ts"
import * as Smtp from "./Smtp.ts"
import * as BatchSender from "./BatchSender.ts"

/** Interval at which unsent messages are checked again, because the config may have changed or quiet hours ended. */
const LOOK_AGAIN = Duration.toMillis("1 minute")

const MAX_SENDERS = 4

export interface Options {
  readonly timeouts?: Smtp.Timeouts
  readonly host?: string
}

interface Source {
  readonly alert: Alert
  readonly hash: string
  /** Event id of the alert's rune. If alerts were merged, of the newest rune. */
  readonly rune: number
}

/** A hash that distinguishes the rune from runes in other stores, which can have the same event id. */
const hashOf = ({ at, kind, seq, stream }: Rune): string => hash("sha256", JSON.stringify([stream, seq, at, kind]))

/** Merges alerts that have the same key. The result is ordered by the first alert of each key. */
const folded = (all: ReadonlyArray<Source>): ReadonlyArray<Source> => {
  const byKey = new Map<string, Source>()
  for (const { alert, hash, rune } of all) {
    const before = byKey.get(alert.key)
    byKey.set(alert.key, { hash, rune, alert: before === undefined ? alert : together(before.alert, alert) })
  }
  return [...byKey.values()]
}

interface Told extends News {
  readonly rune: Rune
}

const sourcesOf = (rune: Rune, alert: Alert | undefined): ReadonlyArray<Source> =>
  alert === undefined ? [] : [{ alert, hash: hashOf(rune), rune: rune.eventId }]

/** The notices in the news, with the routes of each. Empty if no channel is configured. */
const noticesOf = Effect.fnUntraced(function* (news: ReadonlyArray<Told>) {
  const candidates = news.flatMap(({ notice, only, rune }) => (notice === undefined ? [] : [{ notice, only, rune }]))
  if (candidates.length === 0) return []
  const { facts, notify } = yield* AlertContext
  const config = yield* notify
  if (config === undefined) return []
  const wanted = candidates.filter(({ only }) => only === undefined || channelsFor(config, only).length > 0)
  const found = yield* Effect.forEach(wanted, ({ notice, rune }) =>
    Effect.map(facts(rune), (known) => sourcesOf(rune, notice(known)))
  )
  const now = yield* Clock.currentTimeMillis
  return folded(found.flat()).map((source) => ({
    source,
    config,
    routes: Route.ofNotice(config, source.alert.notice!, now)
  }))
})

type Noticed = Effect.Success<ReturnType<typeof noticesOf>>

/** `mailed`: alerts that a mail section sends, or that wait for one. `told`: the notices that channels send. */
const mailedOf = Effect.fnUntraced(function* (news: ReadonlyArray<Told>, notices: Noticed) {
  const from = yield* AlertContext
  const byCause = new Map(notices.map((one) => [one.source.alert.cause, one]))
  const mailed: Array<{ readonly source: Source; readonly mail: MailConfig | undefined }> = []
  for (const source of folded(news.flatMap(({ mail, rune }) => sourcesOf(rune, mail)))) {
    const { cause, of, stream } = source.alert
    const mail = yield* from.mailFor(of ?? stream)
    const noticed = byCause.get(cause)
    // without a mail section, the alert waits until there is one, unless a channel sends it
    if (mail === undefined || noticed === undefined || noticed.routes.length === 0) {
      if (mail !== undefined || (noticed?.routes.length ?? 0) === 0) mailed.push({ source, mail })
      continue
    }
    const { config, routes } = noticed
    const own = yield* from.mailFor(DAEMON_STREAM)
    const once = Route.mailedOnce(config, { notice: noticed.source.alert.notice!, section: mail, own, routes })
    byCause.set(cause, { ...noticed, routes: once.routes })
    if (once.isMailed) mailed.push({ source, mail })
  }
  return { mailed, told: notices.map((one) => byCause.get(one.source.alert.cause) ?? one) }
})

/** Decides which alerts to queue, and which notices to drop. Each decision takes the earlier ones into account. */
const queue = (runes: ReadonlyArray<Rune>, news: ReadonlyArray<Told>, notices: Noticed, begun: ReadonlySet<string>) =>
  Effect.fnUntraced(function* (state: Outbox.State, open: OpenNotices.State) {
    const upTo = runes.at(-1)?.eventId ?? 0
    const now = yield* Clock.currentTimeMillis
    const drafts: Array<RuneDraft> = []
    let [ahead, openAhead] = [state, open]
    const put = (draft: RuneDraft) => {
      drafts.push(draft)
      const rune = { ...draft, eventId: ahead.restsOn, at: now }
      ahead = Outbox.evolve(ahead, rune)
      openAhead = OpenNotices.evolve(openAhead, rune)
    }
    const add = ({ alert, hash }: Source, route: Outbox.Route | undefined) =>
      put(Outbox.queue(ahead, { alert, hash, upTo }, route, now, begun))
    const { mailed, told } = yield* mailedOf(news, notices)
    for (const { mail, source } of mailed) add(source, mail && Route.ofMail(mail))
    const noticesAt = Map.groupBy(told, ({ source }) => source.rune)
    let able: ReadonlySet<string> | undefined
    for (const rune of runes) {
      // an answer belongs to an earlier question, never to a notice of its own rune
      for (const answer of AnsweredNotices.of(rune)) {
        if (!openAhead.open.has(answer.about)) continue
        able ??= yield* Escalation.able
        const draft = AnsweredNotices.draft(answer, upTo, { outbox: ahead, notices: openAhead, able, begun, now })
        if (draft !== undefined) put(draft)
      }
      const overtaken = AnsweredNotices.overtaken(rune, upTo, { outbox: ahead, begun })
      if (overtaken !== undefined) put(overtaken)
      for (const { routes, source } of noticesAt.get(rune.eventId) ?? []) {
        const { once } = source.alert.notice!
        if (once === undefined || !openAhead.once.has(once)) for (const route of routes) add(source, route)
      }
    }
    return drafts
  })

/** The mail section for a batch: that of its first project that has one. */
const mailOf = Effect.fnUntraced(function* (batch: Outbox.Batch) {
  const from = yield* AlertContext
  for (const { alert } of batch.alerts.values()) {
    const mail = yield* from.mailFor(alert.of ?? alert.stream)
    if (mail !== undefined) return mail
  }
  return undefined
})

interface Way {
  readonly destination: string
  readonly messageId: string
  readonly isMail: boolean
  readonly maxPerHour: number
  readonly send: Effect.Effect<BatchSender.Receipt, SendError | StorageError, BatchSender.Needs>
}

interface Job {
  readonly attempt: Outbox.Attempt
  readonly way: Way
}

/** Id of the first message about a batch's subject; undefined if there is none, or if the batch has several alerts. */
const earlierOf = ({ alerts, channel, more }: Outbox.Batch, { threads }: OpenNotices.State): string | undefined => {
  const [only] = alerts.values()
  if (only === undefined || alerts.size > 1 || more > 0) return undefined
  return threads.get(OpenNotices.threadOf(channel, OpenNotices.subjectOf(only.alert)))
}

const wayOfMail = (batch: Outbox.Batch, mail: MailConfig, earlier: string | undefined, options: Options): Way => {
  const messageId = Outbox.messageId(batch, Smtp.domainOf(mail))
  // a retry for some recipients is sent only to those that have not received the message
  const addressed = batch.to === undefined ? mail : { ...mail, to: batch.to, from: Smtp.sender(mail) }
  return {
    ...Route.wayOfMail(mail),
    messageId,
    isMail: true,
    send: Effect.gen(function* () {
      const mailer = yield* Mailer
      const text = yield* MailText.of(batch, options.host ?? mailer.host())
      const thread = earlier === undefined ? {} : { references: earlier }
      return yield* mailer.send(addressed, { ...text, ...thread, messageId }, options.timeouts)
    })
  }
}

const wayOfChannel = (
  batch: Outbox.Batch,
  name: string,
  notify: NotifyConfig,
  more: Options & { readonly earlier: string | undefined }
): Way => {
  const { config, destination, maxPerHour } = Route.wayOfChannel(batch, name, notify)
  const messageId = Outbox.idOf(batch)
  const way = { messageId, isMail: false, destination, maxPerHour }
  if (config === undefined) return { ...way, send: BatchSender.gone(name) }
  const how = { name, config, messageId, ...more }
  return {
    ...way,
    send: batch.back === undefined ? BatchSender.send(batch, how) : BatchSender.withdraw(batch.back, how)
  }
}

/** The way in which a batch is sent now; undefined if nothing is configured for it, or if quiet hours hold it back. */
const wayOf = Effect.fnUntraced(function* (
  batch: Outbox.Batch,
  open: OpenNotices.State,
  now: number,
  options: Options
) {
  const earlier = earlierOf(batch, open)
  if (batch.channel === undefined) {
    const mail = yield* mailOf(batch)
    return mail === undefined ? undefined : wayOfMail(batch, mail, earlier, options)
  }
  const notify = yield* (yield* AlertContext).notify
  if (notify === undefined) return undefined
  if (batch.back === undefined && Route.isHeld(notify, batch.destination, now)) return undefined
  return wayOfChannel(batch, batch.channel, notify, { ...options, earlier })
})

/** The messages that can be sent now, and the time until the next check, in ms. */
const due = (begun: ReadonlySet<string>, options: Options) =>
  Effect.fnUntraced(function* (state: Outbox.State, open: OpenNotices.State) {
    const now = yield* Clock.currentTimeMillis
    const jobs: Array<Job> = []
    const going = new Set(begun)
    let next = Infinity
    for (const batch of state.batches) {
      const at = Outbox.readyAt(state, batch, now)
      if (at === undefined || going.has(batch.id)) continue
      // a batch whose time has not come yet does not depend on the config
      const way = at > now && batch.failure === null ? null : yield* wayOf(batch, open, now, options)
      if (way === undefined) next = Math.min(next, now + LOOK_AGAIN)
      else if (way !== null && (at <= now || batch.failure?.destination !== way.destination)) {
        const { destination, maxPerHour, messageId } = way
        const free = Outbox.freeAt(state, { ...batch, destination }, maxPerHour, going, now)
        if (free > now) next = Math.min(next, free)
        else {
          going.add(batch.id)
          jobs.push({ way, attempt: { batch, destination, messageId } })
        }
      } else next = Math.min(next, at, batch.failure === null ? Infinity : now + LOOK_AGAIN)
    }
    return { jobs, wait: Math.max(0, next - now) }
  })

/** Sends a message and records the result. The receiver's answer is recorded even if the daemon is stopping. */
const attempt = (outbox: LiveOutbox["Service"], begun: Set<string>) => (job: Job) =>
  Effect.uninterruptibleMask(
    Effect.fnUntraced(function* (restore) {
      const { attempt, way } = job
      const result = yield* restore(way.send).pipe(
        Effect.map(Result.succeed),
        Effect.catchTag("SendError", (error) => Effect.succeed(Result.fail(error)))
      )
      const now = yield* Clock.currentTimeMillis
      const draft =
        result._tag === "Success"
          ? Outbox.sent(attempt, result.success, now)
          : Outbox.failure(attempt, result.failure, now)
      const able = attempt.batch.channel === undefined ? new Set<string>() : yield* Escalation.able
      yield* outbox.commit((_, notices) =>
        Effect.sync(() => {
          // from now on, decisions take the result of this attempt into account
          begun.delete(attempt.batch.id)
          if (Result.isFailure(result)) return [draft]
          const message = { id: attempt.messageId, handle: result.success.handle ?? null }
          const late = AnsweredNotices.late(attempt.batch, message, { able, notices })
          return late === undefined ? [draft] : [draft, late]
        })
      )
      yield* report(result, draft, way.isMail ? "alert mail" : `notice by ${attempt.batch.channel}`)
    })
  )

const report = (
  result: Result.Result<BatchSender.Receipt, SendError>,
  draft: RuneDraft,
  what: string
): Effect.Effect<void> => {
  if (Result.isSuccess(result)) {
    const { rejected } = result.success
    return rejected.length === 0 ? Effect.void : Effect.logWarning(`${what}: refused for ${rejected.join(", ")}`)
  }
  const { message, remedy } = result.failure
  const failed = AlertKinds.readAlert(draft)
  return failed?.kind === "alert.failed" && failed.payload.nextAt === null
    ? LogEvent.noted("mail.failed")(Effect.logError(`${what} given up: ${message}. ${remedy}`))
    : Effect.logWarning(`${what} not sent: ${message}. ${remedy}`)
}

const followed = [...new Set([...kinds, ...AnsweredNotices.kinds])]

const running = Effect.fn("Alerter.run")(function* (options: Options) {
  const log = yield* EventLog
  const outbox = yield* LiveOutbox
  const begun = new Set<string>()
  const mailers = yield* Semaphore.make(MAX_SENDERS)
  const sends = yield* FiberSet.make<void, Effect.Error<ReturnType<ReturnType<typeof attempt>>>>()
  const pick = (state: Outbox.State, open: OpenNotices.State) =>
    Effect.tap(due(begun, options)(state, open), ({ jobs }) =>
      Effect.sync(() => jobs.forEach(({ attempt }) => begun.add(attempt.batch.id)))
    )
  // starts after the last rune that the outbox has examined, even if the follower's position was lost
  const after = yield* outbox.look((state) => Effect.succeed(state.cursor))
  // reads the facts before `commit`: reading can take a while, and sending must not wait for it
  const queueing = log.follow("alerter", { after, kinds: followed }, (runes) => {
    const news = runes.flatMap((rune): ReadonlyArray<Told> => {
      const one = newsOf(rune)
      return one === undefined ? [] : [{ ...one, rune }]
    })
    return Effect.flatMap(noticesOf(news), (notices) => outbox.commit(queue(runes, news, notices, begun)))
  })
  const sending = Effect.gen(function* () {
    for (;;) {
      const further = yield* outbox.look((_, open) => Escalation.due(open))
      if (further.due.length > 0) yield* outbox.commit(Escalation.queue(begun))
      const { jobs, wait } = yield* outbox.look(pick)
      for (const job of jobs) {
        const sent = attempt(outbox, begun)(job)
        yield* FiberSet.run(sends, job.way.isMail ? mailers.withPermit(sent) : sent)
      }
      yield* outbox.changed(Math.min(wait, further.wait))
    }
  })
  // the messages that the user postpones
  const later = (yield* AlertChannels).flatMap((channel) => channel.later ?? [])
  const puttingOff = Effect.forEach(
    later,
    (next) => Effect.forever(Effect.flatMap(Effect.flatMap(next, Snooze.queue), outbox.commit)),
    { concurrency: "unbounded", discard: true }
  )
  // the subscription ends when the log is closed: then the alerter waits until it is stopped
  return yield* Effect.raceAllFirst([
    sending,
    Effect.andThen(queueing, Effect.never),
    Effect.andThen(puttingOff, Effect.never),
    FiberSet.join(sends)
  ])
})

/** Queues and sends alerts until it is interrupted, or until the store fails. */
export const run = (options: Options = {}) => Effect.scoped(running(options))

/** For `agentd alert test`: sends one mail now, and returns the server's answer. */
export const sendTest = Effect.fn("Alerter.sendTest")(function* (mail: MailConfig, options: Options = {}) {
  const mailer = yield* Mailer
  const text = Mail.testMail(options.host ?? mailer.host(), yield* Clock.currentTimeMillis)
  return yield* mailer.send(mail, text, options.timeouts)
})
