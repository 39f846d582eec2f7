/**
 * BatchSender: turns a batch of notices into the one message that a channel sends, and sends it.
 *
 * Guarantees: sending ends in bounded time, and always with an answer or a typed error, whatever a channel does; known
 * secrets are redacted; commands are in the form that the user must type.
 */
import { Duration, Effect, type FileSystem } from "effect"
import type { ChannelConfig } from "../config/NotifyConfig.ts"
import { Redact } from "../core/event-log/Redact.ts"
import * as AlertChannel from "./AlertChannel.ts"
import * as AnsweredNotices from "./AnsweredNotices.ts"
import { AlertContext } from "./AlertContext.ts"
import type { EventLog } from "../core/event-log/EventLog.ts"
import { Mailer } from "./Mailer.ts"
import * as Notice from "./Notice.ts"
import type * as Outbox from "./Outbox.ts"
import type { Refused } from "./Retry.ts"
import { SendError, setup } from "./SendError.ts"

export interface Receipt {
  readonly to: ReadonlyArray<string>
  readonly rejected: ReadonlyArray<string>
  readonly response: string
  readonly handle?: string
  readonly refused?: ReadonlyArray<Refused>
}

export type Needs = AlertContext | EventLog | FileSystem.FileSystem | Redact

/** Timeout for a channel that does not define its own. */
const WITHIN = Duration.minutes(2)

/** Timeout of a channel. A program's timeout is the time limit in its config, plus 10 seconds to kill the program. */
const withinOf = (config: ChannelConfig): Duration.Duration =>
  config.type === "command" ? Duration.sum(config.timeLimit, Duration.seconds(10)) : WITHIN

/** Fails because the channel is no longer in the config. */
export const gone = (name: string): Effect.Effect<never, SendError> =>
  Effect.fail(
    setup(
      `there is no channel "${name}" any more`,
      "Add it to notify.channels, or do nothing: the message is given up after three days."
    )
  )

const toldOf = Effect.fnUntraced(function* ({
  alert,
  alertId
}: {
  readonly alert: Outbox.Queued["alert"]
  readonly alertId: string
}) {
  const from = yield* AlertContext
  const { text } = yield* Redact
  const { notice } = alert
  if (notice === undefined) return []
  const told: AlertChannel.Told = {
    id: alertId,
    kind: notice.kind,
    word: Notice.kinds[notice.kind].word,
    title: text(notice.title),
    body: text(notice.body),
    command: from.typed(text(notice.command)),
    urgency: notice.urgency,
    about: notice.about,
    project: notice.project,
    rune: alert.cause,
    at: alert.at,
    count: alert.count
  }
  return [told]
})

export const messageOf = Effect.fnUntraced(function* (batch: Outbox.Batch, id: string, host: string) {
  const { typed } = yield* AlertContext
  const notices = (yield* Effect.forEach([...batch.alerts.values()], toldOf)).flat()
  const [only] = notices
  const isSingle = only !== undefined && notices.length === 1 && batch.more === 0
  const { body, command, title, urgency } = isSingle ? only : Notice.digest(notices, batch.more)
  const message: AlertChannel.Message = {
    id,
    host,
    title,
    body,
    command: isSingle ? command : typed(command),
    urgency,
    notices,
    more: batch.more
  }
  return message
})

export interface Way {
  readonly name: string
  readonly config: ChannelConfig
  readonly messageId: string
  readonly host?: string
  /** Id of the first message about the same subject. */
  readonly earlier?: string | undefined
}

/** Fails with the same error, from which known secrets are redacted. */
const cleaned = (error: SendError): Effect.Effect<never, SendError, Redact> =>
  Effect.flatMap(Redact, ({ text }) =>
    Effect.fail(new SendError({ class: error.class, message: text(error.message), remedy: text(error.remedy) }))
  )

/** Adds a timeout to a channel's effect. Its errors are typed and contain no known secret. */
export const bounded = <A>(
  { config, name }: Pick<Way, "config" | "name">,
  sending: Effect.Effect<A, SendError>
): Effect.Effect<A, SendError, Redact> =>
  sending.pipe(
    Effect.catch(cleaned),
    Effect.catchDefect((defect) =>
      Effect.andThen(
        Effect.logError(`the channel ${name} crashed`, defect),
        Effect.fail(setup("the channel crashed", "See the daemon's log, and report it: agentd log --text"))
      )
    ),
    Effect.timeoutOrElse({
      duration: withinOf(config),
      orElse: () =>
        Effect.fail(
          new SendError({
            message: "the channel did not end in time",
            remedy: "Check that its receiver is up; agentd tries again.",
            class: "transient"
          })
        )
    })
  )

export const implementation = Effect.fnUntraced(function* (config: ChannelConfig) {
  const name = AlertChannel.nameOf(config)
  const found = (yield* AlertChannel.AlertChannels).find((one) => one.name === name)
  if (found !== undefined) return found
  return yield* setup(
    `this agentd has no channel of type ${name}`,
    "See docs/notifications.md for the available types."
  )
})

export const withdraw = Effect.fn("Telling.withdraw")(function* (
  { at, by, handle, of, title }: Outbox.Back,
  { config, messageId, name }: Way
) {
  const channel = yield* implementation(config)
  const { text } = yield* Redact
  if (channel.withdraw === undefined) return { to: [], rejected: [], response: "stays: it cannot be withdrawn" }
  const why = AnsweredNotices.words({ at, by })
  const message = { id: messageId, of, handle, title: text(title) }
  const { response } = yield* bounded({ config, name }, channel.withdraw(config, message, why))
  const receipt: Receipt = { to: [name], rejected: [], response }
  return receipt
})

export const send = Effect.fn("Telling.send")(function* (
  batch: Outbox.Batch,
  { config, earlier, host, messageId, name }: Way
) {
  const mailer = yield* Mailer
  const channel = yield* implementation(config)
  const whole = yield* messageOf(batch, messageId, host ?? mailer.host())
  const message = earlier === undefined ? whole : { ...whole, earlier }
  const { handle, refused, response } = yield* bounded({ config, name }, channel.send(config, message))
  const told = { ...(handle === undefined ? {} : { handle }), ...(refused === undefined ? {} : { refused }) }
  const receipt: Receipt = { to: [name], rejected: [], response, ...told }
  return receipt
})
