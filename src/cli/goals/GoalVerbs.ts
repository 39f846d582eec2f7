/**
 * GoalVerbs: the commands for goals: submit one, look at its plan, approve or retry it, and merge its work.
 */
import { Argument, Command } from "effect/cli"
import { commandOf, commandsOf } from "../parse/DeclaredCommand.ts"
import * as Declared from "../parse/DeclaredVerbs.ts"
import { goal } from "./Goal.ts"
import { approve } from "./GoalLife.ts"
import { show } from "./GoalList.ts"
import { maybe, off, verb } from "../parse/Verb.ts"

const name = Argument.String("goal").pipe(Argument.withDescription("Its name in this project (g3), or project/g3"))

const watch = Command.make(
  "watch",
  { name },
  verb(() => import("./GoalWatch.ts"))
).pipe(
  Command.withDescription("Show a goal as it changes, until it ends; exit code 0: it is met"),
  Command.withExamples([
    { command: "agentd goal watch g3 && agentd goal merge g3", description: "Merge it when it is met" }
  ])
)

const merge = Command.make(
  "merge",
  {
    name,
    into: maybe("into", "BRANCH", "Default: the goal's target, else the branch that is checked out"),
    unreviewed: off("unreviewed", "Even if the goal is not met"),
    all: off("all", "Include commits that belong to no task of the goal")
  },
  verb(() => import("./GoalMerge.ts"))
).pipe(
  Command.withDescription("Merge finished work into a branch; conflicts are listed and left out"),
  Command.withExamples([
    { command: "agentd goal merge g3 --into main", description: "Exit code 1: something conflicts" }
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
