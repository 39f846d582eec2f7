/**
 * GoalVerbs: the part of the command line that is about goals: giving one, looking
 * at its plan, letting it go on, and taking its work.
 */
import { Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { maybe, off, verb } from "./Verb.ts"

const name = Argument.String("goal").pipe(Argument.withDescription("Its name in this project (g3), or project/g3"))
const reason = maybe("reason", "TEXT", "Why; it is kept in the log")
const life = () => import("./GoalLife.ts")

const ls = Command.make("ls", { all: off("all", "Those of all projects") }, (input) =>
  verb(() => import("./GoalShow.ts"))({ action: "ls", ...input })
).pipe(
  Command.withDescription("List the goals of this project, newest first"),
  Command.withExamples([{ command: "agentd goal ls --all", description: "What waits for a person stands out" }])
)

const show = Command.make("show", { name }, (input) =>
  verb(() => import("./GoalShow.ts"))({ action: "show", ...input })
).pipe(
  Command.withDescription("Draw a goal's plan: its tasks, what they wait for, who has them, what the review found"),
  Command.withExamples([
    { command: "agentd goal show g3", description: "Each task below the one that it waits for" },
    { command: "agentd goal show g3 --json", description: "All tasks, for scripts" }
  ])
)

const watch = Command.make(
  "watch",
  { name },
  verb(() => import("./GoalWatch.ts"))
).pipe(
  Command.withDescription("Show a goal as it changes, until it ends; exit code 0: it is met"),
  Command.withExamples([{ command: "agentd goal watch g3 && agentd goal merge g3", description: "Take what is done" }])
)

const approve = Command.make("approve", { name }, (input) => verb(life)({ action: "approve", ...input })).pipe(
  Command.withDescription("Let a plan be carried out"),
  Command.withExamples([{ command: "agentd goal approve g3", description: "After agentd goal show g3" }])
)

const reject = Command.make("reject", { name, reason }, (input) => verb(life)({ action: "reject", ...input })).pipe(
  Command.withDescription("Send a plan back to its planner"),
  Command.withExamples([{ command: 'agentd goal reject g3 --reason "no new dependencies"', description: "It is told" }])
)

const plan = Command.make(
  "plan",
  { name, file: Argument.String("file").pipe(Argument.withDescription("The plan, as JSON")) },
  (input) => verb(life)({ action: "plan", ...input })
).pipe(
  Command.withDescription("Give a plan to a goal that waits for one"),
  Command.withExamples([{ command: "agentd goal plan g3 plan.json", description: "After agentd goal reject g3" }])
)

const cancel = Command.make("cancel", { name, reason }, (input) => verb(life)({ action: "cancel", ...input })).pipe(
  Command.withDescription("Stop a goal for good; turns under way are ended, commits stay on their branches"),
  Command.withExamples([{ command: 'agentd goal cancel g3 --reason "done by hand"', description: "In any state" }])
)

const retry = Command.make(
  "retry",
  {
    name,
    task: Argument.String("task").pipe(
      Argument.withDescription("Only this task; default: all that failed"),
      Argument.optional,
      Argument.map(Option.getOrUndefined)
    )
  },
  (input) => verb(life)({ action: "retry", ...input })
).pipe(
  Command.withDescription("Let a blocked goal go on: what failed is tried again"),
  Command.withExamples([{ command: "agentd goal retry g3 parser", description: "One task, with a clean slate" }])
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
  Command.withSubcommands([ls, show, watch, approve, reject, plan, cancel, retry, merge, schema])
)

export const daily = [goal] as const
