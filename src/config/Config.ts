/**
 * Config: the config of a project, and the user's own config for mail and the daemon.
 *
 * Guarantees: a decoded config is complete (every default is filled in). Every number and length in
 * it is limited, and no text in it contains a NUL byte. Each field has its description here, so
 * that the JSON Schema for editors, the error messages and the documentation have one source.
 */
import { Schema } from "effect"
import { AgentConfig, BudgetConfig, MachineBudget, PricesConfig } from "./AgentConfig.ts"
import { ChannelsConfig } from "./ChannelConfig.ts"
import { didYouMean, MAX_PROBLEMS } from "./ConfigProblem.ts"
import { described, FilePath, matching, Name, NAME_FORM, optional, whole, withDefault, Word } from "./Fields.ts"
import { GoalConfig } from "./GoalConfig.ts"
import { KeepLog } from "./KeepLog.ts"
import { MailAddress, Sender } from "./MailAddress.ts"
import { CREDENTIAL, mailless, NotifyConfig } from "./NotifyConfig.ts"
import { SchedulesConfig } from "./ScheduleConfig.ts"
import { Span } from "./Span.ts"

export const MAX_AGENTS = 1000

export const SmtpConfig = Schema.Struct({
  host: described(Word, "The mail server."),
  port: optional(whole(1, 65_535), "Default: 587 with starttls, 465 with tls, 25 with none."),
  security: Schema.Literals(["none", "starttls", "tls"]).pipe(
    withDefault("starttls", "How the connection is encrypted. With none a password travels readable.")
  ),
  user: optional(Word, "The name to log in with. Needs one of passwordFile, passwordEnv, passwordCredential."),
  passwordFile: optional(FilePath, "A file whose first line is the password."),
  passwordEnv: optional(Word, "The environment variable of the daemon that holds the password."),
  passwordCredential: optional(
    CREDENTIAL,
    "The systemd credential that holds the password: a file in $CREDENTIALS_DIRECTORY."
  ),
  caFile: optional(FilePath, "Certificates (PEM) to trust besides the system's."),
  rejectUnauthorized: Schema.Boolean.pipe(
    withDefault(true, "Whether a certificate that cannot be trusted ends the connection. Leave it on; name a caFile.")
  )
}).check(
  Schema.makeFilter((smtp: { readonly [key: string]: unknown }) => {
    const sources = ["passwordFile", "passwordEnv", "passwordCredential"].filter((key) => smtp[key] !== undefined)
    if (sources.length > 1) return `must take the password from one place, not from ${sources.join(" and ")}`
    if (sources.length === 1 && smtp["user"] === undefined) return `has a ${sources[0]} but no user`
    if (sources.length === 0 && smtp["user"] !== undefined)
      return "has a user but no password: add passwordFile, passwordEnv or passwordCredential"
    return true
  })
)
export type SmtpConfig = typeof SmtpConfig.Type

export const MailConfig = Schema.Struct({
  to: described(
    Schema.Union([
      MailAddress,
      Schema.Array(MailAddress).check(
        Schema.makeFilter((to: ReadonlyArray<string>) => to.length > 0 && to.length <= 100, {
          message: "must hold from 1 to 100 addresses"
        })
      )
    ]),
    "Who is told when an agent has stopped for good: one address or several."
  ),
  from: optional(Sender, "The sender. Default: the first of to."),
  smtp: described(SmtpConfig, "The server that takes the mail."),
  outageAfter: Span.pipe(
    withDefault(
      "15 minutes",
      "How long a provider of this project's agents cannot be had before that is mailed; the first project whose time is over mails it."
    )
  ),
  digestWindow: Span.pipe(
    withDefault("30 seconds", "After a mail further alerts are collected for this long, then sent as one.")
  ),
  maxPerHour: whole(1, 1000).pipe(
    withDefault(20, "The most mails in an hour; further alerts wait and come as one digest.")
  )
})
export type MailConfig = typeof MailConfig.Type

/** The first of the per-user ports. All of them are below the ports that the kernel assigns by itself. */
const FIRST_PORT = 20_000
const PORTS = 10_000

const HostName = Schema.String.check(
  matching(
    /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?(:\d{1,5})?$/u,
    "must be a name such as box.example.net, in small letters"
  )
)

