/**
 * Config: the config of a project, and the user's own config for mail and the daemon.
 *
 * Guarantees: a decoded config is complete (every default is filled in). Every number and length has a limit, and no
 * text contains a NUL byte. The description of each field is here: the JSON Schema for editors, the error messages and
 * the documentation all use it.
 */
import { Schema } from "effect"
import { posix } from "node:path"
import { Rules } from "./RuleConfig.ts"
import { ruleProblems } from "./RuleProblems.ts"
import { AgentConfig, BudgetConfig, MachineBudget, PricesConfig, worktreeConfigOf } from "./AgentConfig.ts"
import { ChannelsConfig } from "./ChannelConfig.ts"
import { didYouMean } from "./DidYouMean.ts"
import { MAX_PROBLEMS } from "./ConfigProblem.ts"
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
  port: optional(whole(1, 65_535), "The server's port. Default: 587 with starttls, 465 with tls, 25 with none."),
  security: Schema.Literals(["none", "starttls", "tls"]).pipe(
    withDefault("starttls", "How the connection is encrypted. With none, the password is sent unencrypted.")
  ),
  user: optional(Word, "The user name for the login. Needs one of passwordFile, passwordEnv, passwordCredential."),
  passwordFile: optional(FilePath, "A file whose first line is the password."),
  passwordEnv: optional(Word, "The daemon's environment variable with the password."),
  passwordCredential: optional(
    CREDENTIAL,
    "The systemd credential with the password: a file in $CREDENTIALS_DIRECTORY."
  ),
  caFile: optional(FilePath, "Certificates (PEM) to trust besides the system's."),
  rejectUnauthorized: Schema.Boolean.pipe(
    withDefault(true, "Whether an untrusted certificate ends the connection. Leave it on, and set caFile instead.")
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
          message: "must contain from 1 to 100 addresses"
        })
      )
    ]),
    "Who gets a mail when an agent has stopped permanently: one address or several."
  ),
  from: optional(Sender, "The sender. Default: the first of to."),
  smtp: described(SmtpConfig, "The server that sends the mail."),
  outageAfter: Span.pipe(
    withDefault(
      "15 minutes",
      "How long a provider of this project's agents must be unavailable before a mail is sent. If several projects use it, only the first one whose time is over sends a mail."
    )
  ),
  digestWindow: Span.pipe(
    withDefault("30 seconds", "After a mail, further alerts are collected for this long and sent as one mail.")
  ),
  maxPerHour: whole(1, 1000).pipe(
    withDefault(20, "Maximum number of mails in an hour. Further alerts wait and are sent as one digest.")
  )
})
export type MailConfig = typeof MailConfig.Type

/**
 * The first of the ports that agentd assigns by user id. All of them are below the ports that the kernel assigns
 * itself.
 */
const FIRST_PORT = 20_000
const PORTS = 10_000

const HostName = Schema.String.check(
  matching(
    /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?(:\d{1,5})?$/u,
    "must be a name such as box.example.net, in lower case"
  )
)

export const HttpConfig = Schema.Struct({
  enabled: optional(
    Schema.Boolean,
    "Whether the daemon also listens on a port of 127.0.0.1, besides its unix socket. Default: only if port is set. Claude Code's hooks do not need it."
  ),
  port: optional(
    whole(1, 65_535),
    `The port. Default: ${FIRST_PORT} plus the last four digits of your user id, so that two users of one machine have different ports. After a change: agentd restart.`
  ),
  names: Schema.Array(HostName).pipe(
    withDefault(
      [],
      "Other host names of the page, if a program on this machine provides https for them (tailscale serve, a tunnel). Requests for any other name are rejected. After a change: agentd restart."
    )
  )
})
export type HttpConfig = typeof HttpConfig.Type

/** The port on which to listen; undefined if the config enables no port. */
export const portOf = ({ enabled, port }: Pick<HttpConfig, "enabled" | "port">, uid: number): number | undefined =>
  (enabled ?? port !== undefined) ? (port ?? FIRST_PORT + (uid % PORTS)) : undefined

/** The absolute path of a folder, as the daemon writes it. */
const ROOT = Schema.String.check(
  // oxlint-disable-next-line no-control-regex
  matching(/^(?:\/(?!\.{1,2}(?:\/|$))[^/\u0000]+)+$/u, "must be the absolute path of a project's folder")
)

export const ApprovalsConfig = Schema.Struct({
  timeout: Span.pipe(
    withDefault("10 minutes", "How long a session's permission request can be answered with agentd approve or deny.")
  ),
  rules: Rules.pipe(withDefault([], "Rules for the agents of all projects: see approvals.rules of an agent.")),
  projects: Schema.Record(
    ROOT,
    Schema.Struct({
      rules: Rules.pipe(withDefault([], "Rules for all agents of the project.")),
      agents: Schema.Record(
        Name,
        Schema.Struct({ rules: Rules.pipe(withDefault([], "Rules for this agent of the project.")) })
      ).pipe(withDefault({}, "Rules for single agents of the project, by name."))
    })
  ).pipe(withDefault({}, "Your own rules for single projects, by the absolute path of the project's folder."))
})
export type ApprovalsConfig = typeof ApprovalsConfig.Type

