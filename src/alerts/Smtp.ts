/**
 * Smtp: hands one mail to the configured server, once.
 *
 * Guarantees: it ends within its deadline, whatever the server does, and an
 * abandoned attempt is closed, not left to deliver later; the password is read
 * when it is needed, made known to the redactor before it is used, and is in no
 * error; every failure has a class, a message and a remedy.
 *
 * What SMTP cannot promise: a connection that is lost after the server took the
 * mail and before its answer arrived looks like a failure, and the mail is sent
 * again, under the same Message-ID.
 */
import { createTransport } from "nodemailer"
import { Duration, Effect, Option, Schema } from "effect"
import { getCACertificates } from "node:tls"
import type { MailConfig, SmtpConfig } from "../config/Config.ts"
import { Redact } from "../core/event-log/Redact.ts"
import type { Mail } from "./Mail.ts"
import * as Secret from "./Secret.ts"
import { later, type Refused } from "./Retry.ts"
import { SendError } from "./SendError.ts"

export interface Receipt {
  readonly to: ReadonlyArray<string>
  /** Refused for good. */
  readonly rejected: ReadonlyArray<string>
  readonly response: string
  /** Each recipient that was refused, with the server's code; those with 4xx are refused for now. */
  readonly refused?: ReadonlyArray<Refused>
}

/** `references`: the Message-ID of the first mail of its thread. */
export type Message = Mail & { readonly messageId?: string; readonly references?: string }

export interface Timeouts {
  /** To connect, TLS included, and to be greeted; each. */
  readonly greeting: Duration.Input
  /** Of silence after that. */
  readonly silence: Duration.Input
  /** For everything. */
  readonly whole: Duration.Input
}

export const defaultTimeouts: Timeouts = { greeting: "10 seconds", silence: "20 seconds", whole: "45 seconds" }

/** Somebody waits for what a probe says. */
const probeTimeouts: Timeouts = { greeting: "5 seconds", silence: "5 seconds", whole: "8 seconds" }

const MAX_ANSWER = 500

const PORTS = { none: 25, starttls: 587, tls: 465 } as const
const portOf = (smtp: SmtpConfig): number => smtp.port ?? PORTS[smtp.security]

export const recipients = (mail: MailConfig): ReadonlyArray<string> =>
  typeof mail.to === "string" ? [mail.to] : mail.to

export const sender = (mail: MailConfig): string => mail.from ?? recipients(mail)[0]!

/** Of the sender's address: what a Message-ID ends with. */
export const domainOf = (mail: MailConfig): string => /@([^@>\s]+)>?$/.exec(sender(mail))?.[1] ?? "agentd.invalid"

/** The password, wherever the config says that it is; undefined when none is needed. */
const password = ({ passwordCredential, passwordEnv, passwordFile }: SmtpConfig) =>
  Secret.read(
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

/** Of what the library answers with, or fails with where no recipient was taken. */
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

/** Whether some were refused for good and the others for now: the first are not to be asked again. */
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

/** Decides the remedy, and whether trying again will help. */
const classify = (raw: Raw, smtp: SmtpConfig): Pick<SendError, "class" | "remedy"> => {
  const temporary = raw.response !== undefined && raw.response >= 400 && raw.response < 500
  if (CERTIFICATE.test(raw.message) && !temporary) {
    return { class: "setup", remedy: "Name the server as its certificate does, or put its CA into smtp.caFile." }
  }
  if (raw.code === "EAUTH" || raw.code === "ENOAUTH") {
    return temporary
      ? { class: "transient", remedy: "The server asks to try again later; agentd does." }
      : { class: "setup", remedy: "Check smtp.user and the password." }
  }
  if (raw.code === "ETLS" || /wrong version number|SSL routines/i.test(raw.message)) {
    const other = smtp.security === "tls" ? "starttls (587)" : "tls (465)"
    return { class: "setup", remedy: `Check smtp.port and smtp.security: this server may want ${other}.` }
  }
  if (raw.response !== undefined && raw.response >= 500) {
    return { class: "permanent", remedy: "Check mail.to and mail.from: the server will not take this mail." }
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

/** Takes a known secret out of a text, in the forms in which SMTP carries it, whatever its length. */
const without = (secret: string | undefined, user: string | undefined) => (text: string) => {
  if (secret === undefined) return text
  const forms = [secret, base64(secret), base64(`\0${user}\0${secret}`)]
  return forms.reduce((clean, form) => clean.replaceAll(form, "[redacted]"), text)
}

/** A connection to the server as the config says, and what takes the password out of its words. */
const lineTo = Effect.fnUntraced(function* ({ smtp }: MailConfig, timeouts: Timeouts) {
  const redact = yield* Redact
  const secret = yield* password(smtp)
  if (secret !== undefined) yield* redact.register([secret])
  const clean = (text: string): string => redact.text(without(secret, smtp.user)(text))
  const ca = smtp.caFile === undefined ? undefined : yield* Secret.readText(smtp.caFile, "the CA file")
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

/** Connects, greets and logs in, and sends nothing: fails where the server would take no mail of ours. */
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
  return `${smtp.host}:${portOf(smtp)} answers ${how}${smtp.user === undefined ? "" : ` and knows ${smtp.user}`}; nothing was sent`
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
        // Keeps out-of-office answers and list software away (RFC 3834).
        headers: { "Auto-Submitted": "auto-generated" },
        signal
      }),
    catch: (error) => ({ receipt: receiptOf(to, error, clean), failure: failureOf(error, smtp, clean) })
  }).pipe(
    Effect.map((info) => receiptOf(to, info, clean)),
    Effect.catch(({ failure, receipt }) => (isMixed(receipt) ? Effect.succeed(receipt) : Effect.fail(failure))),
    Effect.timeoutOrElse({
      duration: timeouts.whole,
      orElse: () => Effect.fail(failureOf(new Error("the server did not take the mail in time"), smtp, clean))
    })
  )
})