export const HttpConfig = Schema.Struct({
  enabled: optional(
    Schema.Boolean,
    "Whether it listens on a port of 127.0.0.1 besides its unix socket. Default: only where port is given. Claude Code's hooks need none."
  ),
  port: optional(
    whole(1, 65_535),
    `The port. Default: ${FIRST_PORT} and the last four digits of your user id, so that two users of one machine do not share one. After a change: agentd restart.`
  ),
  names: Schema.Array(HostName).pipe(
    withDefault(
      [],
      "Other names by which the page is reached, through what speaks https for them on this machine (tailscale serve, a tunnel). No other name is answered. After a change: agentd restart."
    )
  )
})
export type HttpConfig = typeof HttpConfig.Type

/** The port to listen on; undefined if none was requested. */
export const portOf = ({ enabled, port }: Pick<HttpConfig, "enabled" | "port">, uid: number): number | undefined =>
  (enabled ?? port !== undefined) ? (port ?? FIRST_PORT + (uid % PORTS)) : undefined

export const ApprovalsConfig = Schema.Struct({
  timeout: Span.pipe(
    withDefault("10 minutes", "How long a session's permission request can be answered with agentd approve or deny.")
  )
})
export type ApprovalsConfig = typeof ApprovalsConfig.Type

export const ConversationConfig = Schema.Struct({
  budget: BudgetConfig.pipe(
    withDefault(
      {},
      "What all its agents may spend together before it is suspended; `agentd project resume` begins anew."
    )
  ),
  maxFatalStops: whole(1, 10_000).pipe(withDefault(3, "So many agents that stopped for good suspend it.")),
  maxTurnErrors: optional(
    whole(1, 10_000),
    "So many turns in a row that ended with an error suspend it. Default: no such limit, errors count against their agent."
  ),
  restAfterRelays: whole(1, 10_000).pipe(
    withDefault(
      20,
      "So many messages of agents may follow one from the other without a person; the next is kept, and waits for one."
    )
  ),
  restAfterMessages: whole(1, 1_000_000).pipe(
    withDefault(
      200,
      "So many messages of agents one agent takes without a word from outside; the next waits for a person."
    )
  ),
  maxDepth: whole(1, 100).pipe(
    withDefault(3, "How deep sub-agents may have sub-agents of their own; a person may go deeper.")
  ),
  maxSubAgentsPerDay: whole(1, 100_000).pipe(
    withDefault(100, "So many sub-agents its agents may begin in a day, one after another; a person may begin more.")
  )
})
export type ConversationConfig = typeof ConversationConfig.Type

const Schema$ = optional(Schema.String, "The JSON Schema of this file, for editors: see `agentd schema`.")

/** A reference to an agent, with its place in the file. */
interface Named {
  readonly path: ReadonlyArray<PropertyKey>
  readonly name: string | undefined
}

/** Every place where a file names one of its own agents. */
const namedIn = ({ agents, channels, goals, schedules }: Rooms): ReadonlyArray<Named> => [
  ...Object.entries(agents).map(([name, { parent }]) => ({ path: ["agents", name, "parent"], name: parent })),
  ...Object.entries(channels).flatMap(([channel, seats]) =>
    seats.agents.map((name, index) => ({ path: ["channels", channel, "agents", index], name }))
  ),
  ...Object.entries(schedules).flatMap(([schedule, { goal, send }]) => [
    { path: ["schedules", schedule, "send", "agent"], name: send?.agent },
    { path: ["schedules", schedule, "goal", "planner"], name: goal?.planner },
    { path: ["schedules", schedule, "goal", "critic"], name: goal?.critic }
  ]),
  { path: ["goals", "planner"], name: goals.planner },
  { path: ["goals", "critic"], name: goals.critic },
  ...(goals.workers ?? []).map((name, index) => ({ path: ["goals", "workers", index], name }))
]

interface Rooms {
  readonly agents: { readonly [name: string]: AgentConfig }
  readonly channels: ChannelsConfig
  readonly goals: GoalConfig
  readonly schedules: SchedulesConfig
}

const nobody = (name: string, { agents }: Rooms): string => {
  const meant = didYouMean(name, Object.keys(agents))
  return `there is no agent "${name}" in this file${meant === undefined ? "" : `; did you mean "${meant}"?`}`
}

/** A misspelled name would leave a seat empty forever without a message. */
const unknownAgents = (rooms: Rooms) =>
  namedIn(rooms)
    .filter((named): named is Named & { readonly name: string } =>
      named.name === undefined ? false : !Object.hasOwn(rooms.agents, named.name)
    )
    .slice(0, MAX_PROBLEMS)
    .map(({ name, path }) => ({ path, issue: nobody(name, rooms) }))

