/** `agentd goal merge GOAL`: merges done work into a branch. */
import { Effect } from "effect"
import { call } from "../rpc/ControlClient.ts"
import { ExitCode } from "./ExitCode.ts"
import { VerbFailed } from "./Failure.ts"
import { Invocation, print } from "./Invocation.ts"
import { paint, plain } from "./Output.ts"

const colours = { merged: "green", "up-to-date": "dim", conflict: "red" } as const

export const run = Effect.fnUntraced(function* (input: {
  readonly name: string
  readonly into: string | undefined
  readonly unreviewed: boolean
  readonly all: boolean
}) {
  const { caller, colour, paths } = yield* Invocation
  const { all, into, name, unreviewed } = input
  const reply = yield* call(paths.socket, (client) =>
    client.GoalMerge({ name, into: into ?? null, unreviewed, all, caller })
  )
  yield* print(reply, () => [
    ...reply.results.map(
      ({ branch, conflicts, head, outcome, tasks }) =>
        `${paint(colour, colours[outcome], outcome)} ${plain(branch)} at ${plain(head.slice(0, 12))} (${plain(tasks.join(", "))})${conflicts.length === 0 ? "" : `: ${conflicts.map(plain).join(", ")}`}`
    ),
    plain(reply.message)
  ])
  const conflicting = reply.results.filter(({ outcome }) => outcome === "conflict")
  if (conflicting.length === 0) return
  const [first] = conflicting
  return yield* new VerbFailed({
    message: `${conflicting.length === 1 ? first!.branch : `${conflicting.length} branches`} could not be merged into ${reply.target}.`,
    remedy: `Merge by hand: git switch ${reply.target} && git merge ${first!.branch}`,
    exitCode: ExitCode.failed
  })
})
