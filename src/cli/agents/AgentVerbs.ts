/**
 * AgentVerbs: the commands for agents: watch them, and send them messages; and `mcp`, through
 * which an agent talks to agentd itself.
 */
import { Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { AIMS } from "../sessions/Choose.ts"
import { commandOf, commandsOf } from "../parse/DeclaredCommand.ts"
import * as Declared from "../parse/DeclaredVerbs.ts"
import { LEVELS, levelOf, patternOf } from "../log/LogsWords.ts"
import { log } from "../log/LogView.ts"
import * as MomentText from "../render/MomentText.ts"
import { ps } from "../sessions/Ps.ts"
import { send } from "./Send.ts"
import { spanOf } from "../parse/SpanFlag.ts"
import { agent, labels, maybe as textFlag, messageOf, off, readFlag, verb } from "../parse/Verb.ts"

const readAs =
  <A>(of: (text: string) => A | undefined, form: string) =>
  (text: string): A => {
    const found = of(text)
    if (found === undefined) throw new Error(`Expected ${form}`)
    return found
  }
const maybe = <A>(flag: Flag.Flag<A>) => flag.pipe(Flag.optional, Flag.map(Option.getOrUndefined))

const attach = Command.make(
  "attach",
  {
    agent,
    turns: Flag.Int("turns").pipe(
      Flag.withMetavar("N"),
      Flag.withDescription("Begin with the last N turns"),
      Flag.mapTryCatch((count) => {
        if (count < 0 || count > 100) throw new Error("Expected a number from 0 to 100")
        return count
      }, messageOf),
      Flag.withDefault(3)
    ),
    stdin: off("stdin", "Read lines from standard input if it is not a terminal, as if typed")
  },
  verb(() => import("../tui/Attach.ts"))
).pipe(
  Command.withDescription("Follow what an agent says and does, answer what it asks, and talk to it"),
  Command.withExamples([
    { command: "agentd attach builder", description: "Type to send; /help names the rest; Ctrl-C or /quit leaves" },
    { command: "agentd attach builder > turns.txt", description: "Plain lines, no prompt" }
  ])
)

export const mcp = Command.make(
  "mcp",
  { assistant: off("assistant", "For a person's own assistant, wherever it is started") },
  verb(() => import("../mcp/Mcp.ts"))
).pipe(
  Command.withDescription(
    "Let an agent, or your own assistant, speak to agentd: an MCP server on standard input and output"
  ),
  Command.withExamples([
    {
      command: "claude mcp add agentd -- agentd mcp",
      description: "Your Claude Code sees your agents and speaks to them"
    },
    { command: "agentd mcp", description: "The daemon gives it to each run; it then speaks for that agent" }
  ])
)

export const conformance = Command.make(
  "conformance",
  {
    command: Argument.String("command").pipe(
      Argument.withDescription("The backend's program and its arguments"),
      Argument.atLeast(1)
    ),
    asks: textFlag("asks", "TEXT", "Prompt that makes it use a tool that needs approval"),
    long: textFlag("long", "TEXT", "Prompt that keeps it busy for some seconds"),
    timeout: readFlag("timeout", ["TIME", "Maximum time of a step: 90s, 10m. Default: 1m"], spanOf).pipe(
      Flag.withDefault(60_000)
    )
  },
  verb(() => import("./Conformance.ts"))
).pipe(
  Command.withDescription("Test whether a program meets the contract of an exec backend (docs/exec-backend.md)"),
  Command.withExamples([
    {
      command: "agentd conformance -- python3 my-backend.py",
      description: "Lists each check by its name; exit code 1 if one fails"
    }
  ])
)

const server = Argument.String("server").pipe(
  Argument.withDescription("Its name under mcp of a model backend in agentd.jsonc")
)

export const login = Command.make(
  "login",
  { server, browser: off("browser", "Log in with this machine's browser, even if a code would be enough") },
  verb(() => import("../mcp/Login.ts"))
).pipe(
  Command.withDescription("Log in at a remote MCP server of this project's model agents"),
  Command.withExamples([
    { command: "agentd login tracker", description: "Shows an address and a code, and waits until you typed it in" },
    { command: "agentd login tracker --browser", description: "Shows an address for the browser of this machine" }
  ])
)

export const wait = Command.make(
  "wait",
  {
    names: Argument.String("name").pipe(
      Argument.withDescription("Names or patterns, as agentd ps shows them: builder, 'shop/*'"),
      Argument.atLeast(0)
    ),
    labels: labels("All agents with this label, among those named; repeatable"),
    aim: Flag.Literals("for", AIMS).pipe(
      Flag.withDescription("The status to wait for"),
      Flag.withDefault("idle" as const)
    ),
    timeout: maybe(readFlag("timeout", ["TIME", "Maximum wait: 90s, 10m, 2 hours. Default: none"], spanOf))
  },
  verb(() => import("./Wait.ts"))
).pipe(
  Command.withDescription("Wait until agents, goals or sessions are idle, done, failed or need you; for scripts"),
  Command.withExamples([
    {
      command: "agentd wait builder --timeout 10m",
      description: "0: it is idle; 1: it failed, or the timeout expired"
    },
    { command: "agentd wait 'shop/*' --for needs-you", description: "Until all of them ask something" }
  ])
)

const point = readAs(MomentText.parse, MomentText.FORM)
const linesOf = (text: string): number | undefined =>
  /^\d{1,5}$/.test(text) && Number(text) <= 10_000 ? Number(text) : undefined

const logs = Command.make(
  "log --text",
  {
    names: Argument.String("agent").pipe(
      Argument.withDescription("Names or patterns: builder, shop/builder, 'shop/*'; none: all agents"),
      Argument.atLeast(0)
    ),
    follow: Flag.Boolean("follow").pipe(
      Flag.withAlias("f"),
      Flag.withDescription("Keep printing new lines"),
      Flag.withDefault(false)
    ),
    lines: maybe(
      readFlag(
        "lines",
        ["N", "Only the newest N lines (10 with -f, else all)"],
        readAs(linesOf, "a number from 0 to 10000")
      ).pipe(Flag.withAlias("n"))
    ),
    grep: maybe(
      readFlag(
        "grep",
        ["PATTERN", "Only lines that match; without capitals it ignores case"],
        readAs(patternOf, "a regular expression")
      ).pipe(Flag.withAlias("g"))
    ),
    since: maybe(readFlag("since", ["TIME", `Only since this time: ${MomentText.FORM}`], point)),
    until: maybe(readFlag("until", ["TIME", "Only up to this time"], point)),
    level: maybe(
      readFlag(
        "priority",
        [
          "LEVEL",
          "Only this level or worse: err (failures), warning (with stderr and questions), notice (with decisions), info"
        ],
        readAs(levelOf, `a level: ${LEVELS.join(", ")}`)
      ).pipe(Flag.withAlias("p"))
    ),
    only: maybe(
      Flag.Literals("only", ["output", "decisions"]).pipe(
        Flag.withDescription("Only output of the agents' programs, or only decisions about them"),
        Flag.map((only) => (only === "output" ? ("output" as const) : ("decision" as const)))
      )
    ),
    run: maybe(
      readFlag(
        "run",
        ["RUN", "Only this run, from its first line: last, -1 for the one before, its number, or its id"],
        (text) => text
      )
    ),
    style: Flag.Literals("output", ["short", "short-iso", "json", "cat"]).pipe(
      Flag.withAlias("o"),
      Flag.withDescription("Format of a line; cat: its text alone"),
      Flag.withDefault("short" as const)
    ),
    utc: off("utc", "Times in UTC"),
    ascii: off("ascii", "Use only ASCII characters as marks")
  },
  verb(() => import("../log/Logs.ts"))
).pipe(
  Command.unlisted,
  Command.withDescription("Print what agents said, and what was decided about them, line by line"),
  Command.withExamples([
    { command: "agentd log --text -f", description: "All agents, live" },
    { command: "agentd log --text builder --run last", description: "All of its newest run" },
    {
      command: "agentd log --text 'shop/*' -p err --since yesterday",
      description: "What failed; works without the daemon, too"
    },
    {
      command: "agentd log --text builder tester -g 'not found' --only output",
      description: "What their programs said"
    }
  ])
)

const history = Command.make(
  "log --messages",
  {
    names: Argument.String("name").pipe(
      Argument.withDescription("Agents, goals, channels ('#reviews') or projects, by name or pattern; none: all"),
      Argument.atLeast(0)
    ),
    lines: readFlag("lines", ["N", "The newest N (50)"], readAs(linesOf, "a number from 0 to 10000")).pipe(
      Flag.withAlias("n"),
      Flag.withDefault(50)
    ),
    since: maybe(readFlag("since", ["TIME", `Only since this time: ${MomentText.FORM}`], point)),
    grep: maybe(
      readFlag(
        "grep",
        ["PATTERN", "Only messages that match by text, outcome or sender"],
        readAs(patternOf, "a regular expression")
      ).pipe(Flag.withAlias("g"))
    ),
    csv: off("csv", "As comma-separated values")
  },
  verb(() => import("../log/History.ts"))
).pipe(
  Command.unlisted,
  Command.withDescription("List what people asked agents, goals and channels, by whom, and the outcome"),
  Command.withExamples([
    { command: "agentd log --messages builder", description: "The newest last" },
    { command: "agentd log --messages --since yesterday -g deploy --csv", description: "For a spreadsheet" }
  ])
)

const channelLog = Command.make(
  "log --channel",
  {
    name: Argument.String("channel").pipe(Argument.withDescription("Its name in this project, or project/channel")),
    lines: Flag.Int("lines").pipe(
      Flag.withAlias("n"),
      Flag.withMetavar("N"),
      Flag.withDescription("Only the newest N"),
      Flag.withDefault(50)
    )
  },
  verb(() => import("../channels/ChannelLog.ts"))
).pipe(
  Command.unlisted,
  Command.withDescription("Print every state change of a channel's seats, with the reason"),
  Command.withExamples([
    { command: "agentd log --channel reviews --json", description: "One state_transition a line, with all its fields" }
  ])
)

export const logout = Command.make(
  "logout",
  { server },
  verb(() => import("../mcp/Logout.ts"))
).pipe(
  Command.withDescription("Forget the login at a remote MCP server"),
  Command.withExamples([{ command: "agentd logout tracker", description: "Its tokens are deleted here" }])
)

export const daily = commandsOf(Declared.agents, [
  commandOf(ps, {
    program: ({ bell, labels, notify, watch }) =>
      watch
        ? () => import("../tui/BoardScreen.ts").then(({ run }) => ({ run: () => run({ bell, notify, labels }) }))
        : undefined
  }),
  commandOf(send, {
    program: (input) =>
      input.file.length === 0
        ? undefined
        : () => import("./SendFiles.ts").then(({ run }) => ({ run: () => run(input) }))
  }),
  wait,
  commandOf(log, { program: (input) => () => import("../log/Log.ts").then(({ run }) => ({ run: () => run(input) })) }),
  logs,
  history,
  channelLog,
  attach
])
