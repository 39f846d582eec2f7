/**
 * AgentVerbs: the commands that show agents and send messages to them, and `mcp`, through which an agent itself uses
 * agentd.
 */
import { Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { AIMS } from "../sessions/RowFilter.ts"
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
      Flag.withDescription("Show the last N turns first"),
      Flag.mapTryCatch((count) => {
        if (count < 0 || count > 100) throw new Error("Expected a number from 0 to 100")
        return count
      }, messageOf),
      Flag.withDefault(3)
    ),
    stdin: off("stdin", "If standard input is not a terminal, read lines from it as if you typed them")
  },
  verb(() => import("../tui/Attach.ts"))
).pipe(
  Command.withDescription("Follow what an agent says and does, answer its questions, and send it messages"),
  Command.withExamples([
    {
      command: "agentd attach builder",
      description: "Follow builder; type a message to send it, /help for commands, Ctrl-C or /quit to leave"
    },
    {
      command: "agentd attach builder > turns.txt",
      description: "Write the agent's output to a file, as plain lines without a prompt"
    }
  ])
)

export const mcp = Command.make(
  "mcp",
  { assistant: off("assistant", "Serve your own assistant instead of an agent of agentd") },
  verb(() => import("../mcp/Mcp.ts"))
).pipe(
  Command.withDescription(
    "Run an MCP server on standard input and output, through which an agent or your own assistant uses agentd"
  ),
  Command.withExamples([
    {
      command: "claude mcp add agentd -- agentd mcp",
      description: "Let your own Claude Code see your agents and send them messages"
    },
    {
      command: "agentd mcp",
      description: "Run the server; the daemon gives this command to each run, where it acts for the run's agent"
    }
  ])
)

export const conformance = Command.make(
  "conformance",
  {
    command: Argument.String("command").pipe(
      Argument.withDescription("Command line of the agent to test"),
      Argument.atLeast(1)
    ),
    asks: textFlag("asks", "TEXT", "Prompt that makes the agent use a tool that needs approval"),
    long: textFlag("long", "TEXT", "Prompt that keeps the agent busy for some seconds"),
    timeout: readFlag(
      "timeout",
      ["TIME", "Maximum duration of one test step, such as 90s or 10m; default: 1m"],
      spanOf
    ).pipe(Flag.withDefault(60_000))
  },
  verb(() => import("./Conformance.ts"))
).pipe(
  Command.withDescription(
    "Check whether a program speaks the Agent Client Protocol as agentd requires (docs/own-agent.md)"
  ),
  Command.withExamples([
    {
      command: "agentd conformance -- python3 agent.py",
      description: "Run and list all checks; exit code 1 means that a check failed"
    }
  ])
)

const server = Argument.String("server").pipe(
  Argument.withDescription("Name of the MCP server, under mcp of a model backend in agentd.jsonc")
)

export const login = Command.make(
  "login",
  {
    server,
    browser: off("browser", "Log in with the browser of this machine, even if the server supports login by code")
  },
  verb(() => import("../mcp/Login.ts"))
).pipe(
  Command.withDescription("Log in to a remote MCP server that this project's model agents use"),
  Command.withExamples([
    {
      command: "agentd login tracker",
      description: "Show an address and a code, then wait until you have entered the code there"
    },
    { command: "agentd login tracker --browser", description: "Show an address to open in the browser of this machine" }
  ])
)

export const wait = Command.make(
  "wait",
  {
    names: Argument.String("name").pipe(
      Argument.withDescription("Names as in agentd ps, such as builder, or patterns such as 'shop/*'"),
      Argument.atLeast(0)
    ),
    labels: labels("Wait only for agents with this label; repeatable"),
    aim: Flag.Literals("for", AIMS).pipe(Flag.withDescription("Status to wait for"), Flag.withDefault("idle" as const)),
    timeout: maybe(
      readFlag("timeout", ["TIME", "Maximum wait, such as 90s, 10m or 2 hours; default: no limit"], spanOf)
    )
  },
  verb(() => import("./Wait.ts"))
).pipe(
  Command.withDescription(
    "Wait until agents, goals or sessions have a status, such as idle, done or failed; for scripts"
  ),
  Command.withExamples([
    {
      command: "agentd wait builder --timeout 10m",
      description: "Wait until builder is idle; exit code 1 means that it failed, or that 10 minutes passed"
    },
    {
      command: "agentd wait 'shop/*' --for needs-you",
      description: "Wait until all agents of the project shop need you"
    }
  ])
)

const point = readAs(MomentText.parse, MomentText.FORM)
const linesOf = (text: string): number | undefined =>
  /^\d{1,5}$/.test(text) && Number(text) <= 10_000 ? Number(text) : undefined

