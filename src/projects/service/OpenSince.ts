/**
 * OpenSince: the start of the oldest open work of agents: a message that waits or that an unfinished turn carries, a
 * question, a call, a run. Pure.
 *
 * Guarantees: the rune that began the work is not older than this time. Therefore no open work needs an older rune.
 */
import { type AgentScope } from "../../agents/actors/AgentScope.ts"
import { isActive } from "../../agents/machines/AgentStates.ts"
import { droppedOf } from "../../agents/machines/Inbox.ts"

/** States of a worker in which nothing is under way. */
const RESTS: ReadonlySet<string> = new Set(["Stopped", "CoolingDown", "SessionComplete", "BuildingPrompt"])

/** ms since the epoch; infinite if nothing is open. */
export const openSince = (agentScopes: Iterable<AgentScope>): number => {
  let since = Number.POSITIVE_INFINITY
  const open = (at: number | null) => {
    since = Math.min(since, at ?? 0)
  }
  for (const agentScope of agentScopes) {
    const { data } = agentScope.inbox()
    const turn = agentScope.turn()
    const isUndone = isActive(turn) || turn.state === "interrupted" || turn.data.unfinished.length > 0
    for (const { at } of [...data.waiting, ...(isUndone ? data.carried : [])]) open(at)
    for (const { message } of droppedOf(data).dropped) open(message.at)
    for (const { at } of [...(data.questions ?? []), ...(data.bounds ?? [])]) open(at)
    if (isUndone) open(turn.data.startedAt)
    const worker = agentScope.worker()
    if (worker !== undefined && !RESTS.has(worker.state)) open(worker.at)
    for (const call of agentScope.calls()) open(call.since)
  }
  return since
}
