/**
 * PlanHash: the name of a plan that a person approves: the SHA-256 of the goal, how it is to be worked
 * off, and each of its tasks with all that its agent is told. Pure.
 *
 * Guarantees: whatever changes of what would be done changes the hash; how far it is done does not.
 */
import { createHash } from "node:crypto"
import { canonical } from "../backends/CanonicalJson.ts"
import type { GoalState } from "./GoalState.ts"

const known = new WeakMap<GoalState, string>()

/** `goalId`: unique in the conversation. */
export const hashOf = (conversation: string, goalId: string, state: GoalState): string => {
  const found = known.get(state)
  if (found !== undefined) return found
  const { goal, options, plan } = state
  const hash = createHash("sha256").update("agentd.plan.1\n")
  hash.update(`${canonical({ conversation, goalId, goal, options: options ?? null })}\n`)
  for (const { task } of plan.nodes) hash.update(`${canonical(task)}\n`)
  const digest = hash.digest("hex")
  known.set(state, digest)
  return digest
}
