/**
 * Cli: defines all commands: every verb with its flags, its arguments and an example. The code of each verb is in a
 * separate file, which is loaded only when the verb is called. So a call does not load the code of other verbs.
 */
import { Cause, Console, Effect, Option } from "effect"
import { Argument, CliConfig, CliError, CliOutput, Command, Flag, GlobalFlag } from "effect/cli"
import { VERSION } from "../../api/rpc/Version.ts"
import * as AgentLife from "../agents/AgentLife.ts"
import * as AgentVerbs from "../agents/AgentVerbs.ts"
import { approvals } from "../approvals/ApprovalVerbs.ts"
import * as ChannelVerbs from "../channels/ChannelVerbs.ts"
import { commandOf, commandsOf } from "./DeclaredCommand.ts"
import * as Declared from "./DeclaredVerbs.ts"
import { behind } from "../render/ProgramConsole.ts"
import { ExitCode, meanings } from "./ExitCode.ts"
import { told } from "../render/ErrorText.ts"
import * as GoalVerbs from "../goals/GoalVerbs.ts"
import { asFlags } from "./VerbAliases.ts"
import { usage } from "./UsageError.ts"
import { AGENTS, ROLES } from "../setup/InitChoices.ts"
import { worldOf } from "../../config/Places.ts"
import * as Paths from "./Paths.ts"
import { project } from "../projects/ProjectVerbs.ts"
import * as Renamed from "./Renamed.ts"
import { host } from "../hosts/HostVerbs.ts"
import * as HostLine from "../hosts/HostLine.ts"
import { reported } from "./FailureOutput.ts"
import { service } from "../setup/ServiceVerbs.ts"
import * as ScheduleVerbs from "../agents/ScheduleVerbs.ts"
import * as SessionVerbs from "../sessions/SessionVerbs.ts"
import { globalFlags, loaded, maybeWord, off, verb, yes } from "./Verb.ts"

const up = Command.make(
  "up",
  {},
  verb(() => import("../daemon/Up.ts"))
).pipe(
  Command.withDescription("Run the daemon in the foreground, with the project of this folder"),
  Command.withExamples([
    { command: "agentd up", description: "Run the daemon in this terminal until Ctrl-C, which stops it gracefully" },
    {
      command: "agentd --state /tmp/try up",
      description: "Run a separate daemon with its own state directory, for experiments"
    }
  ])
)

/** The verbs `start`, `stop` and `restart`. Without an agent's name, they apply to the daemon. */
const lives = commandsOf(Declared.daemon, [
  commandOf(AgentLife.start, {
    program: (input) =>
      AgentLife.isOfAgent(input)
        ? undefined
        : () => import("../daemon/Start.ts").then(({ run }) => ({ run: () => run(input.as) }))
  }),
  commandOf(AgentLife.stop, {
    program: (input) =>
      AgentLife.isOfAgent(input)
        ? undefined
        : () => import("../daemon/Stop.ts").then(({ run }) => ({ run: () => run(input) }))
  }),
  commandOf(AgentLife.restart, {
    program: (input) =>
      AgentLife.isOfAgent(input)
        ? undefined
        : () => import("../daemon/Restart.ts").then(({ run }) => ({ run: () => run(input) }))
  })
])

const trust = Command.make(
  "trust",
  {
    what: maybeWord(
      "what",
      "A project's name, or the hash that agentd trust showed; default: the project of this folder"
    )
  },
  verb(() => import("../projects/Trust.ts"))
).pipe(
  Command.withDescription("Show what a changed agentd.jsonc would do, and put it into force after confirmation"),
  Command.withExamples([
    {
      command: "agentd trust",
      description: "Show the changes, dangerous ones first, then the diff; ask before they are put into force"
    },
    {
      command: "agentd trust --json",
      description: "Print the change and its hash for scripts; nothing is put into force"
    }
  ])
)

const verify = Command.make(
  "verify",
  {},
  verb(() => import("../daemon/Verify.ts"))
).pipe(
  Command.withDescription("Check the whole log: hashes, order and invariants; works without the daemon, too"),
  Command.withExamples([
    { command: "agentd verify", description: "Check the log; exit code 4 means that it has problems" }
  ])
)

const repair = Command.make(
  "repair",
  {
    conversation: maybeWord(
      "conversation",
      "Full id of the conversation to repair; default: all damaged conversations"
    ),
    dryRun: off("dry-run", "Show what the repair would lose, and change nothing"),
    yes
  },
  verb(() => import("../daemon/Repair.ts"))
).pipe(
  Command.withDescription("Repair a damaged log while no daemon runs: cut each stream after its last good rune"),
  Command.withExamples([
    { command: "agentd repair --dry-run", description: "Show which runes, messages and turns the repair would lose" },
    { command: "agentd repair", description: "Repair the log after confirmation; the old store is kept in damaged/" }
  ])
)

