/** GoalVerbs: the commands for goals: submit a goal, show its plan, approve or retry it, and merge its work. */
import { Argument, Command } from "effect/cli"
import { commandOf, commandsOf } from "../parse/DeclaredCommand.ts"
import * as Declared from "../parse/DeclaredVerbs.ts"
import { goal } from "./Goal.ts"
import { approve } from "./GoalLife.ts"
import { show } from "./GoalList.ts"
import { maybe, off, verb } from "../parse/Verb.ts"

const name = Argument.String("goal").pipe(
  Argument.withDescription("The goal: its name in this project (g3), or project/g3")
)

const watch = Command.make(
  "watch",
  { name },
  verb(() => import("./GoalWatch.ts"))
).pipe(
  Command.withDescription("Show a goal as it changes, until it ends; exit code 0 means that the goal is met"),
  Command.withExamples([
    {
      command: "agentd goal watch g3 && agentd goal merge g3",
      description: "Wait until the goal is met, then merge its work"
    }
  ])
)

const merge = Command.make(
  "merge",
  {
    name,
    into: maybe("into", "BRANCH", "Branch to merge into; default: the goal's target, otherwise the checked-out branch"),
    unreviewed: off("unreviewed", "Merge even if the goal is not met"),
    all: off("all", "Also merge commits that belong to no task of the goal")
  },
  verb(() => import("./GoalMerge.ts"))
).pipe(
  Command.withDescription(
    "Merge a goal's finished work into a branch; branches with conflicts are listed and not merged"
  ),
  Command.withExamples([
    {
      command: "agentd goal merge g3 --into main",
      description: "Merge the work into main; exit code 1 means that a branch has conflicts"
    }
  ])
)

export const daily = [
  commandOf(goal, {
    program: (input) =>
      input.wait ? () => import("./GoalWait.ts").then(({ run }) => ({ run: () => run(input) })) : undefined
  }).pipe(
    Command.withSubcommands(
      commandsOf(Declared.goals, [
        commandOf(show, {
          program:
            ({ name }) =>
            () =>
              import("./GoalShow.ts").then(({ run }) => ({ run: () => run({ name }) }))
        }),
        commandOf(approve, {
          program: ({ hash, name }) =>
            hash === undefined
              ? () => import("./GoalApprove.ts").then(({ run }) => ({ run: () => run(name) }))
              : undefined
        }),
        watch,
        merge
      ])
    )
  )
] as const
