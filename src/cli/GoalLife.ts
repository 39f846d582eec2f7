/** `agentd goal approve|reject|plan|cancel|retry GOAL`: what a person decides about a goal. */
import * as NodePath from "node:path"
import { declare, maybeWord, option, said, send, word } from "./DeclaredVerb.ts"

/** How a goal is named. */
export const name = word("Its name in this project (g3), or project/g3", { name: "goal" })
const reason = option("TEXT", "Why; it is kept in the log")

export const approve = declare({
  path: ["goal", "approve"],
  description: "Let a plan be carried out",
  examples: [
    { command: "agentd goal approve g3", description: "Shows the whole plan, and asks on a terminal" },
    {
      command: "agentd goal approve g3 HASH",
      description: "What was seen; a plan that is another one by now is refused"
    }
  ],
  args: { name, hash: maybeWord("The hash that was shown with the plan", "hash") },
  rpc: ({ hash, name }, caller) => send("GoalApprove", { name, caller, ...(hash === undefined ? {} : { hash }) }),
  view: said,
  quick: ({ hash }) => hash !== undefined
})

export const reject = declare({
  path: ["goal", "reject"],
  description: "Send a plan back to its planner",
  examples: [{ command: 'agentd goal reject g3 --reason "no new dependencies"', description: "It is told" }],
  args: { name, reason },
  rpc: ({ name, reason }, caller) => send("GoalReject", { name, caller, reason: reason ?? "" }),
  view: said,
  quick: true
})

export const plan = declare({
  path: ["goal", "plan"],
  description: "Give a plan to a goal that waits for one",
  examples: [{ command: "agentd goal plan g3 plan.json", description: "After agentd goal reject g3" }],
  args: { name, file: word("The plan, as JSON") },
  rpc: ({ file, name }, caller) => send("GoalPlan", { name, caller, path: NodePath.resolve(file) }),
  view: said,
  quick: true
})

export const cancel = declare({
  path: ["goal", "cancel"],
  description: "Stop a goal for good; turns under way are ended, commits stay on their branches",
  examples: [{ command: 'agentd goal cancel g3 --reason "done by hand"', description: "In any state" }],
  args: { name, reason },
  rpc: ({ name, reason }, caller) => send("GoalCancel", { name, caller, reason: reason ?? "" }),
  view: said,
  quick: true
})

export const retry = declare({
  path: ["goal", "retry"],
  description: "Let a blocked goal go on: what failed is tried again",
  examples: [{ command: "agentd goal retry g3 parser", description: "One task, with a clean slate" }],
  args: { name, task: maybeWord("Only this task; default: all that failed") },
  rpc: ({ name, task }, caller) => send("GoalRetry", { name, caller, task: task ?? null }),
  view: said,
  quick: true
})
