/** `agentd goal ls|show`: lists the goals, or shows the plan of one goal with its status. */
import { declare, map, off, read } from "../parse/DeclaredVerb.ts"
import { name } from "./GoalLife.ts"
import * as GoalView from "./GoalView.ts"

export const ls = declare({
  path: ["goal", "ls"],
  description: "List the goals of this project, newest first",
  examples: [
    {
      command: "agentd goal ls --all",
      description: "List the goals of all projects; goals that need you are highlighted"
    }
  ],
  args: { all: off("List the goals of all projects") },
  rpc: ({ all }, caller) => read("Goals", { all, caller }),
  view: (goals, { colour, columns, now }) => GoalView.list(goals, now, { colour, columns })
})

/**
 * The verb `goal show`, which shows the first page of tasks. With --json, `GoalShow` runs instead and reads all tasks.
 */
export const show = declare({
  path: ["goal", "show"],
  description: "Show a goal's plan: its tasks, their dependencies and agents, and the review's findings",
  examples: [
    { command: "agentd goal show g3", description: "Draw the tasks as a tree, each below the task that it depends on" },
    { command: "agentd goal show g3 --json", description: "Print all tasks as JSON, for scripts" }
  ],
  args: { name },
  rpc: ({ name }, caller) => map(read("Goal", { name, from: 0, caller }), (page) => page),
  view: (page, { colour, now }) => GoalView.show(page, now, colour),
  quick: (_, json) => !json
})
