/**
 * SessionVerbs: the commands for coding sessions: start them under agentd, answer them, switch to them, and install the
 * hooks that report them.
 */
import { Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { approve } from "../agents/Answer.ts"
import { commandOf, commandsOf } from "../parse/DeclaredCommand.ts"
import * as Declared from "../parse/DeclaredVerbs.ts"
import { maybeWord, off, verb, yes } from "../parse/Verb.ts"

const plate = Argument.String("plate").pipe(
  Argument.withDescription("Id of the session's plate (or the beginning of that id), or the session's own id")
)

const run = Command.make(
  "run",
  {
    command: Argument.String("command").pipe(
      Argument.withDescription("Program to run, with its arguments"),
      Argument.atLeast(1)
    )
  },
  verb(() => import("../agents/Run.ts"))
).pipe(
  Command.withDescription("Run a program in this terminal, and show it on the board as a session"),
  Command.withExamples([
    {
      command: "agentd run -- claude --continue",
      description: "Run claude here; agentd then exits with the exit code of claude"
    }
  ])
)

const focus = Command.make(
  "focus",
  { plate },
  verb(() => import("./Focus.ts"))
).pipe(
  Command.withDescription("Switch to the tmux pane in which a session runs"),
  Command.withExamples([
    { command: "agentd focus 01k9", description: "Switch to the session whose plate's id begins with 01k9" }
  ])
)

const scope = {
  project: off("project", "Use this folder's settings.local.json, which is not meant to be committed"),
  user: off("user", "Use your own settings, for all sessions (the default without --project)")
}

const agent = Flag.String("agent").pipe(
  Flag.withMetavar("NAME"),
  Flag.withDescription("The coding CLI: claude (default), cline, codex, droid, gemini, kilo, opencode, qwen, or all"),
  Flag.optional,
  Flag.map(Option.getOrUndefined)
)

const install = Command.make(
  "install",
  {
    ...scope,
    agent,
    approvals: Flag.Boolean("approvals").pipe(
      Flag.withDescription(
        "Let the commands agentd approve and agentd deny answer permission requests; --no-approvals turns this off (default: no change)"
      ),
      Flag.optional,
      Flag.map(Option.getOrUndefined)
    ),
    http: off(
      "http",
      "Send events that need no decision to the daemon's port; while the daemon is down, other programs can use the port"
    ),
    yes
  },
  (input) => verb(() => import("../setup/Hooks.ts"))({ action: "install", ...input })
).pipe(
  Command.withDescription("Add agentd's hooks to the settings of a coding CLI; existing entries are kept"),
  Command.withExamples([
    { command: "agentd hooks install", description: "Show all your sessions on the board from now on" },
    {
      command: "agentd hooks install --approvals",
      description: "Let the commands agentd approve and agentd deny answer permission requests, too"
    }
  ])
)

const uninstall = Command.make("uninstall", { ...scope, agent }, (input) =>
  verb(() => import("../setup/Hooks.ts"))({
    action: "uninstall",
    approvals: undefined,
    http: false,
    yes: true,
    ...input
  })
).pipe(
  Command.withDescription("Remove agentd's hooks from the settings of a coding CLI, and nothing else"),
  Command.withExamples([
    { command: "agentd hooks uninstall --project", description: "Remove only the hooks of this folder" }
  ])
)

const status = Command.make("status", {}, () =>
  verb(() => import("../setup/Hooks.ts"))({
    action: "status",
    approvals: undefined,
    http: false,
    project: false,
    user: false,
    yes: true
  })
).pipe(
  Command.withDescription(
    "Show where hooks are installed, what each CLI can tell, and which sessions have sent events and when"
  ),
  Command.withExamples([
    { command: "agentd hooks status", description: "Check that hooks are installed, and that their events arrive" }
  ])
)

export const hooks = Command.make("hooks").pipe(
  Command.withDescription("Install, remove or check the hooks of coding CLIs, which show their sessions on the board"),
  Command.withSubcommands([install, uninstall, status])
)

/** Accepts any text as an event, because the exit code for a usage error would block the agent. */
export const hook = Command.make(
  "hook",
  {
    event: maybeWord(
      "event",
      "Name of the event: session-start, prompt-submit, pre-tool-use, post-tool-use, permission-request, permission-answered or stop"
    )
  },
  verb(() => import("./Hook.ts"))
).pipe(
  Command.withDescription("Report one event of a session to the daemon; for hooks of other programs"),
  Command.withExamples([
    {
      command: "agentd hook stop < event.json",
      description: "Report an event; exits with code 0 within a second, even without a daemon"
    }
  ])
)

/** The verb `approve`. Without a hash, it shows the call first. */
const approving = commandOf(approve, {
  program: ({ all, hash, ...input }) =>
    all
      ? () => import("../agents/ApproveAll.ts").then(({ run }) => ({ run: () => run(input) }))
      : input.call === undefined || hash !== undefined
        ? undefined
        : () => import("../agents/Approve.ts").then(({ run }) => ({ run: () => run(input) }))
})

export const daily = commandsOf(Declared.sessions, [run, approving, focus])
