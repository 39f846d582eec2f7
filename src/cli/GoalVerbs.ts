/**
 * GoalVerbs: the part of the command line that is about goals: giving one, looking
 * at its plan, letting it go on, and taking its work.
 */
import { Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { commandOf } from "./DeclaredCommand.ts"
import { approve, cancel, plan, reject, retry } from "./GoalLife.ts"
import { ls, show } from "./GoalList.ts"
import { maybe, off, verb } from "./Verb.ts"

const name = Argument.String("goal").pipe(Argument.withDescription("Its name in this project (g3), or project/g3"))

const watch = Command.make(
  "watch",
  { name },
  verb(() => import("./GoalWatch.ts"))
).pipe(
  Command.withDescription("Show a goal as it changes, until it ends; exit code 0: it is met"),
  Command.withExamples([{ command: "agentd goal watch g3 && agentd goal merge g3", description: "Take what is done" }])
)

const merge = Command.make(
  "merge",
  {
    name,
    into: maybe("into", "BRANCH", "Default: the goal's target, else the branch that is checked out"),
    unreviewed: off("unreviewed", "Even if the goal is not met"),
    all: off("all", "With what its branches hold of no task of the goal")
  },
  verb(() => import("./GoalMerge.ts"))
).pipe(
  Command.withDescription("Merge done work into a branch; what conflicts is named and left alone"),
  Command.withExamples([
    { command: "agentd goal merge g3 --into main", description: "Exit code 1: something conflicts" }
  ])
)

const schema = Command.make("schema", {}, () => verb(() => import("./GoalShow.ts"))({ action: "schema" })).pipe(
  Command.withDescription("Print the JSON Schema of a plan's file"),
  Command.withExamples([{ command: "agentd goal schema > plan.schema.json", description: "For editors and planners" }])
)

const goal = Command.make(
  "goal",
  {
    text: Argument.String("text").pipe(
      Argument.withDescription("What is to be achieved; - reads standard input"),
      Argument.optional,
      Argument.map(Option.getOrUndefined)
    ),
    plan: maybe("plan", "FILE", "Its plan, as JSON; default: the planner makes one"),
    planner: maybe("planner", "AGENT", "Who makes the plan; default: goals.planner"),
    critic: maybe("critic", "AGENT", "Who reviews the result; default: goals.critic"),
    checks: Flag.String("check").pipe(
      Flag.withMetavar("COMMAND"),
      Flag.withDescription("Must succeed before the critic looks; may be given more than once; default: goals.checks"),
      Flag.atLeast(0)
    ),
    autoStart: off("auto-start", "Carry the plan out without asking"),
    rounds: Flag.Int("rounds").pipe(
      Flag.withMetavar("N"),
      Flag.withDescription("Reviews that may not pass before a person is asked"),
      Flag.optional,
      Flag.map(Option.getOrUndefined)
    ),
    target: maybe("target", "BRANCH", "What the work is to be merged into")
  },
  verb(() => import("./Goal.ts"))
).pipe(
  Command.withDescription("Give the agents of this project a goal: it is planned, worked off, and reviewed"),
  Command.withExamples([
    { command: 'agentd goal "Port the parser to Rust" --check "npm test"', description: "The planner makes a plan" },
    { command: 'agentd goal "Release 2.0" --plan plan.json --auto-start', description: "A plan of your own" },
    { command: "agentd goal show g1", description: "Its tasks, and who has them" }
  ]),
  Command.withSubcommands([
    commandOf(ls),
    commandOf(
      show,
      ({ name }) =>
        () =>
          import("./GoalShow.ts").then(({ run }) => ({ run: () => run({ action: "show", name }) }))
    ),
    watch,
    commandOf(approve),
    commandOf(reject),
    commandOf(plan),
    commandOf(cancel),
    commandOf(retry),
    merge,
    schema
  ])
)

export const daily = [goal] as const
