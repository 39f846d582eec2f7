/**
 * NotifyConfig: through which channels a person is notified of what, and when not.
 *
 * Guarantees: a secret is referenced by its location and never written into the config. Each
 * channel name that is used is the name of a defined channel.
 */
import { Schema } from "effect"
import { didYouMean } from "./ConfigProblem.ts"
import {
  described,
  FilePath,
  matching,
  Name,
  optional,
  Text,
  VariableName,
  whole,
  withDefault,
  Word
} from "./Fields.ts"
import { MailAddress } from "./MailAddress.ts"
import { Span, spanBetween } from "./Span.ts"
import { Zone } from "./Zone.ts"

export const NOTICE_KINDS = [
  "needsYou",
  "question",
  "failed",
  "goalMet",
  "goalBlocked",
  "goalStopped",
  "planReady",
  "budget",
  "budgetNear",
  "limit",
  "outage",
  "recovered",
  "daemonBack",
  "configHeld",
  "configBroken",
  "invariant",
  "unsent",
  "done"
] as const
export type NoticeKind = (typeof NOTICE_KINDS)[number]

export const CREDENTIAL = Schema.String.check(
  matching(/^[A-Za-z0-9_][A-Za-z0-9._-]{0,254}$/u, "must be the name of a systemd credential")
)

export const SecretConfig = Schema.Struct({
  file: optional(FilePath, "A file whose first line is the secret; nobody but you may be able to write it."),
  env: optional(VariableName, "The environment variable of the daemon that holds it."),
  credential: optional(CREDENTIAL, "The systemd credential that holds it: a file in $CREDENTIALS_DIRECTORY.")
}).check(
  Schema.makeFilter((secret: object) =>
    Object.keys(secret).length === 1 ? true : "must have exactly one of file, env and credential"
  )
)
export type SecretConfig = typeof SecretConfig.Type

const Address = Schema.String.check(
  matching(/^https?:\/\/[^\s/@]+(\/\S*)?$/u, "must be an address such as https://example.org/hook, without a password")
)
const AddressOrSecret = Schema.Union([Address, SecretConfig])

const MailChannel = Schema.Struct({
  type: described(Schema.Literal("mail"), "A mail, by the server of your own mail section."),
  to: optional(
    Schema.Array(MailAddress).check(
      Schema.makeFilter((to: ReadonlyArray<string>) => to.length > 0 && to.length <= 100, {
        message: "must hold from 1 to 100 addresses; leave it out for those of the mail section"
      })
    ),
    "Addresses. Default: those of the mail section."
  )
})

const DesktopChannel = Schema.Struct({
  type: described(Schema.Literal("desktop"), "A notification on the desktop of the session in which the daemon runs."),
  bus: optional(
    Text,
    "The address of the session's bus. Default: $DBUS_SESSION_BUS_ADDRESS, else unix:path=$XDG_RUNTIME_DIR/bus."
  )
})

const NtfyChannel = Schema.Struct({
  type: described(Schema.Literal("ntfy"), "A push by ntfy: ntfy.sh, or a server of your own."),
  url: described(
    AddressOrSecret,
    "The topic's address: https://ntfy.sh/TOPIC, or where it is. Who knows it, reads it."
  ),
  token: optional(SecretConfig, "An access token, where the server wants one."),
  click: optional(Address, "The page that a tap opens, such as the address of agentd's page.")
})

const WebhookChannel = Schema.Struct({
  type: described(Schema.Literal("webhook"), "A POST of JSON, signed."),
  url: described(AddressOrSecret, "Where it is sent, or where the address is."),
  secret: optional(SecretConfig, "The key of the signature: HMAC-SHA256 of timestamp and body. Default: not signed.")
})

const SlackChannel = Schema.Struct({
  type: described(Schema.Literal("slack"), "A message in Slack, by an incoming webhook."),
  url: described(SecretConfig, "Where the webhook's address is. Who knows it, can write there.")
})

const DiscordChannel = Schema.Struct({
  type: described(Schema.Literal("discord"), "A message in Discord, by a webhook of a channel."),
  url: described(SecretConfig, "Where the webhook's address is. Who knows it, can write there.")
})

const CommandChannel = Schema.Struct({
  type: described(Schema.Literal("command"), "A program of yours: the notice is JSON on its stdin."),
  argv: described(
    Schema.Array(Word).check(
      Schema.makeFilter((argv: ReadonlyArray<string>) => argv.length > 0, { message: "must name a program" })
    ),
    "The program and its arguments; no shell reads them."
  ),
  timeLimit: spanBetween("100ms", "10 minutes").pipe(
    withDefault("30 seconds", "It is ended after this, with all that it started; 10 minutes at most.")
  ),
  passEnv: Schema.Array(VariableName).pipe(
    withDefault([], "Variables of the daemon that it is given, besides PATH, HOME and the language.")
  )
})

const OtherChannel = Schema.Struct({
  type: described(Schema.Literal("other"), "A channel that whoever built this agentd has added."),
  name: described(Name, "Its name there."),
  settings: Schema.Record(Schema.String, Schema.Unknown).pipe(withDefault({}, "What it is to know."))
})

