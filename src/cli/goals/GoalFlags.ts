/**
 * GoalFlags: the options of `agentd goal` and `agentd at` that override the `goals` section of the config for one goal.
 * Pure.
 */
import { maybeCount, off, option, options } from "../parse/DeclaredVerb.ts"

export const flags = {
  planner: option("AGENT", "Agent that makes the plan; default: goals.planner of agentd.jsonc"),
  critic: option("AGENT", "Agent that reviews the result; default: goals.critic of agentd.jsonc"),
  checks: options(
    "check",
    "COMMAND",
    "Command that must succeed before the review; repeatable; default: goals.checks of agentd.jsonc"
  ),
  autoStart: { ...off("Start the plan without your approval"), name: "auto-start" },
  rounds: maybeCount("Number of failed reviews after which you are asked", { least: 0, most: 1_000_000 }),
  target: option("BRANCH", "Branch into which the finished work is merged")
} as const

export interface Given {
  readonly planner: string | undefined
  readonly critic: string | undefined
  readonly checks: ReadonlyArray<string>
  readonly autoStart: boolean
  readonly rounds: number | undefined
  readonly target: string | undefined
}

/** The options that the user has set. The config's `goals` section supplies the others. */
export const given = ({ autoStart, checks, critic, planner, rounds, target }: Given) => ({
  ...(planner === undefined ? {} : { planner }),
  ...(critic === undefined ? {} : { critic }),
  ...(checks.length === 0 ? {} : { checks }),
  ...(autoStart ? { autoStart } : {}),
  ...(rounds === undefined ? {} : { rounds }),
  ...(target === undefined ? {} : { target })
})
