/** `agentd goal TEXT`: gives the agents of this project a goal. */
import * as NodePath from "node:path"
import { act, maybeText, off, option, send, type Wrong } from "../parse/DeclaredVerb.ts"
import { ExitCode } from "../parse/ExitCode.ts"
import * as GoalFlags from "./GoalFlags.ts"

/** A single word is likely a mistyped subcommand: without this check, agents would start to work on it. */
const VERB = /^[a-z-]{1,40}$/u

const wrongOf = (text: string | undefined, plan: string | undefined): Wrong | undefined => {
  if (text === undefined || text.trim() === "")
    return {
      message: "The goal is missing.",
      remedy: 'Say what is to be achieved: agentd goal "…". See those that there are: agentd goal ls',
      exitCode: ExitCode.usage
    }
  return plan === undefined && VERB.test(text)
    ? {
        message: `goal has no subcommand "${text}". The text of a goal has more than one word.`,
        remedy: "See the subcommands: agentd goal --help. Or describe the goal in a sentence.",
        exitCode: ExitCode.usage
      }
    : undefined
}

export const goal = act({
  path: ["goal"],
  description: "Give the agents of this project a goal: it is planned, carried out and reviewed",
  examples: [
    { command: 'agentd goal "Port the parser to Rust" --check "npm test"', description: "The planner makes a plan" },
    { command: 'agentd goal "Release 2.0" --plan plan.json --auto-start', description: "A plan of your own" },
    { command: 'agentd goal "…" --auto-start --wait && make deploy', description: "In a script: only if it is met" },
    { command: "agentd goal show g1", description: "Its tasks, and who has them" }
  ],
  args: {
    text: maybeText("The goal, in a sentence; - reads standard input"),
    plan: option("FILE", "Its plan, as JSON; default: the planner makes one"),
    ...GoalFlags.flags,
    wait: off("Wait until it ends: 0: it is met; 1: it stopped; 5: it waits for a person")
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
