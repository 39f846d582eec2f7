/** `agentd goal approve|reject|plan|cancel|retry GOAL`: the user's decisions about a goal. */
import * as NodePath from "node:path"
import { act, maybeWord, oneOf, option, send, word, words } from "../parse/DeclaredVerb.ts"
import { ExitCode } from "../parse/ExitCode.ts"
import { yes } from "../parse/Names.ts"

export const name = word("The goal: its name in this project (g3), or project/g3", { name: "goal" })
const names = words("Goals: a name in this project (g3), project/g3, or a pattern", "goal")
const none =
  (verb: string) =>
  ({ names }: { readonly names: ReadonlyArray<string> }) =>
    names.length > 0
      ? undefined
      : {
          message: "Missing required argument: goal",
          remedy: `Specify the goal: agentd goal ${verb} GOAL. List all goals: agentd goal ls`,
          exitCode: ExitCode.usage
        }
const reason = option("TEXT", "Reason for the decision, which is written to the log")

export const approve = act({
  path: ["goal", "approve"],
  description: "Approve a goal's plan, so that its tasks begin",
  examples: [
    { command: "agentd goal approve g3", description: "Show the whole plan; on a terminal, ask whether to approve it" },
    {
      command: "agentd goal approve g3 HASH",
      description: "Approve exactly the plan that was shown; if the plan has changed, the approval is rejected"
    }
  ],
  args: { name, hash: maybeWord("Hash of the plan, as agentd goal approve showed it", "hash") },
  rpc: ({ hash, name }, caller) => send("GoalApprove", { name, caller, ...(hash === undefined ? {} : { hash }) }),
  quick: ({ hash }) => hash !== undefined
})

export const reject = act({
  path: ["goal", "reject"],
  description: "Reject a goal's plan, and ask the planner for another one",
  examples: [
    {
      command: 'agentd goal reject g3 --reason "no new dependencies"',
      description: "Reject the plan with a reason, which the planner sees"
    }
  ],
  args: { names, reason },
  several: { kind: "goal" },
  wrong: none("reject"),
  rpc: ({ names, reason }, caller) => send("GoalReject", { name: oneOf(names), caller, reason: reason ?? "" })
})

export const plan = act({
  path: ["goal", "plan"],
  description: "Add your own plan to a goal that waits for a plan",
  examples: [
    {
      command: "agentd goal plan g3 plan.json",
      description: "Replace the plan with your own, for example after agentd goal reject g3"
    }
  ],
  args: { name, file: word("Plan file in JSON") },
  rpc: ({ file, name }, caller) => send("GoalPlan", { name, caller, path: NodePath.resolve(file) })
})

export const cancel = act({
  path: ["goal", "cancel"],
  description: "Cancel a goal; its turns end, and named references keep its commits",
  examples: [
    {
      command: 'agentd goal cancel g3 --reason "done by hand"',
      description: "Stop the goal g3 with a reason, whatever its status is"
    }
  ],
  args: { names, reason, yes },
  several: { kind: "goal", ends: () => "cancels" },
  wrong: none("cancel"),
  rpc: ({ names, reason }, caller) => send("GoalCancel", { name: oneOf(names), caller, reason: reason ?? "" })
})

export const retry = act({
  path: ["goal", "retry"],
  description: "Resume a blocked goal, and retry its failed tasks",
  examples: [
    { command: "agentd goal retry g3 parser", description: "Retry only the task parser, with fresh error counters" }
  ],
  args: { name, task: maybeWord("Retry only this task; default: all failed tasks") },
  several: { kind: "goal" },
  rpc: ({ name, task }, caller) => send("GoalRetry", { name, caller, task: task ?? null })
})
