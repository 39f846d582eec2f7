/**
 * NotifyConfig: the notification channels of a user, which notices each channel gets, and the hours in which nothing is
 * sent.
 *
 * Guarantees: a secret is referenced by its location, and never written into the config. Every channel name that the
 * config uses is defined.
 */
import { Schema } from "effect"
import { didYouMean } from "./DidYouMean.ts"
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
  file: optional(FilePath, "A file whose first line is the secret. Other users must not be able to write to the file."),
  env: optional(VariableName, "The daemon's environment variable with the secret."),
  credential: optional(CREDENTIAL, "The systemd credential with the secret: a file in $CREDENTIALS_DIRECTORY.")
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
  type: described(Schema.Literal("mail"), "A mail, sent through the server of your own mail section."),
  to: optional(
    Schema.Array(MailAddress).check(
      Schema.makeFilter((to: ReadonlyArray<string>) => to.length > 0 && to.length <= 100, {
        message: "must contain from 1 to 100 addresses; omit it to use those of the mail section"
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
    "The topic's URL: https://ntfy.sh/TOPIC, or the secret with it. Anyone who knows it can read the topic."
  ),
  token: optional(SecretConfig, "An access token, if the server requires one."),
  click: optional(Address, "The page that a tap opens, such as the address of agentd's page.")
})

const WebhookChannel = Schema.Struct({
  type: described(Schema.Literal("webhook"), "A POST of JSON, signed."),
  url: described(AddressOrSecret, "The URL to post to, or the secret with it."),
  secret: optional(SecretConfig, "The key of the signature: HMAC-SHA256 of timestamp and body. Default: not signed.")
})

const SlackChannel = Schema.Struct({
  type: described(Schema.Literal("slack"), "A message in Slack, by an incoming webhook."),
  url: described(SecretConfig, "The secret with the webhook's URL. Anyone who knows the URL can post there.")
})

const DiscordChannel = Schema.Struct({
  type: described(Schema.Literal("discord"), "A message in Discord, by a webhook of a channel."),
  url: described(SecretConfig, "The secret with the webhook's URL. Anyone who knows the URL can post there.")
})

const CommandChannel = Schema.Struct({
  type: described(Schema.Literal("command"), "A program of yours: the notice is JSON on its stdin."),
  argv: described(
    Schema.Array(Word).check(
      Schema.makeFilter((argv: ReadonlyArray<string>) => argv.length > 0, { message: "must name a program" })
    ),
    "The program and its arguments; they are not run through a shell."
  ),
  timeLimit: spanBetween("100ms", "10 minutes").pipe(
    withDefault(
      "30 seconds",
      "After this time the program is killed, with all processes that it started; at most 10 minutes."
    )
  ),
  passEnv: Schema.Array(VariableName).pipe(
    withDefault([], "Variables of the daemon that the program gets, besides PATH, HOME and the language.")
  )
})

const OtherChannel = Schema.Struct({
  type: described(Schema.Literal("other"), "A channel that a custom build of agentd adds."),
  name: described(Name, "The channel's name in that build."),
  settings: Schema.Record(Schema.String, Schema.Unknown).pipe(withDefault({}, "The channel's settings."))
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
const names = (what: string) => optional(Names, `Channels that are notified ${what}.`)

const TellConfig = Schema.Struct({
  needsYou: names("when a call waits for your approval"),
  question: names("when an agent asks you a question"),
  failed: names("when an agent has stopped permanently"),
  goalMet: names("when a goal is met"),
  goalBlocked: names("when a goal is blocked"),
  goalStopped: names("when a goal has stopped"),
  planReady: names("when a plan waits for your approval"),
  budget: names("when a budget is spent"),
  budgetNear: names("when most of a budget is spent"),
  limit: names("when an account has reached its limit"),
  outage: names("when a provider has been unavailable for a while"),
  recovered: names("when a provider is available again"),
  daemonBack: names("when the daemon runs again after it was killed"),
  configHeld: names("when a changed config waits for your approval"),
  configBroken: names("when a config cannot be used"),
  invariant: names("when agentd has found a fault in itself"),
  unsent: names("when notices could not be sent by another channel"),
  done: optional(
    Names,
    "Channels that are notified when a turn has ended and none of its work continues: no shell, no sub-agent, no wake-up. Default: none."
  ),
  others: names("of every other kind of notice. Default: all channels")
} satisfies { readonly [K in NoticeKind | "others"]: unknown })

const TIME = /^([01]\d|2[0-3]):[0-5]\d$/u
const TimeOfDay = Schema.String.check(matching(TIME, 'must be a time of day such as "22:00"'))

const QuietConfig = Schema.Struct({
  from: described(TimeOfDay, "When the quiet hours begin."),
  to: described(TimeOfDay, "When the quiet hours end. The notices of that time are then sent as one message."),
  timeZone: optional(Zone, "The time zone of these times. Default: the machine's."),
  except: Schema.Array(Schema.Literals(NOTICE_KINDS)).pipe(
    withDefault([], "Kinds of notices that are sent in quiet hours, too.")
  )
})
export type QuietConfig = typeof QuietConfig.Type

const EscalateConfig = Schema.Struct({
  after: Span.pipe(withDefault("20 minutes", "How long a notice must be unanswered.")),
  to: described(
    Names.check(
      Schema.makeFilter((names: ReadonlyArray<string>) => names.length > 0, {
        message: "must name a channel; omit escalate if nobody is to be notified"
      })
    ),
    "The channels that are then notified, one after the other."
  )
})

interface Raw {
  readonly channels: { readonly [name: string]: unknown }
  readonly tell: { readonly [kind: string]: ReadonlyArray<string> }
  readonly escalate?: { readonly to: ReadonlyArray<string> }
}

/**
 * Reports names of channels that do not exist. Otherwise a notice to a misspelled channel would reach nobody, without
 * an error.
 */
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
        message: "must contain at most 20 channels"
      })
    )
    .pipe(withDefault({}, "The ways to notify you, by names of your choice. Try one: agentd alert test NAME")),
  tell: TellConfig.pipe(
    withDefault({}, "Which channels get which notices. Default: all channels get everything except done.")
  ),
  quietHours: optional(
    QuietConfig,
    "Hours in which nothing is sent. The notices of that time are sent afterwards, as one message."
  ),
  escalate: optional(EscalateConfig, "Which channels are notified if nobody has answered a notice that needs you."),
  digestWindow: Span.pipe(
    withDefault(
      "30 seconds",
      "Notices for one channel within this time are sent as one message, those that need you first."
    )
  ),
  digestEvery: Span.pipe(
    withDefault("15 minutes", "How long notices that are not urgent are collected into one message.")
  ),
  maxPerHour: whole(1, 1000).pipe(
    withDefault(60, "Maximum number of messages of a channel in an hour. The rest is sent as one message.")
  )
}).check(Schema.makeFilter(unknownChannels))
export type NotifyConfig = typeof NotifyConfig.Type

/** Names of the channels of type `mail`. These channels need a mail section. */
export const mailless = (notify: NotifyConfig): ReadonlyArray<string> =>
  Object.entries(notify.channels).flatMap(([name, { type }]) => (type === "mail" ? [name] : []))

export const channelsFor = ({ channels, tell }: NotifyConfig, kind: NoticeKind): ReadonlyArray<string> =>
  tell[kind] ?? (kind === "done" ? [] : (tell.others ?? Object.keys(channels)))
