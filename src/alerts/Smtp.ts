/**
 * Smtp: sends one mail to the configured server, in one attempt.
 *
 * Guarantees: an attempt ends within its deadline, whatever the server does. An abandoned attempt is closed, so that it
 * cannot deliver later. The password is read when it is needed, and registered with the redactor before it is used. No
 * error contains it. Every failure has a class, a message and a remedy.
 *
 * SMTP cannot guarantee that a mail is sent only once. If the connection is lost after the server accepted the mail and
 * before its answer arrived, that looks like a failure. The mail is then sent again, under the same Message-ID.
 */
import { createTransport } from "nodemailer"
import { Duration, Effect, Option, Schema } from "effect"
import { getCACertificates } from "node:tls"
import type { MailConfig, SmtpConfig } from "../config/Config.ts"
import { Redact } from "../core/event-log/Redact.ts"
import type { Mail } from "./Mail.ts"
import * as ConfiguredSecret from "./ConfiguredSecret.ts"
import { later, type Refused } from "./Retry.ts"
import { SendError } from "./SendError.ts"

export interface Receipt {
  readonly to: ReadonlyArray<string>
  /** Recipients that were refused permanently. */
  readonly rejected: ReadonlyArray<string>
  readonly response: string
  /** Each recipient that was refused, with the server's code. A 4xx code means that the refusal is temporary. */
  readonly refused?: ReadonlyArray<Refused>
}

/** A mail with its ids. `references` is the Message-ID of the thread's first mail. */
export type Message = Mail & { readonly messageId?: string; readonly references?: string }

export interface Timeouts {
  /** Maximum time to connect, including TLS. Also the maximum time for the server's greeting, and for DNS. */
  readonly greeting: Duration.Input
  /** Maximum time without any data from the server after the greeting. */
  readonly silence: Duration.Input
  /** Maximum time of the whole attempt. */
  readonly whole: Duration.Input
}

export const defaultTimeouts: Timeouts = { greeting: "10 seconds", silence: "20 seconds", whole: "45 seconds" }

/** Timeouts of a check without a mail. They are shorter, because the user waits for the result. */
const probeTimeouts: Timeouts = { greeting: "5 seconds", silence: "5 seconds", whole: "8 seconds" }

const MAX_ANSWER = 500

const PORTS = { none: 25, starttls: 587, tls: 465 } as const
const portOf = (smtp: SmtpConfig): number => smtp.port ?? PORTS[smtp.security]

export const recipients = (mail: MailConfig): ReadonlyArray<string> =>
  typeof mail.to === "string" ? [mail.to] : mail.to

export const sender = (mail: MailConfig): string => mail.from ?? recipients(mail)[0]!

/** The domain of the sender's address, with which a Message-ID ends. */
export const domainOf = (mail: MailConfig): string => /@([^@>\s]+)>?$/.exec(sender(mail))?.[1] ?? "agentd.invalid"

/** The password for the server; undefined if the config names none. */
const password = ({ passwordCredential, passwordEnv, passwordFile }: SmtpConfig) =>
  ConfiguredSecret.read(
    {
      ...(passwordFile === undefined ? {} : { file: passwordFile }),
      ...(passwordEnv === undefined ? {} : { env: passwordEnv }),
      ...(passwordCredential === undefined ? {} : { credential: passwordCredential })
    },
    { what: "password", fileField: "passwordFile" }
  )

interface Raw {
  readonly message: string
  readonly code: string
  readonly response: number | undefined
}

const RawError = Schema.Struct({
  message: Schema.String,
  code: Schema.optional(Schema.String),
  responseCode: Schema.optional(Schema.Finite)
})

const PartlyRefused = Schema.Struct({
  response: Schema.optional(Schema.String),
  rejectedErrors: Schema.optional(
    Schema.Array(Schema.Struct({ recipient: Schema.String, responseCode: Schema.optional(Schema.Finite) }))
  )
})

/** Makes a receipt from the library's result, or from its error if the server accepted no recipient. */
const receiptOf = (to: ReadonlyArray<string>, outcome: unknown, clean: (text: string) => string): Receipt => {
  const known = Option.getOrUndefined(Schema.decodeUnknownOption(PartlyRefused)(outcome))
  const refused = (known?.rejectedErrors ?? []).map(({ recipient, responseCode }) => ({
    to: recipient,
    code: responseCode ?? null
  }))
  const isRefused = new Set(refused.map(({ to }) => to))
  const again = new Set(later(refused))
  return {
    to: to.filter((address) => !isRefused.has(address)),
    rejected: refused.map(({ to }) => to).filter((address) => !again.has(address)),
    response: clean(known?.response ?? "").slice(0, MAX_ANSWER),
    ...(refused.length === 0 ? {} : { refused })
  }
}

/** Whether some recipients were refused permanently and others temporarily. A retry must leave out the former. */
const isMixed = ({ refused = [], rejected }: Receipt): boolean =>
  rejected.length > 0 && rejected.length < refused.length

const rawOf = (error: unknown): Raw => {
  const known = Option.getOrUndefined(Schema.decodeUnknownOption(RawError)(error))
  return {
    message: known?.message ?? String(error),
    code: known?.code ?? "",
    response: known?.responseCode
  }
}

const CERTIFICATE = /certificate|self[- ]signed|altname|CERT_|unable to verify|issuer/i

