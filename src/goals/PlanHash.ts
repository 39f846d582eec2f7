/**
 * PlanHash: the hash by which the user approves a plan. It is the SHA-256 of the goal, its options, and each task with
 * everything that its agent receives.
 *
 * Guarantees: any change of the work changes the hash; progress does not. A long plan is hashed in small steps, so that
 * other work can run in between.
 */
import { createHash } from "node:crypto"
import { Effect } from "effect"
import { canonical } from "../runs/CanonicalJson.ts"
import { inTurns, type Steps } from "../domain/TimeSlices.ts"
import type { GoalState } from "./GoalState.ts"

/** Cost of hashing one task, in steps (see TimeSlices), and number of characters that cost one more step. */
const [A_TASK, CHARACTERS] = [1, 4_000]

const known = new WeakMap<GoalState, string>()

const hashing = function* (conversation: string, goalId: string, { goal, options, plan }: GoalState): Steps<string> {
  const hash = createHash("sha256").update("agentd.plan.1\n")
  hash.update(`${canonical({ conversation, goalId, goal, options: options ?? null })}\n`)
  for (const { task } of plan.nodes) {
    const text = canonical(task)
    hash.update(`${text}\n`)
    yield A_TASK + text.length / CHARACTERS
  }
  return hash.digest("hex")
}

/** The hash of a plan. The conversation is part of it, because `goalId` is unique only within its conversation. */
export const hashOf = (conversation: string, goalId: string, state: GoalState): Effect.Effect<string> =>
  Effect.suspend(() => {
    const found = known.get(state)
    if (found !== undefined) return Effect.succeed(found)
    return Effect.tap(inTurns(hashing(conversation, goalId, state)), (hash) =>
      Effect.sync(() => known.set(state, hash))
    )
  })
