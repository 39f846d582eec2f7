/**
 * Config: what a project says about its agents, and a user about mail and the daemon.
 *
 * Guarantees: a decoded config is complete (every default is filled in), every
 * number and length in it is bounded, and no text in it holds a NUL byte. Each
 * field carries its description, so that the JSON Schema for editors, the error
 * messages and the documentation come from this one place.
 */
import { Effect, Schema } from "effect"
import { Span } from "./Span.ts"

/** Names of agents and projects: safe in a path, an address, a subject and a unit name. */
export const NAME = /^[a-z0-9][a-z0-9._-]{0,62}$/u
export const NAME_FORM = "lower-case letters, digits, '.', '_' and '-', beginning with a letter or digit, at most 63"
export const MAX_AGENTS = 1000

/** What editors, errors and docs say about a field. It rebuilds the same schema, which the types cannot see. */
const described = <S extends Schema.Top>(
  schema: S,
  description: string,
  extra?: { readonly default: S["Encoded"] }
): S => Schema.annotateEncoded<S>({ description, ...extra })(schema) as unknown as S

/** A field that may be left out: then it has this default. */
const withDefault =
  <S extends Schema.Top>(value: S["Encoded"], description: string) =>
  (schema: S) =>
    Schema.withDecodingDefaultKey<S>(Effect.succeed(value))(described(schema, description, { default: value }))

/** A field that may be left out and then is not there. */
const optional = <S extends Schema.Top>(schema: S, description: string) =>
  Schema.optionalKey(described(schema, description))

/** Patterns carry the flag `u`, which is what makes them part of the JSON Schema. */
const matching = (pattern: RegExp, message: string) => Schema.isPattern(pattern, { message })

/** A NUL byte would end an argument or a path in the kernel. */
// oxlint-disable-next-line no-control-regex
const Text = Schema.String.check(matching(/^[^\u0000]*$/u, "must not hold a NUL byte"))
// One pattern each: a description is lost behind a second check. Linear: the look-ahead runs once.
// oxlint-disable-next-line no-control-regex
const Word = Schema.String.check(matching(/^(?=[^\u0000]*$)\s*\S/u, "must not be empty or hold a NUL byte"))
const FilePath = Schema.String.check(
  matching(
    // oxlint-disable-next-line no-control-regex
    /^(?!~)(?=[^\u0000]*$)\s*\S/u,
    "must be a path, absolute or relative to the folder of this file; ~ is not expanded"
  )
)

const whole = (least: number, most: number) => {
  const message = `must be a whole number from ${least} to ${most}`
  return Schema.Finite.check(
    Schema.isInt({ message }),
    Schema.isBetween({ minimum: least, maximum: most }, { message })
  )
}

const Name = Schema.String.check(matching(NAME, `must be ${NAME_FORM}`))

const Environment = Schema.Record(
  Schema.String.check(matching(/^(?!AGENTD_)[A-Za-z_][A-Za-z0-9_]*$/u, "must be the name of an environment variable")),
  Text
)

/** Any program, run anew for each run: the prompt goes in, its lines come out, its exit code is the outcome. */
export const CommandBackend = Schema.Struct({
  type: described(Schema.Literal("command"), "Which kind of backend."),
  argv: optional(
    Schema.Array(Text).check(
      Schema.makeFilter((argv: ReadonlyArray<string>) => argv.length > 0 && argv.length <= 1000 && argv[0] !== "", {
        message: "must name a program, then its arguments"
      })
    ),
    'The program and its arguments, as they are: ["claude", "-p"]. Either this or shell.'
  ),
  shell: optional(Word, "A line for `sh -c`. Either this or argv."),
  cwd: optional(FilePath, "Where it runs, relative to the project's root or the agent's worktree. Default: there."),
  env: Environment.pipe(
    withDefault(
      {},
      "Variables that are set besides the daemon's own. Names: letters, digits and _; AGENTD_… are set by agentd itself."
    )
  ),
  promptBy: Schema.Literals(["stdin", "argument", "file"]).pipe(
    withDefault(
      "stdin",
      "How the prompt reaches it: on its standard input, as its last argument, or in a file named by its last argument."
    )
  ),
  readyAfter: Span.pipe(withDefault("1 second", "Having lived this long it counts as started.")),
  killGrace: Span.pipe(withDefault("5 seconds", "The time from SIGTERM to SIGKILL."))
}).check(
  Schema.makeFilter((backend: { readonly argv?: ReadonlyArray<string>; readonly shell?: string }) =>
    (backend.argv === undefined) === (backend.shell === undefined) ? "must have exactly one of argv and shell" : true
  )
)
export type CommandBackend = typeof CommandBackend.Type

/** By `type`: further kinds join the union. */
export const BackendConfig = Schema.Union([CommandBackend])
export type BackendConfig = typeof BackendConfig.Type

export const BackoffConfig = Schema.Struct({
  base: Span.pipe(withDefault("2 seconds", "The wait after the first error in a row; it doubles with each.")),
  cap: Span.pipe(withDefault("60 seconds", "The longest wait.")),
  jitter: Schema.Finite.check(
    Schema.isBetween({ minimum: 0, maximum: 1 }, { message: "must be a number from 0 to 1" })
  ).pipe(withDefault(0, "How much of a wait is left to chance: 0 is none, 0.2 up to a fifth more or less."))
})
export type BackoffConfig = typeof BackoffConfig.Type

export const OutputConfig = Schema.Struct({
  maxBytesPerRun: whole(1024, 1_073_741_824).pipe(
    withDefault(1_048_576, "How much output of one run is kept; what comes after it is counted and dropped.")
  ),
  tailLines: whole(1, 1000).pipe(withDefault(40, "How many last lines `status`, `why` and mails show."))
})
export type OutputConfig = typeof OutputConfig.Type

