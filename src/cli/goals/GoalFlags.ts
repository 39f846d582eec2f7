/** GoalFlags: options with which `agentd goal` and `agentd at` override `goals` of the config for one goal. Pure. */
import { maybeCount, off, option, options } from "../parse/DeclaredVerb.ts"

export const flags = {
  planner: option("AGENT", "Who makes the plan; default: goals.planner"),
  critic: option("AGENT", "Who reviews the result; default: goals.critic"),
  checks: options(
    "check",
    "COMMAND",
    "Command that must succeed before the critic reviews; repeatable; default: goals.checks"
  ),
  autoStart: { ...off("Carry the plan out without asking"), name: "auto-start" },
  rounds: maybeCount("Number of failed reviews before a person is asked", { least: 0, most: 1_000_000 }),
  target: option("BRANCH", "Branch that the work is merged into")
} as const

export interface Given {
  readonly planner: string | undefined
  readonly critic: string | undefined
  readonly checks: ReadonlyArray<string>
  readonly autoStart: boolean
  readonly rounds: number | undefined
  readonly target: string | undefined
}

/** Only the options that were set: the config's `goals` supplies the rest. */
export const given = ({ autoStart, checks, critic, planner, rounds, target }: Given) => ({
  ...(planner === undefined ? {} : { planner }),
  ...(critic === undefined ? {} : { critic }),
  ...(checks.length === 0 ? {} : { checks }),
  ...(autoStart ? { autoStart } : {}),
  ...(rounds === undefined ? {} : { rounds }),
  ...(target === undefined ? {} : { target })
})
