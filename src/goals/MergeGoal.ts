/**
 * MergeGoal: the done work of a goal, merged into a branch, and the log told of it.
 *
 * Guarantees: only reviewed work, unless a person says otherwise; what conflicts is
 * named and left alone; merged again it changes nothing.
 */
import { Effect } from "effect"
import type { MergeReply } from "../domain/GoalMessages.ts"
import { CommandRefused } from "../domain/Messages.ts"
import { readGoal } from "./GoalActor.ts"
import * as ReviewGate from "./ReviewGate.ts"
import type { MergeHow } from "./Goals.ts"
import type { LiveGoals } from "./LiveGoals.ts"
import * as GitMerge from "./GitMerge.ts"
import type { GoalRecord } from "./Recovery.ts"

/** Of the goal's text, in the message of a merge. */
const MAX_SUBJECT = 60

const refuse = (message: string, remedy: string) => new CommandRefused({ message, remedy })

const merged = (target: string, results: MergeReply["results"]): string => {
  const of = (outcome: string) => results.filter((result) => result.outcome === outcome)
  const conflicts = of("conflict").map(({ branch, conflicts }) => `${branch} conflicts in ${conflicts.join(", ")}`)
  const done = `${of("merged").length} merged into ${target}, ${of("up-to-date").length} there already`
  return conflicts.length === 0 ? `${done}.` : `${done}; ${conflicts.join("; ")}: nothing was forced.`
}

/** What else lies on its agents' branches nobody has asked for, and nobody has reviewed for it. */
const onlyItsOwn = Effect.fnUntraced(function* (
  root: string,
  target: string,
  goalId: string,
  works: ReadonlyArray<GitMerge.Work>
) {
  const tip = yield* GitMerge.commitOf(root, target)
  if (tip === undefined) return
  for (const work of works) {
    const others = yield* GitMerge.foreign(root, tip, work)
    if (others.length === 0) continue
    return yield* refuse(
      `${work.branch} holds ${ReviewGate.strangers(others)}.`,
      `Take them along: agentd goal merge ${goalId} --all. Or merge the goal that they are of first: agentd goal ls --all`
    )
  }
})

export const deliver = Effect.fnUntraced(function* (
  live: LiveGoals,
  { conversation, goalId }: GoalRecord,
  how: MergeHow & { readonly by: string }
) {
  const { log } = live
  const goal = yield* readGoal(log, conversation, goalId)
  if (goal.stand.state !== "goal_met" && !how.unreviewed) {
    return yield* refuse(
      `${goalId} is not met: it is ${goal.stand.state}, and its work is not reviewed.`,
      "Wait for it, or merge what is done all the same: --unreviewed"
    )
  }
  const works = ReviewGate.worksOf(goal.plan)
  if (works.length === 0) {
    return yield* refuse(
      `There is nothing to merge: no task of ${goalId} has left a commit on a branch of its own.`,
      `See where its tasks were done: agentd goal show ${goalId}`
    )
  }
  if (live.isSealed(conversation)) {
    return yield* refuse(
      `The conversation of ${goalId} is closed: nothing can be written of it any more.`,
      `Merge by hand: git merge ${works.map(({ head }) => head.slice(0, 12)).join(" ")}`
    )
  }
  const project = yield* live.options.projects.config(conversation)
  if (project === undefined) return yield* refuse("The project's config cannot be read.", "Mend it: agentd doctor")
  const target = how.into ?? goal.options?.target ?? (yield* GitMerge.currentBranch(project.root))
  if (target === undefined) return yield* refuse("No branch is checked out.", "Say which: --into BRANCH")
  if (!how.all) yield* onlyItsOwn(project.root, target, goalId, works)
  const results = yield* GitMerge.into(project.root, target, works, goal.goal.split("\n")[0]!.slice(0, MAX_SUBJECT))
  const payload = { plan_id: goalId, target, by: how.by, results }
  const [rune] = yield* log.append([
    { stream: conversation, kind: "plan.merged", actor: `merge/${goalId}`, trigger: "merge", payload }
  ])
  const reply: MergeReply = { eventId: rune!.eventId, target, results, message: merged(target, results) }
  return reply
})
