/**
 * MailChannel: sends a notice as a mail, through the server of the user's own mail section.
 *
 * Guarantees: mails about one subject are one thread: the Message-ID comes from the message's id, and References names
 * the first mail.
 */
import { Effect, FileSystem } from "effect"
import type { AlertChannel, Message } from "../AlertChannel.ts"
import { Mailer } from "../Mailer.ts"
import { setup } from "../SendError.ts"
import * as Smtp from "../Smtp.ts"
import type { MailConfig } from "../../config/Config.ts"
import type { ChannelConfig, ChannelOf } from "../../config/NotifyConfig.ts"
import { Redact } from "../../core/event-log/Redact.ts"

const textOf = ({ body, command, host, notices, more }: Message): string => {
  const all =
    notices.length + more <= 1
      ? [body, "", "What to do:", `  ${command}`]
      : [
          `${notices.length + more} notices:`,
          ...notices.flatMap((one) => [
            "",
            `${one.title}${one.count > 1 ? ` (${one.count} times)` : ""}`,
            ...one.body.split("\n").map((text) => `  ${text}`),
            `  ${one.command}`
          ]),
          ...(more > 0 ? ["", `and ${more} more: ${command}`] : [])
        ]
  return `${[...all, "", "-- ", `agentd on ${host}`].join("\n")}\n`
}

const idOf = (id: string, mail: MailConfig): string => `<${id}@${Smtp.domainOf(mail)}>`

/** Makes the channel. `mailOf` returns the user's own mail section at the time of sending. */
export const make = (
  mailOf: Effect.Effect<MailConfig | undefined>
): Effect.Effect<AlertChannel, never, FileSystem.FileSystem | Redact> =>
  Effect.gen(function* () {
    const context = yield* Effect.context<FileSystem.FileSystem | Redact>()
    const mailer = yield* Mailer
    const sectionOf = Effect.fnUntraced(function* (config: ChannelConfig) {
      const mail = yield* mailOf
      if (mail === undefined) {
        return yield* setup("there is no mail section", "Add mail to your own config: see agentd schema --user")
      }
      const { to } = config as ChannelOf<"mail">
      return to === undefined ? mail : { ...mail, to, from: Smtp.sender(mail) }
    })
    return {
      name: "mail",
      send: (config, message) =>
        Effect.gen(function* () {
          const mail = yield* sectionOf(config)
          const { refused, rejected, response } = yield* mailer.send(mail, {
            subject: `[agentd] ${message.title}`,
            text: textOf(message),
            messageId: idOf(message.id, mail),
            ...(message.earlier === undefined ? {} : { references: idOf(message.earlier, mail) })
          })
          const said = rejected.length === 0 ? "" : `; refused for ${rejected.join(", ")}`
          return { response: `${response}${said}`, handle: message.id, ...(refused === undefined ? {} : { refused }) }
        }).pipe(Effect.provideContext(context)),
      withdraw: (config, { handle, id, title }, why) =>
        Effect.gen(function* () {
          const mail = yield* sectionOf(config)
          const { response } = yield* mailer.send(mail, {
            subject: `[agentd] ${title}`,
            text: `${why}\n`,
            messageId: idOf(id, mail),
            references: idOf(handle, mail)
          })
          return { response }
        }).pipe(Effect.provideContext(context)),
      check: (config) =>
        Effect.flatMap(sectionOf(config), (mail) => mailer.probe(mail)).pipe(Effect.provideContext(context))
    } satisfies AlertChannel
  })