/** `agentd.jsonc` in a project's root. */
export const Config = Schema.Struct({
  $schema: Schema$,
  name: optional(Name, "What the project is called. Default: after its folder."),
  agents: described(
    Schema.Record(Name, AgentConfig).check(
      Schema.makeFilter((agents: object) => Object.keys(agents).length <= MAX_AGENTS, {
        message: `must hold at most ${MAX_AGENTS} agents`
      })
    ),
    `The agents, by name: ${NAME_FORM}.`
  ),
  channels: ChannelsConfig.pipe(withDefault({}, "Rooms in which agents and people take turns, by name.")),
  conversation: ConversationConfig.pipe(withDefault({}, "What holds for all agents together.")),
  goals: GoalConfig.pipe(withDefault({}, "How goals are worked off: `agentd goal`.")),
  schedules: SchedulesConfig.pipe(withDefault({}, "Messages and goals that are due at certain times, by name.")),
  prices: PricesConfig.pipe(
    withDefault({}, "What models cost, by name: before the user's own prices, and those that agentd knows.")
  ),
  mail: optional(MailConfig, "Where alerts go. Default: the mail section of the user's own config."),
  keepPrompts: optional(
    Span,
    'How long texts of prompts, messages and tools are kept: "30d". Then they are erased for good. Default: as the user\'s own config says.'
  )
}).check(Schema.makeFilter(unknownAgents))
export type Config = typeof Config.Type

export const TelemetryConfig = Schema.Struct({
  otlp: optional(
    Schema.String.check(matching(/^https?:\/\/[^\s/]+(\/\S*)?$/u, "must be an address such as http://127.0.0.1:4318")),
    "A collector that takes OpenTelemetry's protocol over HTTP: the daemon sends it spans of commands and turns, and its figures. Default: OTEL_EXPORTER_OTLP_ENDPOINT, else nothing is sent. After a change: agentd restart."
  )
})
export type TelemetryConfig = typeof TelemetryConfig.Type

/** `$XDG_CONFIG_HOME/agentd/config.jsonc`: settings of the daemon, and defaults for projects. */
export const UserConfig = Schema.Struct({
  $schema: Schema$,
  http: HttpConfig.pipe(withDefault({}, "Whether the daemon answers on a port, too.")),
  approvals: ApprovalsConfig.pipe(withDefault({}, "Permission requests of sessions that people run by hand.")),
  telemetry: TelemetryConfig.pipe(withDefault({}, "Where figures and traces go, besides GET /metrics.")),
  budget: MachineBudget.pipe(
    withDefault({}, "What all agents of all projects may spend together. After a change: agentd restart.")
  ),
  prices: PricesConfig.pipe(
    withDefault({}, "What models cost, by name, for all projects. After a change: agentd restart.")
  ),
  mail: optional(MailConfig, "Where alerts go, for projects without a mail section of their own."),
  notify: optional(
    NotifyConfig,
    "Other ways in which you are told where an agent is: desktop, phone, chat, your own program."
  ),
  orphanGrace: Span.pipe(
    withDefault(
      "5 minutes",
      'How long runs work on while no daemon is there: it was killed, or is restarted. Then they are ended. "0 seconds": runs end with their daemon. After a change: agentd restart.'
    )
  ),
  keepPrompts: optional(
    Span,
    'How long texts of prompts, messages and tools are kept, for projects that say nothing else: "30d". Default: for ever. After a change: agentd restart.'
  ),
  verifyLog: Span.pipe(
    withDefault(
      "7 days",
      'How often the daemon reads the whole log and checks that it is as it was written, as agentd verify does, at an idle pace. "0 seconds": never. After a change: agentd restart.'
    )
  ),
  keepLog: optional(
    KeepLog,
    'How much of the log is kept: "90 days", or "20 GB" on the disk. What is older or beyond is deleted for good, in pieces, as long as nothing in it is open. See before what goes: agentd gc --dry-run. Default: all, for ever. After a change: agentd restart.'
  )
}).check(
  Schema.makeFilter(({ mail, notify }) =>
    mail !== undefined || notify === undefined
      ? true
      : mailless(notify).map((name) => ({
          path: ["notify", "channels", name, "type"],
          issue: 'a channel of type "mail" goes by the server of this file\'s "mail" section, and there is none: add it'
        }))
  )
)
export type UserConfig = typeof UserConfig.Type
