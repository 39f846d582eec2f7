/**
 * EmailAlerter: reads the log, queues what a person must hear of, and mails it.
 *
 * Guarantees: an alert is queued once, durably, before it is mailed, and stays
 * queued until the server took it or it was given up with a rune that says so;
 * a restart goes on after the last rune that was looked at, from the log alone; `alert.sent` is durable right after the
 * server's answer (killed between the two, the mail is sent again under the same
 * Message-ID); without a mail section nothing is tried, and what was queued goes
 * out once there is one.
 */
import { createHash, hash } from "node:crypto"
import { Clock, Duration, Effect, Result } from "effect"
import type { MailConfig } from "../config/Config.ts"
import type { Rune, RuneDraft } from "../event-log/Rune.ts"
import { Redact } from "../event-log/Redact.ts"
import { agentKinds } from "../agents/AgentKinds.ts"
import { reader } from "../event-log/EventKinds.ts"
import { EventLog } from "../event-log/EventLog.ts"
import { type Alert, alertOf, kinds, together } from "./AlertPolicy.ts"
import { AlertContext } from "./AlertContext.ts"
import { LiveOutbox } from "./LiveOutbox.ts"
import * as Mail from "./Mail.ts"
import { Mailer } from "./Mailer.ts"
import * as LogEvent from "../domain/LogEvent.ts"
import * as AlertKinds from "./AlertKinds.ts"
import * as Outbox from "./Outbox.ts"
import * as Smtp from "./Smtp.ts"

/** How often it looks whether mail was configured, or mended, for what could not be sent. */
const LOOK_AGAIN = Duration.toMillis("1 minute")

/** Runes of output that are read for the last lines. */
const OUTPUT_RUNES = 20
const OUTPUT_LINES = 40
/** Of its errors, where the last lines hold none. */
const ERROR_LINES = 20
const MAX_SENDERS = 4

export interface Options {
  readonly timeouts?: Smtp.Timeouts
  /** The machine's name in the mails. */
  readonly host?: string
}

/** A name for where and how mail goes: another one means that the config was changed. */
const destinationOf = (mail: MailConfig): string =>
  createHash("sha256")
    .update(JSON.stringify([Smtp.recipients(mail), mail.from, mail.smtp]))
    .digest("hex")
    .slice(0, 16)

const routeOf = (mail: MailConfig): Outbox.Route => ({
  destination: destinationOf(mail),
  digestWindow: Duration.toMillis(mail.digestWindow),
  maxPerHour: mail.maxPerHour
})

interface Source {
  readonly alert: Alert
  readonly hash: string
}

/** Tells the rune from those of other stores. */
const hashOf = ({ at, kind, seq, stream }: Rune): string => hash("sha256", JSON.stringify([stream, seq, at, kind]))

/** The alerts among runes, equal ones folded, in the order of their first. */
const alertsOf = (runes: ReadonlyArray<Rune>): ReadonlyArray<Source> => {
  const byKey = new Map<string, Source>()
  for (const rune of runes) {
    const alert = alertOf(rune)
    if (alert === undefined) continue
    const before = byKey.get(alert.key)
    byKey.set(alert.key, { hash: hashOf(rune), alert: before === undefined ? alert : together(before.alert, alert) })
  }
  return [...byKey.values()]
}

interface Job {
  readonly attempt: Outbox.Attempt
  readonly mail: MailConfig
}

/** Queues what the runes say; each alert is decided on what those before it will have changed. */
const queue = (runes: ReadonlyArray<Rune>, begun: ReadonlySet<string>) =>
  Effect.fnUntraced(function* (state: Outbox.State) {
    const from = yield* AlertContext
    const upTo = runes.at(-1)?.eventId ?? 0
    const now = yield* Clock.currentTimeMillis
    const drafts: Array<RuneDraft> = []
    let ahead = state
    for (const { alert, hash } of alertsOf(runes)) {
      const mail = yield* from.mailFor(alert.of ?? alert.stream)
      const draft = Outbox.queue(ahead, { alert, hash, upTo }, mail && routeOf(mail), now, begun)
      drafts.push(draft)
      ahead = Outbox.evolve(ahead, { ...draft, eventId: ahead.restsOn, at: now })
    }
    return drafts
  })

/** The mail section of the first of a batch's projects that has one. */
const mailOf = Effect.fnUntraced(function* (batch: Outbox.Batch) {
  const from = yield* AlertContext
  for (const { alert } of batch.alerts.values()) {
    const mail = yield* from.mailFor(alert.of ?? alert.stream)
    if (mail !== undefined) return mail
  }
  return undefined
})

/** The mails that can be sent now, one a destination, and the ms until the next look. */
const due = Effect.fnUntraced(function* (state: Outbox.State) {
  const now = yield* Clock.currentTimeMillis
  const jobs: Array<Job> = []
  let next = Infinity
  for (const batch of state.batches) {
    const at = Outbox.readyAt(state, batch, now)
    if (at === undefined) continue
    const mail = yield* mailOf(batch)
    if (mail === undefined) {
      next = Math.min(next, now + LOOK_AGAIN)
      continue
    }
    const destination = destinationOf(mail)
    const mended = batch.failure !== null && batch.failure.destination !== destination
    if (at <= now || mended) {
      const messageId = Outbox.messageId(batch, Smtp.domainOf(mail))
      jobs.push({ mail, attempt: { batch, destination, messageId } })
    } else next = Math.min(next, at, batch.failure === null ? Infinity : now + LOOK_AGAIN)
  }
  return { jobs, wait: Math.max(0, next - now) }
})