const logs = Command.make(
  "log --text",
  {
    names: Argument.String("agent").pipe(
      Argument.withDescription("Agents: builder, shop/builder, or a pattern such as 'shop/*'; default: all agents"),
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
        ["N", "Print only the newest N lines (default: 10 with -f, otherwise all)"],
        readAs(linesOf, "a number from 0 to 10000")
      ).pipe(Flag.withAlias("n"))
    ),
    grep: maybe(
      readFlag(
        "grep",
        ["PATTERN", "Print only lines that match this regular expression; without capital letters it ignores case"],
        readAs(patternOf, "a regular expression")
      ).pipe(Flag.withAlias("g"))
    ),
    since: maybe(readFlag("since", ["TIME", `Print only lines since this time: ${MomentText.FORM}`], point)),
    until: maybe(readFlag("until", ["TIME", "Print only lines up to this time"], point)),
    level: maybe(
      readFlag(
        "priority",
        [
          "LEVEL",
          "Print only this level or worse: err (failures), warning (also stderr, questions), notice (also decisions), info"
        ],
        readAs(levelOf, `a level: ${LEVELS.join(", ")}`)
      ).pipe(Flag.withAlias("p"))
    ),
    only: maybe(
      Flag.Literals("only", ["output", "decisions"]).pipe(
        Flag.withDescription("Print only output of the agents' programs, or only agentd's decisions about agents"),
        Flag.map((only) => (only === "output" ? ("output" as const) : ("decision" as const)))
      )
    ),
    run: maybe(
      readFlag(
        "run",
        ["RUN", "Print only one run, from its first line: last, -1 (the run before it), a run's number or id"],
        (text) => text
      )
    ),
    style: Flag.Literals("output", ["short", "short-iso", "json", "cat"]).pipe(
      Flag.withAlias("o"),
      Flag.withDescription("Format of each line; cat prints only the text"),
      Flag.withDefault("short" as const)
    ),
    utc: off("utc", "Print times in UTC"),
    ascii: off("ascii", "Use only ASCII characters for the marks in front of lines")
  },
  verb(() => import("../log/Logs.ts"))
).pipe(
  Command.unlisted,
  Command.withDescription("Print the output of agents, and agentd's decisions about them, line by line"),
  Command.withExamples([
    { command: "agentd log --text -f", description: "Follow the output of all agents" },
    {
      command: "agentd log --text builder --run last",
      description: "Print the newest run of builder, from its first line"
    },
    {
      command: "agentd log --text 'shop/*' -p err --since yesterday",
      description: "Print what failed in the project shop since yesterday; works without the daemon, too"
    },
    {
      command: "agentd log --text builder tester -g 'not found' --only output",
      description: "Print the output of two agents' programs that contains 'not found'"
    }
  ])
)

const history = Command.make(
  "log --messages",
  {
    names: Argument.String("name").pipe(
      Argument.withDescription("Names or patterns of agents, goals, channels ('#reviews') or projects; default: all"),
      Argument.atLeast(0)
    ),
    lines: readFlag(
      "lines",
      ["N", "Print only the newest N messages (default: 50)"],
      readAs(linesOf, "a number from 0 to 10000")
    ).pipe(Flag.withAlias("n"), Flag.withDefault(50)),
    since: maybe(readFlag("since", ["TIME", `Print only messages since this time: ${MomentText.FORM}`], point)),
    grep: maybe(
      readFlag(
        "grep",
        ["PATTERN", "Print only messages whose text, outcome or sender matches this regular expression"],
        readAs(patternOf, "a regular expression")
      ).pipe(Flag.withAlias("g"))
    ),
    csv: off("csv", "Print comma-separated values (CSV)")
  },
  verb(() => import("../log/History.ts"))
).pipe(
  Command.unlisted,
  Command.withDescription("List messages from people to agents, goals and channels, with sender and outcome"),
  Command.withExamples([
    { command: "agentd log --messages builder", description: "List the messages to builder, the newest last" },
    {
      command: "agentd log --messages --since yesterday -g deploy --csv",
      description: "Print matching messages as CSV, for a spreadsheet"
    }
  ])
)

const channelLog = Command.make(
  "log --channel",
  {
    name: Argument.String("channel").pipe(
      Argument.withDescription("The channel: its name in this project, or project/channel")
    ),
    lines: Flag.Int("lines").pipe(
      Flag.withAlias("n"),
      Flag.withMetavar("N"),
      Flag.withDescription("Print only the newest N state changes"),
      Flag.withDefault(50)
    )
  },
  verb(() => import("../channels/ChannelLog.ts"))
).pipe(
  Command.unlisted,
  Command.withDescription("Print every state change of a channel's seats, with its reason"),
  Command.withExamples([
    {
      command: "agentd log --channel reviews --json",
      description: "Print each state_transition as JSON with all its fields, one per line"
    }
  ])
)

export const logout = Command.make(
  "logout",
  { server },
  verb(() => import("../mcp/Logout.ts"))
).pipe(
  Command.withDescription("Delete the stored login of a remote MCP server"),
  Command.withExamples([
    {
      command: "agentd logout tracker",
      description: 'Delete the tokens stored on this machine for the MCP server "tracker"'
    }
  ])
)

export const daily = commandsOf(Declared.agents, [
  commandOf(ps, {
    allHosts: true,
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
