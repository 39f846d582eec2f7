/** `agentd goal ls|show`: lists the goals, and shows the status of one plan. */
import { declare, map, off, read } from "../parse/DeclaredVerb.ts"
import { name } from "./GoalLife.ts"
import * as GoalView from "./GoalView.ts"

export const ls = declare({
  path: ["goal", "ls"],
  description: "List the goals of this project, newest first",
  examples: [{ command: "agentd goal ls --all", description: "Goals that wait for a person are highlighted" }],
  args: { all: off("Those of all projects") },
  rpc: ({ all }, caller) => read("Goals", { all, caller }),
  view: (goals, { colour, columns, now }) => GoalView.list(goals, now, { colour, columns })
})

/** A person sees the first page of the tasks; `GoalShow` reads all of them for a script. */
export const show = declare({
  path: ["goal", "show"],
  description: "Draw a goal's plan: its tasks, what they wait for, who has them, what the review found",
  examples: [
    { command: "agentd goal show g3", description: "Each task below the one that it waits for" },
    { command: "agentd goal show g3 --json", description: "All tasks, for scripts" }
  ],
  args: { name },
  rpc: ({ name }, caller) => map(read("Goal", { name, from: 0, caller }), (page) => page),
  view: (page, { colour, now }) => GoalView.show(page, now, colour),
  quick: (_, json) => !json
})
