/** ApprovalVerbs: the commands for the rules that allow calls, ask about them, or deny them. */
import { Argument, Command } from "effect/cli"
import { maybe, verb, yes } from "../parse/Verb.ts"

const test = Command.make(
  "test",
  {
    command: Argument.String("command").pipe(Argument.withDescription("A command as for a shell, in quotes")),
    agent: maybe("agent", "NAME", "Use the rules and the mode of this agent; default: those of all agents, mode auto")
  },
  verb(() => import("./Test.ts"))
).pipe(
  Command.withDescription("Say whether a command would run, wait for you or be denied, and which rule says so"),
  Command.withExamples([
    {
      command: 'agentd approvals test "npm test 2>&1 | tail -5"',
      description: "Try a command with the rules of this folder's project; no daemon is needed, and nothing runs"
    },
    {
      command: 'agentd approvals test --agent builder --json "git push"',
      description: "Print the verdict and the rule with its file and line, for scripts"
    }
  ])
)

const ls = Command.make(
  "ls",
  {},
  verb(() => import("./List.ts"))
).pipe(
  Command.withDescription("List all rules, when a call last met each one, and the calls that no rule sees"),
  Command.withExamples([
    { command: "agentd approvals ls", description: "List the rules of this folder's project and your own rules" }
  ])
)

const rm = Command.make(
  "rm",
  {
    rule: Argument.String("rule").pipe(
      Argument.withDescription(
        'The rule\'s words or its place, as in agentd approvals ls: "npm test **", agentd.jsonc:41'
      )
    ),
    yes
  },
  verb(() => import("./Remove.ts"))
).pipe(
  Command.withDescription("Remove a rule from its file, after showing the change; comments in the file stay"),
  Command.withExamples([
    { command: 'agentd approvals rm "npm test **"', description: "Show the change of the file, then ask" },
    { command: "agentd approvals rm agentd.jsonc:41 --yes", description: "Remove the rule that begins on line 41" }
  ])
)

export const approvals = Command.make("approvals").pipe(
  Command.withDescription("Rules for calls: try a command, list the rules, remove one"),
  Command.withExamples([
    { command: 'agentd approvals test "git push"', description: "Say what would happen with a command, and why" }
  ]),
  Command.withSubcommands([test, ls, rm])
)
