/**
 * PlanHash: the name of a plan that a person approves: the SHA-256 of the goal, how it is to be worked
 * off, and each of its tasks with all that its agent is told.
 *
 * Guarantees: whatever changes of what would be done changes the hash; how far it is done does not; a long plan is
 * hashed a little at a time.
 */
import { createHash } from "node:crypto"
import { Effect } from "effect"
import { canonical } from "../runs/CanonicalJson.ts"
import { inTurns, type Steps } from "../domain/InTurns.ts"
import type { GoalState } from "./GoalState.ts"

/** The cost of hashing a task, and the characters that cost as much as a small step (InTurns). */
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

/** `goalId`: unique in the conversation. */
export const hashOf = (conversation: string, goalId: string, state: GoalState): Effect.Effect<string> =>
  Effect.suspend(() => {
    const found = known.get(state)
    if (found !== undefined) return Effect.succeed(found)
    return Effect.tap(inTurns(hashing(conversation, goalId, state)), (hash) =>
      Effect.sync(() => known.set(state, hash))
    )
  })
