/**
 * Cli: the complete command line: every verb with its flags, its arguments and an
 * example. The code of a verb is in its own file. That file is loaded only when the
 * verb is called, so that no verb waits for the code of the others.
 */
import { Cause, Console, Effect, Option } from "effect"
import { Argument, CliConfig, CliError, CliOutput, Command, Flag, GlobalFlag } from "effect/cli"
import { VERSION } from "../../api/rpc/Version.ts"
import * as AgentLife from "../agents/AgentLife.ts"
import * as AgentVerbs from "../agents/AgentVerbs.ts"
import * as ChannelVerbs from "../channels/ChannelVerbs.ts"
import { commandOf, commandsOf } from "./DeclaredCommand.ts"
import * as Declared from "./DeclaredVerbs.ts"
import { behind } from "../render/DoorConsole.ts"
import { ExitCode, meanings } from "./ExitCode.ts"
import { told } from "../render/Explanation.ts"
import * as GoalVerbs from "../goals/GoalVerbs.ts"
import * as Habits from "./Habits.ts"
import { AGENTS, ROLES } from "../setup/InitChoices.ts"
import { worldOf } from "../../config/Places.ts"
import * as Paths from "./Paths.ts"
import { project } from "../projects/ProjectVerbs.ts"
import * as Renamed from "./Renamed.ts"
import { reported } from "./Reported.ts"
import { service } from "../setup/ServiceVerbs.ts"
import * as ScheduleVerbs from "../agents/ScheduleVerbs.ts"
import * as SessionVerbs from "../sessions/SessionVerbs.ts"
import { globalFlags, maybeWord, off, verb, yes } from "./Verb.ts"

const up = Command.make(
  "up",
  {},
  verb(() => import("../daemon/Up.ts"))
).pipe(
  Command.withDescription("Run the daemon in the foreground, with the project of this folder"),
  Command.withExamples([
    { command: "agentd up", description: "It runs here; Ctrl-C stops it gracefully" },
    { command: "agentd --state /tmp/try up", description: "With a state directory of its own, to try things" }
  ])
)

/** `start`, `stop` and `restart`; without a name they are about the daemon. */
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
      "A project's name, or the hash of the text that was shown; none: the project of this folder"
    )
  },
  verb(() => import("../projects/Trust.ts"))
).pipe(
  Command.withDescription("Show what a changed agentd.jsonc would do, and put it into force"),
  Command.withExamples([
    {
      command: "agentd trust",
      description: "Shows the change, dangerous parts first, and the diff; then asks"
    },
    { command: "agentd trust --json", description: "The change with its hash, for scripts; nothing is put into force" }
  ])
)

const verify = Command.make(
  "verify",
  {},
  verb(() => import("../daemon/Verify.ts"))
).pipe(
  Command.withDescription("Re-read the whole log: hashes, order, invariants; works without the daemon too"),
  Command.withExamples([{ command: "agentd verify", description: "Exit code 4: there are problems" }])
)