const backup = Command.make(
  "backup",
  {
    file: Argument.String("file").pipe(Argument.withDescription("File to create, such as agentd.tar.zst")),
    force: off("force", "Replace an existing file")
  },
  verb(() => import("../daemon/Backup.ts"))
).pipe(
  Command.withDescription("Copy the store and the files that it needs into one file, even while the daemon runs"),
  Command.withExamples([
    {
      command: "agentd backup ~/agentd.tar.zst",
      description: "Make a consistent copy; agents and the daemon keep running"
    }
  ])
)

const restore = Command.make(
  "restore",
  { file: Argument.String("file").pipe(Argument.withDescription("File made by agentd backup")), yes },
  verb(() => import("../daemon/Restore.ts"))
).pipe(
  Command.withDescription("Restore a backup and move the current store aside; the daemon must be stopped"),
  Command.withExamples([
    {
      command: "agentd restore ~/agentd.tar.zst",
      description: "Verify the whole backup, ask for confirmation, then restore it"
    },
    {
      command: "agentd --state /tmp/try restore ~/agentd.tar.zst",
      description: "Restore the backup into another state directory"
    }
  ])
)

const gc = Command.make(
  "gc",
  {
    dryRun: off("dry-run", "List what would be removed, and remove nothing"),
    days: Flag.Int("days").pipe(
      Flag.withMetavar("DAYS"),
      Flag.withDescription("Remove only items that have not changed for this many days (14)"),
      Flag.withDefault(14)
    ),
    yes
  },
  verb(() => import("../setup/Gc.ts"))
).pipe(
  Command.withDescription("Remove items that are no longer needed: work trees with merged work, old logs, leftovers"),
  Command.withExamples([
    {
      command: "agentd gc --dry-run",
      description: "List what would be removed with its size, and what would be kept and why"
    },
    {
      command: "agentd gc --days 90",
      description: "Remove only items that have not changed for 90 days; list them and ask first"
    }
  ])
)

const uninstall = Command.make(
  "uninstall",
  { dryRun: off("dry-run", "List what would be removed, and remove nothing"), yes },
  verb(() => import("../setup/Uninstall.ts"))
).pipe(
  Command.withDescription(
    "Stop the daemon and remove the files that it made, except work trees that still contain work"
  ),
  Command.withExamples([
    { command: "agentd uninstall --dry-run", description: "List what would be removed and what would be kept" },
    { command: "agentd uninstall", description: "List what would be removed, then ask for confirmation" }
  ])
)

const erase = Command.make(
  "erase",
  {
    rune: Argument.Int("rune").pipe(Argument.withDescription("Number of the rune: eventId in agentd log --json")),
    also: off("also", "Also erase the texts of runes in the same conversation that repeat them"),
    yes
  },
  verb(() => import("../daemon/Erase.ts"))
).pipe(
  Command.withDescription("Erase the texts of one rune permanently, from the log and its snapshots"),
  Command.withExamples([
    {
      command: "agentd erase 1207",
      description: "Show what would be erased, then ask; agentd verify still passes afterwards"
    },
    {
      command: "agentd erase 1207 --yes",
      description: "Erase without confirmation, for scripts; without --yes the exit code is 2"
    }
  ])
)

const doctor = Command.make(
  "doctor",
  {
    security: off("security", "Instead of the checks, show what each agent could access; no agent is started")
  },
  verb(() => import("../setup/Doctor.ts"))
).pipe(
  Command.withDescription("Check everything that agentd needs, and show how to fix each problem"),
  Command.withExamples([
    { command: "agentd doctor", description: "Check this machine; exit code 4 means that it found a problem" },
    {
      command: "agentd doctor --security",
      description: "Show each agent's sandbox, files, network access and keys; exit code 4: an agent could not run"
    }
  ])
)

const alert = Command.make("alert").pipe(
  Command.withDescription("Alerts to people: list sent alerts, list the channels that send them, send a test"),
  Command.withExamples([
    { command: "agentd alert channels", description: "List the channels, and whether each one works" }
  ]),
  Command.withSubcommands(commandsOf(Declared.alerts))
)

const config = Command.make("config").pipe(
  Command.withDescription("Project configs: show what a change would do"),
  Command.withExamples([
    { command: "agentd config diff", description: "Show what the changed file would do; nothing is put into force" }
  ]),
  Command.withSubcommands(commandsOf(Declared.configs))
)

