/**
 * AgentVerbs: the part of the command line that is about agents: what they do, and
 * what a person says to them; and `mcp`, by which an agent speaks itself.
 */
import { Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { FORM, parse } from "./Moment.ts"
import { agent, maybe, off, verb } from "./Verb.ts"

const ps = Command.make(
  "ps",
  {
    watch: Flag.Boolean("watch").pipe(
      Flag.withAlias("w"),
      Flag.withDescription("Like agentd watch"),
      Flag.withDefault(false)
    )
  },
  verb(() => import("./Ps.ts"))
).pipe(
  Command.withDescription("List the coding sessions and the agents, and what each waits for"),
  Command.withExamples([
    { command: "agentd ps", description: "ERRORS 2/5 · 7/20: in a row, and in all, of the limits" },
    { command: "agentd ps -w", description: "Stay, and show what changes" }
  ])
)

const log = Command.make(
  "log",
  {
    follow: Flag.Boolean("follow").pipe(
      Flag.withAlias("f"),
      Flag.withDescription("Go on with what comes"),
      Flag.withDefault(false)
    ),
    stream: maybe("stream", "STREAM", "Only this stream: a conversation's id, a plate's, or daemon"),
    of: Argument.String("agent").pipe(
      Argument.withDescription("Only what this agent's machines did: runs, turns, tool calls, inbox"),
      Argument.optional,
      Argument.map(Option.getOrUndefined)
    ),
    agent: maybe("agent", "AGENT", "The same"),
    since: Flag.String("since").pipe(
      Flag.withMetavar("TIME"),
      Flag.withDescription(`Only since then: ${FORM}`),
      Flag.mapTryCatch(
        (text) => {
          const moment = parse(text)
          if (moment === undefined) throw new Error(`Expected ${FORM}`)
          return moment
        },
        (error) => (error instanceof Error ? error.message : String(error))
      ),
      Flag.optional,
      Flag.map(Option.getOrUndefined)
    ),
    kinds: Flag.String("kind").pipe(
      Flag.withMetavar("KIND"),
      Flag.withDescription("Only runes of this kind, such as worker.moved; may be given more than once"),
      Flag.atLeast(0)
    ),
    lines: Flag.Int("lines").pipe(
      Flag.withAlias("n"),
      Flag.withMetavar("N"),
      Flag.withDescription("Only the newest N of what is there (50 unless --since says otherwise)"),
      Flag.mapTryCatch(
        (count) => {
          if (count < 0 || count > LINES) throw new Error(`Expected a number from 0 to ${LINES}`)
          return count
        },
        (error) => (error instanceof Error ? error.message : String(error))
      ),
      Flag.optional,
      Flag.map(Option.getOrUndefined)
    )
  },
  ({ agent, of, ...input }) => verb(() => import("./Log.ts"))({ ...input, agent: agent ?? of })
).pipe(
  Command.withDescription("Print the log of everything that was decided, one rune a line"),
  Command.withExamples([
    { command: "agentd log -f builder", description: "Watch one agent" },
    { command: "agentd log --since 10m --kind worker.moved --json", description: "For scripts, one JSON value a line" }
  ])
)

/** As many as the daemon gives. */
const LINES = 10_000

const why = Command.make(
  "why",
  { agent },
  verb(() => import("./Why.ts"))
).pipe(
  Command.withDescription("Say in plain words what led an agent to where it stands"),
  Command.withExamples([{ command: "agentd why builder", description: "Why did it stop?" }])
)

const send = Command.make(
  "send",
  {
    agent,
    text: Argument.String("text").pipe(
      Argument.withDescription("The message; - or nothing: what comes on standard input"),
      Argument.optional,
      Argument.map(Option.getOrUndefined)
    ),
    urgent: off("urgent", "End the run that is under way; the next one carries the message"),
    steer: off("steer", "End the turn that is under way at a safe boundary; the message is the next turn")
  },
  verb(() => import("./Send.ts"))
).pipe(
  Command.withDescription("Put a message into an agent's inbox; its next turn or run carries it"),
  Command.withExamples([
    {
      command: 'agentd send builder "Fix the failing test"',
      description: "It answers when the message is safe on disk"
    },
    {
      command: 'agentd send builder --steer "Not that file"',
      description: "While it works: a running tool may finish"
    },
    { command: "git diff | agentd send web/reviewer", description: "From a pipe" },
    { command: "agentd send builder -- --verbose breaks it", description: "A text that begins with a dash" }
  ])
)

const interrupt = Command.make(
  "interrupt",
  { agent },
  verb(() => import("./Interrupt.ts"))
).pipe(
  Command.withDescription("End an agent's turn, or its run where there are no turns; counts no error"),
  Command.withExamples([{ command: "agentd interrupt builder", description: "Let it take up its inbox anew" }])
)

const attach = Command.make(
  "attach",
  {
    agent,
    turns: Flag.Int("turns").pipe(
      Flag.withMetavar("N"),
      Flag.withDescription("Begin with the last N turns"),
      Flag.mapTryCatch(
        (count) => {
          if (count < 0 || count > 100) throw new Error("Expected a number from 0 to 100")
          return count
        },
        (error) => (error instanceof Error ? error.message : String(error))
      ),
      Flag.withDefault(3)
    ),
    stdin: off("stdin", "Take lines of standard input, when it is no terminal, as what is typed")
  },
  verb(() => import("./Attach.ts"))
).pipe(
  Command.withDescription("Follow what an agent says and does, answer what it asks, and talk to it"),
  Command.withExamples([
    { command: "agentd attach builder", description: "Type to send; /help names the rest; Ctrl-C or /quit leaves" },
    { command: "agentd attach builder > turns.txt", description: "Plain lines, no prompt" }
  ])
)

const spawn = Command.make(
  "spawn",
  {
    parent: Argument.String("parent").pipe(Argument.withDescription("The running agent that it is a sub-agent of")),
    name: Argument.String("name").pipe(Argument.withDescription("What it is called in this project")),
    task: Argument.String("task").pipe(Argument.withDescription("Its first message")),
    role: maybe("role", "TEXT", "What it is, in a few words; default: as its parent"),
    instructions: maybe("instructions", "TEXT", "What goes into each of its prompts; default: as its parent")
  },
  verb(() => import("./Spawn.ts"))
).pipe(
  Command.withDescription("Give a running agent a sub-agent with a task; it ends with its parent"),
  Command.withExamples([
    { command: 'agentd spawn builder tester "Run the tests and report"', description: "Else it is as its parent" }
  ])
)

export const mcp = Command.make(
  "mcp",
  {},
  verb(() => import("./Mcp.ts"))
).pipe(
  Command.withDescription("Let an agent speak to agentd: an MCP server on standard input and output"),
  Command.withExamples([
    { command: "agentd mcp", description: "The daemon gives it to each run; by hand it says so and ends" }
  ])
)

export const daily = [ps, attach, why, send, interrupt, spawn, log] as const
