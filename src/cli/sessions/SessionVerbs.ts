/**
 * SessionVerbs: the commands for coding sessions: wrap them, answer them, switch to them,
 * and install the hooks that report them.
 */
import { Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { approve } from "../agents/Answer.ts"
import { commandOf, commandsOf } from "../parse/DeclaredCommand.ts"
import * as Declared from "../parse/DeclaredVerbs.ts"
import { maybeWord, off, verb } from "../parse/Verb.ts"

const plate = Argument.String("plate").pipe(
  Argument.withDescription("Its id or the beginning of it, or the session's own id")
)

const run = Command.make(
  "run",
  {
    command: Argument.String("command").pipe(
      Argument.withDescription("The program and its arguments"),
      Argument.atLeast(1)
    )
  },
  verb(() => import("../agents/Run.ts"))
).pipe(
  Command.withDescription("Run a program in this terminal, and show it on the board"),
  Command.withExamples([
    { command: "agentd run -- claude --continue", description: "agentd exits with the exit code of the program" }
  ])
)

const focus = Command.make(
  "focus",
  { plate },
  verb(() => import("./Focus.ts"))
).pipe(
  Command.withDescription("Jump to the tmux pane that a session runs in"),
  Command.withExamples([{ command: "agentd focus 01k9", description: "The beginning of a plate's id is enough" }])
)

const scope = {
  project: off("project", "Use the settings.local.json of this folder, which is not committed"),
  user: off("user", "Use the user's own settings, for all sessions (unless --project is given)")
}

const install = Command.make(
  "install",
  {
    ...scope,
    approvals: Flag.Boolean("approvals").pipe(
      Flag.withDescription(
        "Let agentd approve and deny answer permission requests, too (--no-approvals: off; neither: no change)"
      ),
      Flag.optional,
      Flag.map(Option.getOrUndefined)
    ),
    http: off(
      "http",
      "Send the hooks that decide nothing to the daemon's port, which any program may take while it is down"
    )
  },
  (input) => verb(() => import("../setup/Hooks.ts"))({ action: "install", ...input })
).pipe(
  Command.withDescription("Add agentd's hooks to Claude Code's settings; what is there stays"),
  Command.withExamples([
    { command: "agentd hooks install", description: "Every session of yours appears on the board from now on" },
    {
      command: "agentd hooks install --approvals",
      description: "Permission requests can also be answered from elsewhere"
    }
  ])
)

const uninstall = Command.make("uninstall", scope, (input) =>
  verb(() => import("../setup/Hooks.ts"))({ action: "uninstall", approvals: undefined, http: false, ...input })
).pipe(
  Command.withDescription("Remove agentd's hooks from the settings, and nothing else"),
  Command.withExamples([{ command: "agentd hooks uninstall --project", description: "Only those of this folder" }])
)

const status = Command.make("status", {}, () =>
  verb(() => import("../setup/Hooks.ts"))({
    action: "status",
    approvals: undefined,
    http: false,
    project: false,
    user: false
  })
).pipe(
  Command.withDescription("Show where hooks are installed, and which sessions have reported and when"),
  Command.withExamples([
    { command: "agentd hooks status", description: "Installed hooks do not prove that events arrive" }
  ])
)

export const hooks = Command.make("hooks").pipe(
  Command.withDescription("Claude Code's hooks, by which its sessions appear on the board"),
  Command.withSubcommands([install, uninstall, status])
)

/** Accepts any text as an event: a parse error would have the exit code with which a hook blocks an agent. */
export const hook = Command.make(
  "hook",
  {
    event: maybeWord("event", "session-start, prompt-submit, pre-tool-use, post-tool-use or stop")
  },
  verb(() => import("./Hook.ts"))
).pipe(
  Command.withDescription("Report one event of a session to the daemon: for the hooks of other programs"),
  Command.withExamples([
    { command: "agentd hook stop < event.json", description: "Always exits 0, within a second, daemon or not" }
  ])
)

/** Without a hash, the call is shown first. */
const approving = commandOf(approve, {
  program: ({ call, hash }) =>
    call === undefined || hash !== undefined
      ? undefined
      : () => import("../agents/Approve.ts").then(({ run }) => ({ run: () => run({ call }) }))
})

export const daily = commandsOf(Declared.sessions, [run, approving, focus])