const repair = Command.make(
  "repair",
  {
    conversation: maybeWord("conversation", "Full id of the one conversation to repair; none: all that are damaged"),
    dryRun: off("dry-run", "Say what would be lost, and change nothing"),
    yes
  },
  verb(() => import("../daemon/Repair.ts"))
).pipe(
  Command.withDescription("Repair a damaged log while no daemon runs: cut each stream after its last good rune"),
  Command.withExamples([
    { command: "agentd repair --dry-run", description: "What would be lost: runes, messages and turns" },
    { command: "agentd repair", description: "Asks first; the old store is kept in damaged/" }
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
  Command.withDescription("Copy the store, with the files that it needs, into one file; the daemon may run"),
  Command.withExamples([
    { command: "agentd backup ~/agentd.tar.zst", description: "A consistent copy; nothing waits for it" }
  ])
)

const restore = Command.make(
  "restore",
  { file: Argument.String("file").pipe(Argument.withDescription("File made by agentd backup")), yes },
  verb(() => import("../daemon/Restore.ts"))
).pipe(
  Command.withDescription("Restore a backup; the current store is moved aside. The daemon must be stopped"),
  Command.withExamples([
    { command: "agentd restore ~/agentd.tar.zst", description: "Reads and verifies all of it first, and asks" },
    { command: "agentd --state /tmp/try restore ~/agentd.tar.zst", description: "Into another state directory" }
  ])
)

const gc = Command.make(
  "gc",
  {
    dryRun: off("dry-run", "List what would be removed, and remove nothing"),
    days: Flag.Int("days").pipe(
      Flag.withMetavar("DAYS"),
      Flag.withDescription("Only what has not changed for this many days (14)"),
      Flag.withDefault(14)
    ),
    yes
  },
  verb(() => import("../setup/Gc.ts"))
).pipe(
  Command.withDescription("Remove what is no longer needed: work trees with merged work, old logs, leftovers"),
  Command.withExamples([
    { command: "agentd gc --dry-run", description: "Lists sizes, and what stays and why" },
    { command: "agentd gc --days 90", description: "Lists it, and asks" }
  ])
)

const uninstall = Command.make(
  "uninstall",
  { dryRun: off("dry-run", "List what would be removed, and remove nothing"), yes },
  verb(() => import("../setup/Uninstall.ts"))
).pipe(
  Command.withDescription("Stop the daemon and remove what it made; work trees that hold work are kept"),
  Command.withExamples([
    { command: "agentd uninstall --dry-run", description: "Lists what would be removed, and what stays" },
    { command: "agentd uninstall", description: "Shows it, and asks" }
  ])
)

const erase = Command.make(
  "erase",
  {
    rune: Argument.Int("rune").pipe(Argument.withDescription("Its number: eventId in agentd log --json")),
    also: off("also", "Erase also the runes of its conversation that repeat its texts"),
    yes
  },
  verb(() => import("../daemon/Erase.ts"))
).pipe(
  Command.withDescription("Erase the texts of one rune for good: from the log and its snapshots"),
  Command.withExamples([
    { command: "agentd erase 1207", description: "Says what would be erased, and asks; agentd verify still passes" },
    { command: "agentd erase 1207 --yes", description: "In a script: without --yes it exits 2" }
  ])
)

const doctor = Command.make(
  "doctor",
  {
    security: off("security", "Show what each agent could reach instead, without starting any")
  },
  verb(() => import("../setup/Doctor.ts"))
).pipe(
  Command.withDescription("Check everything that agentd needs, and say how to fix what is missing"),
  Command.withExamples([
    { command: "agentd doctor", description: "Exit code 4: something has to be done" },
    {
      command: "agentd doctor --security",
      description:
        "What holds each agent, what it reads, writes and connects to, which keys it has; 4: one would not run"
    }
  ])
)

const alert = Command.make("alert").pipe(
  Command.withDescription("Notices to a person: what was sent, the channels that send it, and a test"),
  Command.withExamples([{ command: "agentd alert channels", description: "Each channel, and whether it works" }]),
  Command.withSubcommands(commandsOf(Declared.alerts))
)

const config = Command.make("config").pipe(
  Command.withDescription("Configs of projects: what a change would do"),
  Command.withExamples([{ command: "agentd config diff", description: "It changes nothing" }]),
  Command.withSubcommands(commandsOf(Declared.configs))
)

const open = Command.make(
  "open",
  {
    view: off("view", "Allow the page only to read"),
    print: off("print", "Print the link alone, and open no browser"),
    ownPort: off("own-port", "A separate port, for a browser that cannot resolve names below localhost"),
    label: Flag.String("label").pipe(
      Flag.withDescription("The name by which the page is listed and logged"),
      Flag.withDefault("page")
    )
  },
  verb(() => import("../daemon/Open.ts"))
).pipe(
  Command.withDescription("Open the page in a browser: all that the board shows and does, and more"),
  Command.withExamples([
    { command: "agentd open", description: "A link that works once, within two minutes" },
    { command: "agentd open --view --label wall", description: "A page that can only read" }
  ])
)

const access = Command.make("access").pipe(
  Command.withDescription("Pages and programs with access over HTTP"),
  Command.withExamples([{ command: "agentd access ls", description: "Each with its rights, and since when" }]),
  Command.withSubcommands(commandsOf(Declared.access))
)

const schema = Command.make(
  "schema",
  {
    of: Argument.Literals("of", ["goal"]).pipe(
      Argument.withDescription("goal: print the schema of a plan file instead"),
      Argument.optional,
      Argument.map(Option.getOrUndefined)
    ),
    user: off("user", "Print the schema of the user's own config.jsonc instead"),
    openapi: off("openapi", "Print the daemon's HTTP API as OpenAPI 3.1 instead")
  },
  verb(() => import("../daemon/Schema.ts"))
).pipe(
  Command.withDescription("Print the JSON Schema of agentd.jsonc, for editors"),
  Command.withExamples([
    { command: "agentd schema > agentd.schema.json", description: 'Then name it as "$schema"' },
    { command: "agentd schema --openapi > agentd.openapi.json", description: "For programs that call the daemon" },
    { command: "agentd schema goal > plan.schema.json", description: "For planners, and editors of plans" }
  ])
)

const init = Command.make(
  "init",
  {
    agent: Flag.Literals("agent", AGENTS).pipe(
      Flag.withDescription("Which agent works here; default: one that is logged in"),
      Flag.optional
    ),
    role: Flag.Literals("role", ROLES).pipe(
      Flag.withDescription("Role of an agent to write; repeatable"),
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
  Command.withDescription("Write an agentd.jsonc for the installed agents; an existing one is left alone"),
  Command.withExamples([
    { command: "agentd init && agentd start", description: "Begin" },
    { command: "agentd init --yes --role builder --role reviewer", description: "Without questions" }
  ])
)

const demo = Command.make(
  "demo",
  { stop: off("stop", "Stop the demo, and remove all of it") },
  verb(() => import("../setup/Demo.ts"))
).pipe(
  Command.withDescription("Try agentd with scripted agents, in a separate daemon"),
  Command.withExamples([
    { command: "agentd demo", description: "Says which commands to try" },
    { command: "agentd demo --stop", description: "Leaves nothing behind" }
  ])
)

const completions = Command.make(
  "completions",
  {
    shell: Argument.Literals("shell", ["bash", "zsh", "fish"]).pipe(Argument.withDescription("The shell"))
  },
  ({ shell }) => verb(() => import("./Completions.ts"))({ shell, root: whole(), modes })
).pipe(
  Command.withDescription("Print a script that completes verbs, flags, and names as the daemon knows them"),
  Command.withExamples([
    { command: 'eval "$(agentd completions bash)"', description: "For this shell; put it into ~/.bashrc to keep it" }
  ])
)

const exitCodes = meanings.map(([code, meaning]) => `${String(code).padStart(5)}  ${meaning}`).join("\n")

/** Without a subcommand it opens the board. */
const agentd = Command.make(
  "agentd",
  {},
  verb(() => import("./Alone.ts"))
).pipe(
  Command.withDescription(`Keeps AI coding agents running unattended and honest.\n\n  Exit codes:\n${exitCodes}`),
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
      group: "Setting up",
      commands: [
        init,
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
        config,
        open,
        access,
        completions,
        // the completion scripts call it
        ...commandsOf(Declared.shells).map(Command.unlisted)
      ]
    }
  ]),
  Command.withGlobalFlags(globalFlags)
)

/** The complete command, from which documents are generated. */
export const root = agentd

/** Verbs with a mode (such as `log --text`), which help does not list as commands. */
export const modes = [...lives, ...AgentVerbs.daily].filter(({ name }) => Renamed.isMode(name))

/** The complete command; a function, because `completions` needs it and is itself a part of it. */
const whole = (): Command.Command.Any => agentd

type Wrong = Extract<Parameters<CliOutput.Presenter["present"]>[0], { readonly _tag: "InvalidInvocation" }>

/** An invalid invocation as an error: the remedy is the intended verb if it is known, else the usage. */
const usage = ({ commandPath, errors, helpDoc }: Wrong) => {
  const [first] = errors
  const habit =
    first?._tag === "UnknownSubcommand" && commandPath.length === 1 ? Habits.meant(first.subcommand) : undefined
  return {
    tag: first?._tag ?? "InvalidInvocation",
    code: "invalid" as const,
    // if the intended verb is known, a guess by spelling would mislead
    message: habit === undefined ? errors.map(({ message }) => message).join("\n") : first!.message.split("\n")[0]!,
    remedy: habit ?? `Usage: ${helpDoc.usage}. More: ${commandPath.join(" ")} --help`,
    exitCode: ExitCode.usage
  }
}

/** Prints an invalid invocation as two lines, or as JSON, instead of the whole help. */
const presenter = (json: boolean): CliOutput.Presenter => ({
  present: (event) =>
    event._tag === "InvalidInvocation"
      ? Console.error(told(usage(event), json))
      : CliOutput.defaultPresenter.present(event)
})

/** Only --help and --version of the framework: no wizard, no log level. */
export const cliConfig = CliConfig.make({ builtIns: [GlobalFlag.Help, GlobalFlag.Version] })

const isUsageError = (error: unknown): error is CliError.CliError => CliError.isCliError(error)

/** The state directory that hints must name, taken from the arguments; null: the default one. */
const stateOf = Effect.fnUntraced(function* (options: ReadonlyArray<string>) {
  const at = options.findLastIndex((option) => /^--state(=|$)/.test(option))
  const chosen =
    at < 0 ? undefined : options[at] === "--state" ? options[at + 1] : options[at]!.slice("--state=".length)
  return chosen === undefined || chosen === "" ? null : worldOf(yield* Paths.resolve(Option.some(chosen)))
})

const report = Effect.fnUntraced(function* (cause: Cause.Cause<unknown>, options: ReadonlyArray<string>) {
  const error = Cause.squash(cause)
  if (isUsageError(error)) {
    return error._tag === "ShowHelp" && error.errors.length === 0 ? ExitCode.ok : ExitCode.usage
  }
  return yield* reported(cause, yield* stateOf(options), options.includes("--json"))
})

/** Inserts `--` after `run` if it is missing, so that the program's flags are not read as ours. */
const withProgram = (args: ReadonlyArray<string>): ReadonlyArray<string> => {
  const verb = args.findIndex((arg, index) => !arg.startsWith("-") && args[index - 1] !== "--state")
  const next = args[verb + 1]
  if (args[verb] !== "run" || next === undefined || /^(--|--help|-h)$/.test(next)) return args
  return [...args.slice(0, verb + 1), "--", ...args.slice(verb + 1)]
}

/** Runs one command line, and returns its exit code. Only an interrupt fails. */
export const run = (given: ReadonlyArray<string>) => {
  const { args: present, note } = Renamed.present(Habits.asFlags(given))
  const args = withProgram(Renamed.asOneWord(present))
  const options = args.includes("--") ? args.slice(0, args.indexOf("--")) : args
  return (note === undefined || options.includes("--json") ? Effect.void : Console.error(note)).pipe(
    Effect.andThen(Command.runWith(agentd, { version: VERSION })(args)),
    Effect.as<number>(ExitCode.ok),
    Effect.catchCauseIf(
      (cause) => !Cause.hasInterruptsOnly(cause),
      (cause) => report(cause, options)
    ),
    Effect.provideService(CliOutput.Presenter, presenter(options.includes("--json"))),
    Effect.provideService(CliConfig.CliConfig, cliConfig),
    behind
  )
}