export const ConversationConfig = Schema.Struct({
  budget: BudgetConfig.pipe(
    withDefault(
      {},
      "What all agents of the project may spend together before the project is suspended. `agentd project resume` resets the count."
    )
  ),
  maxFatalStops: whole(1, 10_000).pipe(
    withDefault(3, "Number of permanently stopped agents that suspends the project.")
  ),
  maxTurnErrors: optional(
    whole(1, 10_000),
    "Number of turns in a row with an error that suspends the project. Default: no limit; errors count against their agent."
  ),
  restAfterRelays: whole(1, 10_000).pipe(
    withDefault(
      20,
      "How many messages between agents may each be a reaction to the one before. The next message waits for a person."
    )
  ),
  restAfterMessages: whole(1, 1_000_000).pipe(
    withDefault(
      200,
      "How many messages of other agents one agent takes without a message from outside. The next message waits for a person."
    )
  ),
  maxDepth: whole(1, 100).pipe(
    withDefault(3, "How many levels of sub-agents the agents may create. A person may create more.")
  ),
  maxSubAgentsPerDay: whole(1, 100_000).pipe(
    withDefault(100, "How many sub-agents the project's agents may start in a day, in total. A person may start more.")
  )
})
export type ConversationConfig = typeof ConversationConfig.Type

const Schema$ = optional(Schema.String, "The JSON Schema of this file, for editors: see `agentd schema`.")

interface Named {
  readonly path: ReadonlyArray<PropertyKey>
  readonly name: string | undefined
}

/** Every field of a config that refers to one of the config's agents, with the agent's name. */
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

/**
 * Reports names of agents that do not exist. Otherwise a misspelled name would leave a seat empty for ever, without a
 * message.
 */
const unknownAgents = (rooms: Rooms) =>
  namedIn(rooms)
    .filter((named): named is Named & { readonly name: string } =>
      named.name === undefined ? false : !Object.hasOwn(rooms.agents, named.name)
    )
    .slice(0, MAX_PROBLEMS)
    .map(({ name, path }) => ({ path, issue: nobody(name, rooms) }))

/** Reports rules that cannot be kept, and those that a stronger rule of the same file takes the use from. */
const overruled = ({ agents, approvals: { rules } }: Pick<Config, "agents" | "approvals">) => {
  const all = { path: ["approvals", "rules"], rules }
  return [
    ...ruleProblems(all),
    ...Object.entries(agents).flatMap(([name, { approvals }]) =>
      ruleProblems({ path: ["agents", name, "approvals", "rules"], rules: approvals.rules }, all)
    )
  ].slice(0, MAX_PROBLEMS)
}

/** Reports caches inside other caches: an agent that writes to the outer one could redirect the inner one. */
const nestedCaches = ({ agents }: Pick<Config, "agents">) => {
  const all = Object.entries(agents).flatMap(([agent, config]) =>
    (worktreeConfigOf(config)?.cache ?? []).map((one, index) => {
      const { path, shared } = typeof one === "string" ? { path: one, shared: false } : one
      return { at: ["agents", agent, "worktree", "cache", index], agent, folder: posix.normalize(`${path}/`), shared }
    })
  )
  return all
    .flatMap((one) => {
      const outer = all.find((other) =>
        other.agent === one.agent
          ? other !== one && one.folder.startsWith(other.folder)
          : other.shared && one.shared && one.folder !== other.folder && one.folder.startsWith(other.folder)
      )
      const issue = `is inside the cache "${outer?.folder}" of ${outer?.agent}: name only one of them`
      return outer === undefined ? [] : [{ path: one.at, issue }]
    })
    .slice(0, MAX_PROBLEMS)
}

