/** `agentd goal approve|reject|plan|cancel|retry GOAL`: what a person decides about a goal. */
import * as NodePath from "node:path"
import { act, maybeWord, oneOf, option, send, word, words } from "../parse/DeclaredVerb.ts"
import { ExitCode } from "../parse/ExitCode.ts"
import { yes } from "../parse/Names.ts"

export const name = word("Its name in this project (g3), or project/g3", { name: "goal" })
const names = words("Names in this project (g3), project/g3, or patterns", "goal")
const none =
  (verb: string) =>
  ({ names }: { readonly names: ReadonlyArray<string> }) =>
    names.length > 0
      ? undefined
      : {
          message: "Missing required argument: goal",
          remedy: `Say which: agentd goal ${verb} GOAL. See them: agentd goal ls`,
          exitCode: ExitCode.usage
        }
const reason = option("TEXT", "Why; it is kept in the log")

export const approve = act({
  path: ["goal", "approve"],
  description: "Approve a plan: its tasks begin",
  examples: [
    { command: "agentd goal approve g3", description: "Shows the whole plan; on a terminal, asks for confirmation" },
    {
      command: "agentd goal approve g3 HASH",
      description: "Approve the plan that was shown; if it has changed, it is refused"
    }
  ],
  args: { name, hash: maybeWord("The hash that was shown with the plan", "hash") },
  rpc: ({ hash, name }, caller) => send("GoalApprove", { name, caller, ...(hash === undefined ? {} : { hash }) }),
  quick: ({ hash }) => hash !== undefined
})

export const reject = act({
  path: ["goal", "reject"],
  description: "Send a plan back to its planner",
  examples: [
    { command: 'agentd goal reject g3 --reason "no new dependencies"', description: "The planner gets the reason" }
  ],
  args: { names, reason },
  several: { kind: "goal" },
  wrong: none("reject"),
  rpc: ({ names, reason }, caller) => send("GoalReject", { name: oneOf(names), caller, reason: reason ?? "" })
})

export const plan = act({
  path: ["goal", "plan"],
  description: "Give a plan to a goal that waits for one",
  examples: [{ command: "agentd goal plan g3 plan.json", description: "After agentd goal reject g3" }],
  args: { name, file: word("The plan, as JSON") },
  rpc: ({ file, name }, caller) => send("GoalPlan", { name, caller, path: NodePath.resolve(file) })
})

export const cancel = act({
  path: ["goal", "cancel"],
  description: "Stop a goal for good; its turns end, its commits are kept by name",
  examples: [{ command: 'agentd goal cancel g3 --reason "done by hand"', description: "In any state" }],
  args: { names, reason, yes },
  several: { kind: "goal", ends: () => "cancels" },
  wrong: none("cancel"),
  rpc: ({ names, reason }, caller) => send("GoalCancel", { name: oneOf(names), caller, reason: reason ?? "" })
})

export const retry = act({
  path: ["goal", "retry"],
  description: "Resume a blocked goal: retry what failed",
  examples: [{ command: "agentd goal retry g3 parser", description: "One task, with a clean slate" }],
  args: { name, task: maybeWord("Only this task; default: all that failed") },
  several: { kind: "goal" },
  rpc: ({ name, task }, caller) => send("GoalRetry", { name, caller, task: task ?? null })
})
