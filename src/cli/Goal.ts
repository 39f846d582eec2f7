/** `agentd goal TEXT`: gives the agents of this project a goal. */
import { Effect } from "effect"
import * as NodePath from "node:path"
import { call } from "../rpc/ControlClient.ts"
import { ExitCode } from "./ExitCode.ts"
import { VerbFailed } from "./Failure.ts"
import { Invocation, print } from "./Invocation.ts"
import { plain } from "./Output.ts"
import { textOf } from "./StandardInput.ts"

/** Looks like a slip; agents would begin to work on it. */
const VERB = /^[a-z-]{1,40}$/u

export const run = Effect.fnUntraced(function* (input: {
  readonly text: string | undefined
  readonly plan: string | undefined
  readonly planner: string | undefined
  readonly critic: string | undefined
  readonly checks: ReadonlyArray<string>
  readonly autoStart: boolean
  readonly rounds: number | undefined
  readonly target: string | undefined
}) {
  const { caller, paths } = yield* Invocation
  const { autoStart, checks, critic, plan, planner, rounds, target } = input
  const text = input.text === "-" ? yield* textOf("-") : input.text
  if (text === undefined || text.trim() === "") {
    return yield* new VerbFailed({
      message: "There is no goal.",
      remedy: 'Say what is to be achieved: agentd goal "…". See those that there are: agentd goal ls',
      exitCode: ExitCode.usage
    })
  }
  if (plan === undefined && VERB.test(text)) {
    return yield* new VerbFailed({
      message: `goal has no subcommand "${text}", and a goal is more than a word.`,
      remedy: "See those that there are: agentd goal --help. Or say what is to be achieved in a sentence.",
      exitCode: ExitCode.usage
    })
  }
  const request = {
    goal: text,
    plan: plan === undefined ? null : NodePath.resolve(plan),
    ...(planner === undefined ? {} : { planner }),
    ...(critic === undefined ? {} : { critic }),
    ...(checks.length === 0 ? {} : { checks }),
    ...(autoStart ? { autoStart } : {}),
    ...(rounds === undefined ? {} : { rounds }),
    ...(target === undefined ? {} : { target })
  }
  const done = yield* call(paths.socket, (client) => client.GoalSubmit({ request, caller }))
  yield* print(done, () => [plain(done.message)])
})
