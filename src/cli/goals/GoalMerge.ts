/**
 * `agentd goal merge GOAL`: merges a goal's finished work into a branch. If the branch is checked out, this process
 * fast-forwards the checkout with the user's own git, because the daemon never changes a user's checkout.
 */
import { Effect } from "effect"
import type { MergeReply } from "../../domain/GoalMessages.ts"
import type { Caller } from "../../domain/Messages.ts"
import * as UserGit from "../../runs/git/UserGit.ts"
import { call } from "../../api/rpc/ControlClient.ts"
import { ExitCode } from "../parse/ExitCode.ts"
import { VerbFailed } from "../parse/Failure.ts"
import { Invocation, print } from "../parse/Invocation.ts"
import { paint, plain } from "../render/Output.ts"

interface Asked {
  readonly name: string
  readonly into: string | null
  readonly unreviewed: boolean
  readonly all: boolean
  readonly caller: Caller
}

const colours = { merged: "green", "up-to-date": "dim", conflict: "red" } as const

const refuse = (message: string, remedy: string) => new VerbFailed({ message, remedy, exitCode: ExitCode.failed })

/** Fast-forwards the checkout to the merged commit with the user's git, and reports that to the daemon. */
const finish = Effect.fnUntraced(function* (
  { results, target }: MergeReply,
  { commit, folder, from }: NonNullable<MergeReply["toCheckout"]>,
  asked: Asked
) {
  const { paths } = yield* Invocation
  const git = (...args: ReadonlyArray<string>) =>
    Effect.catchTag(UserGit.run(folder, ...args), "GitUnavailable", ({ message, remedy }) => refuse(message, remedy))
  const { code, stderr, stdout } = yield* git("status", "--porcelain", "--untracked-files=no")
  if (code !== 0)
    return yield* refuse(
      `git cannot read the status of ${folder}: ${stderr}`,
      `Check the folder: git -C ${folder} status`
    )
  if (stdout !== "") {
    const changes = stdout.trimEnd().split("\n").slice(0, 3).join(", ")
    return yield* refuse(
      `${target} is checked out in ${folder}, which has uncommitted changes: ${changes}`,
      "Commit or stash the changes, then merge again."
    )
  }
  const head = yield* git("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
  if (head.stdout.trim() !== from)
    return yield* refuse(`The branch ${target} has changed during the merge.`, "Run the merge again.")
  const merge = yield* git("merge", "--ff-only", "--quiet", commit)
  if (merge.code !== 0)
    return yield* refuse(`git did not merge: ${merge.stderr}`, `Check the folder: git -C ${folder} status`)
  const done = yield* call(paths.socket, (client) => client.GoalMerge({ ...asked, done: { from, commit } }))
  return { ...done, results }
})

export const run = Effect.fnUntraced(function* (input: {
  readonly name: string
  readonly into: string | undefined
  readonly unreviewed: boolean
  readonly all: boolean
}) {
  const { caller, colour, paths } = yield* Invocation
  const { all, into, name, unreviewed } = input
  const asked = { name, into: into ?? null, unreviewed, all, caller }
  const answer = yield* call(paths.socket, (client) => client.GoalMerge(asked))
  const reply = answer.toCheckout === undefined ? answer : yield* finish(answer, answer.toCheckout, asked)
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
    remedy: `Merge by hand, and resolve the conflicts: git switch ${reply.target} && git merge ${first!.branch}`,
    exitCode: ExitCode.failed
  })
})