const classify = (raw: Raw, smtp: SmtpConfig): Pick<SendError, "class" | "remedy"> => {
  const temporary = raw.response !== undefined && raw.response >= 400 && raw.response < 500
  if (CERTIFICATE.test(raw.message) && !temporary) {
    return { class: "setup", remedy: "Use the server name from its certificate, or put its CA into smtp.caFile." }
  }
  if (raw.code === "EAUTH" || raw.code === "ENOAUTH") {
    return temporary
      ? { class: "transient", remedy: "The server asks to try again later; agentd does." }
      : { class: "setup", remedy: "Check smtp.user and the password." }
  }
  if (raw.code === "ETLS" || /wrong version number|SSL routines/i.test(raw.message)) {
    const other = smtp.security === "tls" ? "starttls (587)" : "tls (465)"
    return { class: "setup", remedy: `Check smtp.port and smtp.security: this server may require ${other}.` }
  }
  if (raw.response !== undefined && raw.response >= 500) {
    return { class: "permanent", remedy: "Check mail.to and mail.from: the server does not accept this mail." }
  }
  if (raw.code === "EDNS" || raw.message.includes("ENOTFOUND")) {
    return { class: "transient", remedy: "Check smtp.host and the network; agentd tries again." }
  }
  return { class: "transient", remedy: "Check that the server is up and can be reached; agentd tries again." }
}

const failureOf = (error: unknown, smtp: SmtpConfig, clean: (text: string) => string): SendError => {
  const raw = rawOf(error)
  const text = clean(raw.message.replaceAll(/\s+/g, " ")).slice(0, MAX_ANSWER)
  return new SendError({ message: `${smtp.host}:${portOf(smtp)}: ${text}`, ...classify(raw, smtp) })
}

const base64 = (text: string): string => Buffer.from(text).toString("base64")

/** Removes a known secret from text, in every form in which SMTP sends it, even if the secret is short. */
const without = (secret: string | undefined, user: string | undefined) => (text: string) => {
  if (secret === undefined) return text
  const forms = [secret, base64(secret), base64(`\0${user}\0${secret}`)]
  return forms.reduce((clean, form) => clean.replaceAll(form, "[redacted]"), text)
}

/** A transport to the configured server, and a function that removes secrets from the server's messages. */
const lineTo = Effect.fnUntraced(function* ({ smtp }: MailConfig, timeouts: Timeouts) {
  const redact = yield* Redact
  const secret = yield* password(smtp)
  if (secret !== undefined) yield* redact.register([secret])
  const clean = (text: string): string => redact.text(without(secret, smtp.user)(text))
  const ca = smtp.caFile === undefined ? undefined : yield* ConfiguredSecret.readText(smtp.caFile, "the CA file")
  const greeting = Duration.toMillis(timeouts.greeting)
  const transport = createTransport({
    host: smtp.host,
    port: portOf(smtp),
    secure: smtp.security === "tls",
    requireTLS: smtp.security === "starttls",
    ignoreTLS: smtp.security === "none",
    ...(secret === undefined || smtp.user === undefined ? {} : { auth: { user: smtp.user, pass: secret } }),
    tls: {
      rejectUnauthorized: smtp.rejectUnauthorized,
      ...(ca === undefined ? {} : { ca: [...getCACertificates("default"), ca] })
    },
    connectionTimeout: greeting,
    greetingTimeout: greeting,
    dnsTimeout: greeting,
    socketTimeout: Duration.toMillis(timeouts.silence),
    disableFileAccess: true,
    disableUrlAccess: true
  })
  return { transport, clean }
})

/** Connects and logs in, but sends no mail; fails if the server would accept no mail from agentd. */
export const probe = Effect.fn("Smtp.probe")(function* (mail: MailConfig, timeouts: Timeouts = probeTimeouts) {
  const { smtp } = mail
  const { clean, transport } = yield* lineTo(mail, timeouts)
  yield* Effect.tryPromise({
    try: () => transport.verify(),
    catch: (error) => failureOf(error, smtp, clean)
  }).pipe(
    Effect.timeoutOrElse({
      duration: timeouts.whole,
      orElse: () => Effect.fail(failureOf(new Error("the server did not answer in time"), smtp, clean))
    })
  )
  const how = smtp.security === "none" ? "without TLS" : "over TLS"
  return `${smtp.host}:${portOf(smtp)} answers ${how}${smtp.user === undefined ? "" : ` and accepts the login of ${smtp.user}`}; nothing was sent`
})

export const send = Effect.fn("Smtp.send")(function* (
  mail: MailConfig,
  message: Message,
  timeouts: Timeouts = defaultTimeouts
) {
  const { smtp } = mail
  const { clean, transport } = yield* lineTo(mail, timeouts)
  const to = recipients(mail)
  return yield* Effect.tryPromise({
    try: (signal) =>
      transport.sendMail({
        from: sender(mail),
        to: [...to],
        subject: message.subject,
        text: message.text,
        ...(message.messageId === undefined ? {} : { messageId: message.messageId }),
        ...(message.references === undefined ? {} : { references: message.references }),
        // Prevents automatic answers, such as out-of-office mails (RFC 3834).
        headers: { "Auto-Submitted": "auto-generated" },
        signal
      }),
    catch: (error) => ({ receipt: receiptOf(to, error, clean), failure: failureOf(error, smtp, clean) })
  }).pipe(
    Effect.map((info) => receiptOf(to, info, clean)),
    Effect.catch(({ failure, receipt }) => (isMixed(receipt) ? Effect.succeed(receipt) : Effect.fail(failure))),
    Effect.timeoutOrElse({
      duration: timeouts.whole,
      orElse: () => Effect.fail(failureOf(new Error("the server did not accept the mail in time"), smtp, clean))
    })
  )
})