const open = Command.make(
  "open",
  {
    view: off("view", "Allow the page to read, but not to act"),
    print: off("print", "Print only the link, and open no browser"),
    ownPort: off("own-port", "Use a separate port, for a browser that cannot resolve names such as x.localhost"),
    label: Flag.String("label").pipe(
      Flag.withDescription("Name of the page in lists and in the log"),
      Flag.withDefault("page")
    )
  },
  verb(() => import("../daemon/Open.ts"))
).pipe(
  Command.withDescription(
    "Open the web page of agentd in a browser; it can do everything that the board can, and more"
  ),
  Command.withExamples([
    { command: "agentd open", description: "Open the page with a one-time link that expires after two minutes" },
    { command: "agentd open --view --label wall", description: "Open a page that can only read, and name it wall" }
  ])
)

const access = Command.make("access").pipe(
  Command.withDescription("Web pages and programs that have access to the daemon over HTTP"),
  Command.withExamples([
    {
      command: "agentd access ls",
      description: "List each page and program, with its rights and when it got access"
    }
  ]),
  Command.withSubcommands(commandsOf(Declared.access))
)

const schema = Command.make(
  "schema",
  {
    of: Argument.Literals("of", ["goal"]).pipe(
      Argument.withDescription("goal: print the schema of a goal's plan file, not of agentd.jsonc"),
      Argument.optional,
      Argument.map(Option.getOrUndefined)
    ),
    user: off("user", "Print the schema of the user's own config.jsonc, not of agentd.jsonc"),
    openapi: off("openapi", "Print the daemon's HTTP API as OpenAPI 3.1, not the schema of agentd.jsonc")
  },
  verb(() => import("../daemon/Schema.ts"))
).pipe(
  Command.withDescription("Print the JSON Schema of agentd.jsonc, for editors"),
  Command.withExamples([
    {
      command: "agentd schema > agentd.schema.json",
      description: 'Save the schema; then set "$schema" in agentd.jsonc to the path of the file'
    },
    {
      command: "agentd schema --openapi > agentd.openapi.json",
      description: "Save the HTTP API's description, for programs that call the daemon"
    },
    {
      command: "agentd schema goal > plan.schema.json",
      description: "Save the schema of plan files, for planners and editors"
    }
  ])
)

const docs = Command.make(
  "docs",
  { page: maybeWord("page", "Name of the page to print; default: list the pages") },
  verb(() => import("../setup/Docs.ts"))
).pipe(
  Command.withDescription("List the documents that come with agentd, or print one"),
  Command.withExamples([
    { command: "agentd docs", description: "List the pages, each with what it is about" },
    { command: "agentd docs tutorial | less", description: "Read the tutorial" }
  ])
)

const init = Command.make(
  "init",
  {
    agent: Flag.Literals("agent", AGENTS).pipe(
      Flag.withDescription("Agent program to use; default: an installed one that is logged in"),
      Flag.optional
    ),
    role: Flag.Literals("role", ROLES).pipe(
      Flag.withDescription("Add an agent with this role; repeatable"),
      Flag.atLeast(0)
    ),
    yes
  },
  (input) =>
    verb(() => import("../setup/Init.ts"))({
      agent: Option.getOrUndefined(input.agent),
      roles: input.role,
      yes: input.yes
    })
).pipe(
  Command.withDescription("Write an agentd.jsonc for the installed agent programs; an existing file is not changed"),
  Command.withExamples([
    { command: "agentd init && agentd start", description: "Write a config, then start the daemon with it" },
    {
      command: "agentd init --yes --role builder --role reviewer",
      description: "Write a config with two agents, without questions"
    }
  ])
)

const demo = Command.make(
  "demo",
  { stop: off("stop", "Stop the demo, and remove all its files") },
  verb(() => import("../setup/Demo.ts"))
).pipe(
  Command.withDescription("Try agentd with scripted agents, in a separate daemon"),
  Command.withExamples([
    { command: "agentd demo", description: "Start the demo, and list commands to try" },
    { command: "agentd demo --stop", description: "Stop the demo, and remove everything that it made" }
  ])
)

const completions = Command.make(
  "completions",
  {
    shell: Argument.Literals("shell", ["bash", "zsh", "fish"]).pipe(
      Argument.withDescription("Shell that the script is for")
    )
  },
  ({ shell }) => verb(() => import("./Completions.ts"))({ shell, root: whole(), modes })
).pipe(
  Command.withDescription(
    "Print a shell script that completes verbs, flags, and the names of agents, goals and projects"
  ),
  Command.withExamples([
    {
      command: 'eval "$(agentd completions bash)"',
      description: "Turn completion on in this shell; to keep it, add the line to ~/.bashrc"
    }
  ])
)

const exitCodes = meanings.map(([code, meaning]) => `${String(code).padStart(5)}  ${meaning}`).join("\n")

