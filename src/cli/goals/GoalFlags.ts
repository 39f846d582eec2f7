/** GoalFlags: what may be otherwise for one goal than in `goals`, as `agentd goal` and `agentd at` take it. Pure. */
import { maybeCount, off, option, options } from "../parse/DeclaredVerb.ts"

export const flags = {
  planner: option("AGENT", "Who makes the plan; default: goals.planner"),
  critic: option("AGENT", "Who reviews the result; default: goals.critic"),
  checks: options(
    "check",
    "COMMAND",
    "Must succeed before the critic looks; may be given more than once; default: goals.checks"
  ),
  autoStart: { ...off("Carry the plan out without asking"), name: "auto-start" },
  rounds: maybeCount("Reviews that may not pass before a person is asked", { least: 0, most: 1_000_000 }),
  target: option("BRANCH", "What the work is to be merged into")
} as const

export interface Given {
  readonly planner: string | undefined
  readonly critic: string | undefined
  readonly checks: ReadonlyArray<string>
  readonly autoStart: boolean
  readonly rounds: number | undefined
  readonly target: string | undefined
}

/** Flags that were given alone: the rest is as in `goals`. */
export const given = ({ autoStart, checks, critic, planner, rounds, target }: Given) => ({
  ...(planner === undefined ? {} : { planner }),
  ...(critic === undefined ? {} : { critic }),
  ...(checks.length === 0 ? {} : { checks }),
  ...(autoStart ? { autoStart } : {}),
  ...(rounds === undefined ? {} : { rounds }),
  ...(target === undefined ? {} : { target })
})