const Worktree = Schema.Union([
  Schema.Boolean,
  Schema.Struct({ base: optional(Word, "The commit or branch that it starts from. Default: HEAD.") })
])

export const AgentConfig = Schema.Struct({
  role: optional(Word, "What this agent is, in a few words; shown by `agentd ps`."),
  instructions: optional(Text, "Goes into each of its prompts."),
  prompt: optional(Word, "The standing task: with mode loop the text of every run."),
  backend: described(BackendConfig, "How a run of this agent is made."),
  mode: Schema.Literals(["inbox", "loop"]).pipe(
    withDefault("inbox", "inbox: runs when there is a message. loop: starts the next run as soon as one has ended.")
  ),
  autostart: Schema.Boolean.pipe(withDefault(true, "Whether it starts with the project.")),
  worktree: Worktree.pipe(withDefault(false, "Whether it works in a git worktree of its own.")),
  maxConsecutiveErrors: whole(1, 10_000).pipe(withDefault(5, "So many errors in a row stop it for good.")),
  maxTotalErrors: whole(1, 1_000_000).pipe(withDefault(20, "So many errors in all stop it for good.")),
  backoff: BackoffConfig.pipe(withDefault({}, "How long it waits after an error.")),
  runTimeout: Span.pipe(withDefault("30 minutes", "A run that takes longer is ended and counts as an error.")),
  interruptGrace: Span.pipe(withDefault("10 seconds", "How long a run has to end by itself after an interrupt.")),
  minRunInterval: Span.pipe(withDefault("1 second", "The least time between the starts of two runs.")),
  maxRunsPerHour: optional(whole(1, 100_000), "How many runs it may start in an hour. Default: no such limit."),
  output: OutputConfig.pipe(withDefault({}, "What is kept of a run's output."))
}).check(
  Schema.makeFilter((agent: { readonly mode: "inbox" | "loop"; readonly prompt?: string }) =>
    agent.mode === "loop" && agent.prompt === undefined
      ? { path: ["mode"], issue: 'is "loop", which needs a prompt: add "prompt" with the text of every run' }
      : true
  )
)
export type AgentConfig = typeof AgentConfig.Type

/** Mail addresses as people have them; no quoting, no comments, nothing that could end a header. */
const ADDRESS = String.raw`[^\s<>,;:"@()\\\[\]]+@[^\s<>,;:"@()\\\[\]]+`
const Address = Schema.String.check(
  matching(new RegExp(`^${ADDRESS}$`, "u"), "must be one mail address such as ada@example.org")
)
const Sender = Schema.String.check(
  matching(
    new RegExp(String.raw`^(${ADDRESS}|[^<>"\\\u0000-\u001f\u007f]{1,100} <${ADDRESS}>)$`, "u"),
    'must be a mail address such as agentd@example.org or "agentd <agentd@example.org>"'
  )
)

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
    Schema.String.check(matching(/^[A-Za-z0-9_][A-Za-z0-9._-]{0,254}$/u, "must be the name of a systemd credential")),
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
      Address,
      Schema.Array(Address).check(
        Schema.makeFilter((to: ReadonlyArray<string>) => to.length > 0 && to.length <= 100, {
          message: "must hold from 1 to 100 addresses"
        })
      )
    ]),
    "Who is told when an agent has stopped for good: one address or several."
  ),
  from: optional(Sender, "The sender. Default: the first of to."),
  smtp: described(SmtpConfig, "The server that takes the mail."),
  digestWindow: Span.pipe(
    withDefault("30 seconds", "After a mail further alerts are collected for this long, then sent as one.")
  ),
  maxPerHour: whole(1, 1000).pipe(
    withDefault(20, "The most mails in an hour; further alerts wait and come as one digest.")
  )
})
export type MailConfig = typeof MailConfig.Type

export const DEFAULT_HTTP_PORT = 7433

export const HttpConfig = Schema.Struct({
  enabled: Schema.Boolean.pipe(
    withDefault(
      true,
      "Whether it listens on loopback TCP, where Claude Code's hooks go. The unix socket is always there."
    )
  ),
  port: whole(1, 65_535).pipe(
    withDefault(
      DEFAULT_HTTP_PORT,
      "The port on 127.0.0.1. After a change: agentd restart, and agentd hooks install, which writes it into the hooks."
    )
  )
})
export type HttpConfig = typeof HttpConfig.Type

export const ApprovalsConfig = Schema.Struct({
  timeout: Span.pipe(
    withDefault("10 minutes", "How long a session's permission request can be answered with agentd approve or deny.")
  )
})
export type ApprovalsConfig = typeof ApprovalsConfig.Type

const Schema$ = optional(Schema.String, "The JSON Schema of this file, for editors: see `agentd schema`.")

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
  mail: optional(MailConfig, "Where alerts go. Default: the mail section of the user's own config.")
})
export type Config = typeof Config.Type

/** `$XDG_CONFIG_HOME/agentd/config.jsonc`: the daemon's own settings, and what holds for projects that say nothing else. */
export const UserConfig = Schema.Struct({
  $schema: Schema$,
  http: HttpConfig.pipe(withDefault({}, "Where the daemon takes hooks and answers over HTTP.")),
  approvals: ApprovalsConfig.pipe(withDefault({}, "Permission requests of sessions that people run by hand.")),
  mail: optional(MailConfig, "Where alerts go, for projects without a mail section of their own.")
})
export type UserConfig = typeof UserConfig.Type