/** The command `agentd`. Without a subcommand it opens the board. */
const agentd = Command.make(
  "agentd",
  {},
  loaded(() => import("./NoCommand.ts"))
).pipe(
  Command.withDescription(
    `Runs AI coding agents unattended, and keeps them under control.\n\n  Exit codes:\n${exitCodes}`
  ),
  Command.withSubcommands([
    {
      group: "The daemon",
      commands: [up, ...lives, trust, doctor, verify, repair, backup, restore, gc, erase, uninstall]
    },
    { group: "Agents", commands: AgentVerbs.daily },
    { group: "Projects", commands: [project] },
    { group: "Channels", commands: ChannelVerbs.daily },
    { group: "Goals", commands: GoalVerbs.daily },
    { group: "Schedules", commands: ScheduleVerbs.daily },
    { group: "Sessions", commands: SessionVerbs.daily },
    {
      group: "Setup",
      commands: [
        init,
        docs,
        demo,
        schema,
        service,
        SessionVerbs.hooks,
        SessionVerbs.hook,
        AgentVerbs.mcp,
        AgentVerbs.conformance,
        AgentVerbs.login,
        AgentVerbs.logout,
        alert,
        approvals,
        host,
        config,
        open,
        access,
        completions,
        // called by the completion scripts
        ...commandsOf(Declared.shells).map(Command.unlisted)
      ]
    }
  ]),
  Command.withGlobalFlags(globalFlags)
)

/** The command with all subcommands, from which documentation is generated. */
export const root = agentd

/** Verbs with a mode, such as `log --text`. Help does not list them as separate commands. */
export const modes = [...lives, ...AgentVerbs.daily].filter(({ name }) => Renamed.isMode(name))

/**
 * The command with all subcommands. It is a function, because one subcommand, `completions`, needs the command itself.
 */
const whole = (): Command.Command.Any => agentd

/** Prints a usage error as two lines or as JSON, without the whole help. */
const presenter = (args: ReadonlyArray<string>): CliOutput.Presenter => ({
  present: (event) =>
    event._tag === "InvalidInvocation"
      ? Console.error(told(usage(event, args, agentd), args.includes("--json")))
      : CliOutput.defaultPresenter.present(event)
})

/** Enables only --help and --version of the framework, but not its wizard and log level options. */
export const cliConfig = CliConfig.make({ builtIns: [GlobalFlag.Help, GlobalFlag.Version] })

const isUsageError = (error: unknown): error is CliError.CliError => CliError.isCliError(error)

/** The daemon in the arguments, which commands in hints must then name; null for the default one. */
const daemonOf = Effect.fnUntraced(function* (options: ReadonlyArray<string>) {
  const at = options.findLastIndex((option) => /^--state(=|$)/.test(option))
  const chosen =
    at < 0 ? undefined : options[at] === "--state" ? options[at + 1] : options[at]!.slice("--state=".length)
  return worldOf(yield* Paths.resolve(Option.fromUndefinedOr(chosen === "" ? undefined : chosen)))
})

const report = Effect.fnUntraced(function* (cause: Cause.Cause<unknown>, options: ReadonlyArray<string>) {
  const error = Cause.squash(cause)
  if (isUsageError(error)) {
    return error._tag === "ShowHelp" && error.errors.length === 0 ? ExitCode.ok : ExitCode.usage
  }
  return yield* reported(cause, yield* daemonOf(options), options.includes("--json"))
})

/** Inserts `--` after `run` if it is missing, so that flags of the program to run are not parsed as flags of agentd. */
const withProgram = (args: ReadonlyArray<string>): ReadonlyArray<string> => {
  const verb = args.findIndex((arg, index) => !arg.startsWith("-") && args[index - 1] !== "--state")
  const next = args[verb + 1]
  if (args[verb] !== "run" || next === undefined || /^(--|--help|-h)$/.test(next)) return args
  return [...args.slice(0, verb + 1), "--", ...args.slice(verb + 1)]
}

/** Runs the CLI on this machine, or with the daemon of a host. */
const runHere = (given: ReadonlyArray<string>) => {
  const { args: present, note } = Renamed.present(asFlags(given))
  const args = withProgram(Renamed.asOneWord(present))
  const options = args.includes("--") ? args.slice(0, args.indexOf("--")) : args
  return (note === undefined || options.includes("--json") ? Effect.void : Console.error(note)).pipe(
    Effect.andThen(Command.runWith(agentd, { version: VERSION })(args)),
    Effect.as<number>(ExitCode.ok),
    Effect.catchCauseIf(
      (cause) => !Cause.hasInterruptsOnly(cause),
      (cause) => report(cause, options)
    ),
    Effect.provideService(CliOutput.Presenter, presenter(options)),
    Effect.provideService(CliConfig.CliConfig, cliConfig),
    behind
  )
}

/** Runs the CLI and returns the exit code. The effect fails only if it is interrupted. */
export const run = (given: ReadonlyArray<string>) =>
  HostLine.mayBeFar(given)
    ? Effect.flatMap(
        Effect.promise(() => import("../hosts/OnHost.ts")),
        ({ run }) => run(given, runHere)
      )
    : runHere(given)