export const ChannelConfig = Schema.Union([
  MailChannel,
  DesktopChannel,
  NtfyChannel,
  WebhookChannel,
  SlackChannel,
  DiscordChannel,
  CommandChannel,
  OtherChannel
])
export type ChannelConfig = typeof ChannelConfig.Type
export type ChannelOf<T extends ChannelConfig["type"]> = Extract<ChannelConfig, { readonly type: T }>

const Names = Schema.Array(Name)
const names = (what: string) => optional(Names, `Channels that are told ${what}.`)

const TellConfig = Schema.Struct({
  needsYou: names("when a call waits for your yes"),
  question: names("when an agent asks you something"),
  failed: names("when an agent has stopped for good"),
  goalMet: names("when a goal is met"),
  goalBlocked: names("when a goal is blocked"),
  goalStopped: names("when a goal has stopped"),
  planReady: names("when a plan waits for your yes"),
  budget: names("when a budget is spent"),
  budgetNear: names("when most of a budget is spent"),
  limit: names("when the limit of an account is used up"),
  outage: names("when a provider cannot be had for a while"),
  recovered: names("when it answers again"),
  daemonBack: names("when the daemon is back after it was killed"),
  configHeld: names("when a changed config waits for you"),
  configBroken: names("when a config cannot be used"),
  invariant: names("when agentd has found a fault of its own"),
  unsent: names("when notices could not be sent by another channel"),
  done: optional(
    Names,
    "Channels that are told when a turn has ended and nothing of it works on: no shell, no sub-agent, no wake-up. Default: none."
  ),
  others: names("of every kind that is not named here. Default: all channels")
} satisfies { readonly [K in NoticeKind | "others"]: unknown })

const TIME = /^([01]\d|2[0-3]):[0-5]\d$/u
const TimeOfDay = Schema.String.check(matching(TIME, 'must be a time of day such as "22:00"'))

const QuietConfig = Schema.Struct({
  from: described(TimeOfDay, "When they begin."),
  to: described(TimeOfDay, "When they end; what came meanwhile is one message then."),
  timeZone: optional(Zone, "Of these times. Default: the machine's."),
  except: Schema.Array(Schema.Literals(NOTICE_KINDS)).pipe(withDefault([], "Kinds that are told all the same."))
})
export type QuietConfig = typeof QuietConfig.Type

const EscalateConfig = Schema.Struct({
  after: Span.pipe(withDefault("20 minutes", "So long nobody has answered.")),
  to: described(
    Names.check(
      Schema.makeFilter((names: ReadonlyArray<string>) => names.length > 0, {
        message: "must name a channel: nobody would be told; leave escalate out where nobody is to be"
      })
    ),
    "The channels that are told then, one after the other."
  )
})

interface Raw {
  readonly channels: { readonly [name: string]: unknown }
  readonly tell: { readonly [kind: string]: ReadonlyArray<string> }
  readonly escalate?: { readonly to: ReadonlyArray<string> }
}

/** A notice to a misspelled channel would reach nobody, without a message. */
const unknownChannels = ({ channels, escalate, tell }: Raw) => {
  const used = [
    ...Object.entries(tell).flatMap(([kind, names]) => names.map((name, at) => ({ name, path: ["tell", kind, at] }))),
    ...(escalate?.to ?? []).map((name, at) => ({ name, path: ["escalate", "to", at] }))
  ]
  return used
    .filter(({ name }) => !Object.hasOwn(channels, name))
    .map(({ name, path }) => {
      const meant = didYouMean(name, Object.keys(channels))
      return {
        path,
        issue: `there is no channel "${name}" in notify.channels${meant === undefined ? "" : `; did you mean "${meant}"?`}`
      }
    })
}

export const NotifyConfig = Schema.Struct({
  channels: Schema.Record(Name, ChannelConfig)
    .check(
      Schema.makeFilter((channels: object) => Object.keys(channels).length <= 20, {
        message: "must hold at most 20 channels"
      })
    )
    .pipe(withDefault({}, "The ways in which you are told, by names of your choice. Try one: agentd alert test NAME")),
  tell: TellConfig.pipe(withDefault({}, "Which channels are told of what. Default: all of everything but done.")),
  quietHours: optional(QuietConfig, "When nothing is told; it comes as one message when they are over."),
  escalate: optional(EscalateConfig, "Who is told where nobody has answered what needs you."),
  digestWindow: Span.pipe(
    withDefault("30 seconds", "What comes within this time by one channel is one message; what needs you goes first.")
  ),
  digestEvery: Span.pipe(withDefault("15 minutes", "So long what is not pressing is collected, to be one message.")),
  maxPerHour: whole(1, 1000).pipe(withDefault(60, "The most messages of a channel in an hour; the rest comes as one."))
}).check(Schema.makeFilter(unknownChannels))
export type NotifyConfig = typeof NotifyConfig.Type

/** Names of the channels of type mail; they need a mail section. */
export const mailless = (notify: NotifyConfig): ReadonlyArray<string> =>
  Object.entries(notify.channels).flatMap(([name, { type }]) => (type === "mail" ? [name] : []))

export const channelsFor = ({ channels, tell }: NotifyConfig, kind: NoticeKind): ReadonlyArray<string> =>
  tell[kind] ?? (kind === "done" ? [] : (tell.others ?? Object.keys(channels)))
