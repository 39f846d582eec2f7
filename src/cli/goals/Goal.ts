/** `agentd goal TEXT`: submits a goal for the agents of this project. */
import * as NodePath from "node:path"
import { act, maybeText, off, option, send, type Wrong } from "../parse/DeclaredVerb.ts"
import { ExitCode } from "../parse/ExitCode.ts"
import * as GoalFlags from "./GoalFlags.ts"

/**
 * Matches a goal of a single word. It is rejected, because it is probably a mistyped subcommand, on which agents would
 * otherwise work.
 */
const VERB = /^[a-z-]{1,40}$/u

const wrongOf = (text: string | undefined, plan: string | undefined): Wrong | undefined => {
  if (text === undefined || text.trim() === "")
    return {
      message: "The goal is missing.",
      remedy: 'Describe the goal: agentd goal "…". To list existing goals: agentd goal ls',
      exitCode: ExitCode.usage
    }
  return plan === undefined && VERB.test(text)
    ? {
        message: `goal has no subcommand "${text}". The text of a goal has more than one word.`,
        remedy: "List the subcommands: agentd goal --help. Or describe the goal in a sentence.",
        exitCode: ExitCode.usage
      }
    : undefined
}

export const goal = act({
  path: ["goal"],
  description: "Submit a goal to the agents of this project, who plan it, carry it out and review it",
  examples: [
    {
      command: 'agentd goal "Port the parser to Rust" --check "npm test"',
      description: "Submit a goal; the planner makes the plan"
    },
    {
      command: 'agentd goal "Release 2.0" --plan plan.json --auto-start',
      description: "Submit a goal with your own plan, and start it at once"
    },
    {
      command: 'agentd goal "…" --auto-start --wait && make deploy',
      description: "Wait for the goal in a script, and deploy only if it is met"
    },
    { command: "agentd goal show g1", description: "Show the tasks of g1, and which agent has each" }
  ],
  args: {
    text: maybeText("The goal in a sentence; -: read it from standard input"),
    plan: option("FILE", "Plan file in JSON; default: the planner makes the plan"),
    ...GoalFlags.flags,
    wait: off("Wait until the goal ends; exit code 0: met; 1: stopped; 5: needs you")
  },
  wrong: ({ plan, text }) => wrongOf(text, plan),
  rpc: ({ plan, text = "", ...flags }, caller) =>
    send("GoalSubmit", {
      request: {
        goal: text,
        plan: plan === undefined ? null : NodePath.resolve(plan),
        ...GoalFlags.given(flags)
      },
      caller
    }),
  quick: ({ wait }) => !wait
})