const readOutput = reader({ "run.output": agentKinds["run.output"] })

const isError = ({ source }: { readonly source: string | undefined }): boolean => source === "stderr"

const lastLines = Effect.fnUntraced(function* (alert: Alert) {
  const log = yield* EventLog
  const runes = yield* log.tail({ stream: alert.stream, actor: alert.actor, kinds: ["run.output"] }, OUTPUT_RUNES)
  const lines = runes
    .flatMap((rune) => readOutput(rune)?.payload ?? [])
    .filter(({ runId }) => alert.runId === null || runId === alert.runId)
    .flatMap(({ source, text }) => text.split("\n").map((line) => ({ source, line })))
  const [before, last] = [lines.slice(0, -OUTPUT_LINES), lines.slice(-OUTPUT_LINES)]
  // what went wrong may stand before a flood of other words
  const errors = last.some(isError) ? [] : before.filter(isError).slice(-ERROR_LINES)
  return [...errors, ...last].map(({ line }) => line)
})

const letter = Effect.fnUntraced(function* (batch: Outbox.Batch, host: string) {
  const from = yield* AlertContext
  const { text } = yield* Redact
  const told = yield* Effect.forEach(
    [...batch.alerts.values()],
    Effect.fnUntraced(function* ({ alert }, index) {
      const project = (yield* from.projectName(alert.of ?? alert.stream)) ?? alert.stream
      if (index >= Mail.MAX_TOLD) return { alert, project, why: [], output: [] }
      return { alert, project, why: yield* from.why(alert), output: yield* lastLines(alert) }
    })
  )
  return Mail.render({ told, more: batch.more, host, redact: text, typed: from.typed })
})

/** Tries once; an answer of the server is recorded even if the daemon is stopping. */
const attempt = (outbox: LiveOutbox["Service"], begun: Set<string>, options: Options) => (job: Job) =>
  Effect.uninterruptibleMask(
    Effect.fnUntraced(function* (restore) {
      const { attempt, mail } = job
      const mailer = yield* Mailer
      const text = yield* restore(letter(attempt.batch, options.host ?? mailer.host()))
      const message = { ...text, messageId: attempt.messageId }
      const result = yield* Effect.result(restore(mailer.send(mail, message, options.timeouts)))
      const now = yield* Clock.currentTimeMillis
      const draft =
        result._tag === "Success" ? Outbox.sent(attempt, result.success) : Outbox.failure(attempt, result.failure, now)
      yield* outbox.commit(() => Effect.succeed([draft]))
      begun.delete(attempt.batch.id)
      yield* report(result, draft)
    })
  )

const report = (result: Result.Result<Smtp.Receipt, Smtp.MailError>, draft: RuneDraft): Effect.Effect<void> => {
  if (Result.isSuccess(result)) {
    const { rejected } = result.success
    return rejected.length === 0 ? Effect.void : Effect.logWarning(`alert mail: refused for ${rejected.join(", ")}`)
  }
  const { message, remedy } = result.failure
  const failed = AlertKinds.readAlert(draft)
  return failed?.kind === "alert.failed" && failed.payload.nextAt === null
    ? LogEvent.noted("mail.failed")(Effect.logError(`alert mail given up: ${message}. ${remedy}`))
    : Effect.logWarning(`alert mail not sent: ${message}. ${remedy}`)
}

/** Runs until it is interrupted, or until the store takes no more. */
export const run = Effect.fn("EmailAlerter.run")(function* (options: Options = {}) {
  const log = yield* EventLog
  const outbox = yield* LiveOutbox
  const begun = new Set<string>()
  const pick = (state: Outbox.State) =>
    Effect.tap(due(state), ({ jobs }) => Effect.sync(() => jobs.forEach(({ attempt }) => begun.add(attempt.batch.id))))
  // what it queued last is behind it, also where its position was lost
  const after = yield* outbox.look((state) => Effect.succeed(state.cursor))
  const queueing = log.follow("alerter", { after, kinds }, (runes) => outbox.commit(queue(runes, begun)))
  const sending = Effect.gen(function* () {
    for (;;) {
      const { jobs, wait } = yield* outbox.look(pick)
      if (jobs.length === 0) yield* outbox.changed(wait)
      else yield* Effect.forEach(jobs, attempt(outbox, begun, options), { concurrency: MAX_SENDERS, discard: true })
    }
  })
  // A subscription ends with its log: then there is nothing left to do but to be stopped.
  return yield* Effect.raceFirst(sending, Effect.andThen(queueing, Effect.never))
})

/** `agentd alert test`: one mail, now; answers with what the server said. */
export const sendTest = Effect.fn("EmailAlerter.sendTest")(function* (mail: MailConfig, options: Options = {}) {
  const mailer = yield* Mailer
  const text = Mail.testMail(options.host ?? mailer.host(), yield* Clock.currentTimeMillis)
  return yield* mailer.send(mail, text, options.timeouts)
})