/** The schema of `agentd.jsonc` in the root folder of a project. */
export const Config = Schema.Struct({
  $schema: Schema$,
  name: optional(Name, "Name of the project. Default: made from the name of its folder."),
  agents: described(
    Schema.Record(Name, AgentConfig).check(
      Schema.makeFilter((agents: object) => Object.keys(agents).length <= MAX_AGENTS, {
        message: `must contain at most ${MAX_AGENTS} agents`
      })
    ),
    `The agents, by name: ${NAME_FORM}.`
  ),
  approvals: Schema.Struct({
    rules: Rules.pipe(withDefault([], "Rules for all agents of the project: see approvals.rules of an agent."))
  }).pipe(withDefault({}, "Which tool calls of all agents of the project run, wait for approval or are denied.")),
  channels: ChannelsConfig.pipe(withDefault({}, "Channels in which agents and users take turns, by name.")),
  conversation: ConversationConfig.pipe(withDefault({}, "Limits for all agents of the project together.")),
  goals: GoalConfig.pipe(withDefault({}, "How the project works on goals: `agentd goal`.")),
  schedules: SchedulesConfig.pipe(withDefault({}, "Messages and goals that are due at certain times, by name.")),
  prices: PricesConfig.pipe(
    withDefault({}, "What models cost, by name. They override the user's own prices, and those that agentd knows.")
  ),
  mail: optional(MailConfig, "Where alerts go. Default: the mail section of the user's own config."),
  keepPrompts: optional(
    Span,
    'How long texts of prompts, messages and tools are kept: "30d". Then they are erased permanently. Default: the value of the user\'s own config.'
  )
}).check(Schema.makeFilter(unknownAgents), Schema.makeFilter(overruled), Schema.makeFilter(nestedCaches))
export type Config = typeof Config.Type

export const TelemetryConfig = Schema.Struct({
  otlp: optional(
    Schema.String.check(matching(/^https?:\/\/[^\s/]+(\/\S*)?$/u, "must be an address such as http://127.0.0.1:4318")),
    "An OpenTelemetry collector (OTLP over HTTP). The daemon sends it spans of commands and turns, and its metrics. Default: OTEL_EXPORTER_OTLP_ENDPOINT; without both, nothing is sent. After a change: agentd restart."
  )
})
export type TelemetryConfig = typeof TelemetryConfig.Type

/** Reports rules of the user's file that a stronger rule of the same file takes the use from. */
const overruledByUser = ({ approvals: { projects, rules } }: { readonly approvals: ApprovalsConfig }) => {
  const all = { path: ["approvals", "rules"], rules }
  const ofProjects = Object.entries(projects).flatMap(([root, project]) => {
    const path = ["approvals", "projects", root]
    const here = { path: [...path, "rules"], rules: project.rules }
    const ofAgents = Object.entries(project.agents).map(([name, own]) => ({
      path: [...path, "agents", name, "rules"],
      rules: own.rules
    }))
    return [...ruleProblems(here, all), ...ofAgents.flatMap((own) => ruleProblems(own, here, all))]
  })
  return [...ruleProblems(all), ...ofProjects].slice(0, MAX_PROBLEMS)
}

/** The schema of `$XDG_CONFIG_HOME/agentd/config.jsonc`: settings of the daemon, and defaults for projects. */
export const UserConfig = Schema.Struct({
  $schema: Schema$,
  http: HttpConfig.pipe(withDefault({}, "Whether the daemon also listens on a port.")),
  approvals: ApprovalsConfig.pipe(withDefault({}, "Permission requests of sessions that you start by hand.")),
  telemetry: TelemetryConfig.pipe(withDefault({}, "Where metrics and traces are sent, besides GET /metrics.")),
  budget: MachineBudget.pipe(
    withDefault({}, "What all agents of all projects may spend together. After a change: agentd restart.")
  ),
  prices: PricesConfig.pipe(
    withDefault({}, "What models cost, by name, for all projects. After a change: agentd restart.")
  ),
  mail: optional(MailConfig, "Where alerts go, for projects without a mail section of their own."),
  notify: optional(NotifyConfig, "Other ways to notify you about agents: desktop, phone, chat, your own program."),
  orphanGrace: Span.pipe(
    withDefault(
      "5 minutes",
      'How long runs continue without a daemon, after it was killed or while it restarts. Then they are ended. "0 seconds": runs end with their daemon. After a change: agentd restart.'
    )
  ),
  keepPrompts: optional(
    Span,
    'How long texts of prompts, messages and tools are kept in projects that do not set it: "30d". Default: no limit. After a change: agentd restart.'
  ),
  verifyLog: Span.pipe(
    withDefault(
      "7 days",
      'How often the daemon reads the whole log, slowly, and checks that it is undamaged, as agentd verify does. "0 seconds": never. After a change: agentd restart.'
    )
  ),
  keepLog: optional(
    KeepLog,
    'How much of the log is kept: "90 days", or "20 GB" on disk. The rest is deleted permanently, piece by piece, except pieces with open work. To see first what would be deleted: agentd gc --dry-run. Default: everything. After a change: agentd restart.'
  )
}).check(
  Schema.makeFilter(overruledByUser),
  Schema.makeFilter(({ mail, notify }) =>
    mail !== undefined || notify === undefined
      ? true
      : mailless(notify).map((name) => ({
          path: ["notify", "channels", name, "type"],
          issue: 'a channel of type "mail" uses the server of this file\'s "mail" section, which is missing: add it'
        }))
  )
)
export type UserConfig = typeof UserConfig.Type
