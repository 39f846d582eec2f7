/**
 * OldestOpenWork: finds when the oldest unfinished work of agents started. Work is a waiting message, a message of an
 * unfinished turn, a question, a call or a run. Pure.
 *
 * Guarantees: The rune that started the work is not older than this time. Therefore unfinished work needs no older
 * rune.
 */
import { type AgentScope } from "../../agents/actors/AgentScope.ts"
import { isActive } from "../../agents/machines/AgentStates.ts"
import { droppedOf } from "../../agents/machines/Inbox.ts"

/** States in which a worker has no unfinished work. */
const RESTS: ReadonlySet<string> = new Set(["Stopped", "CoolingDown", "SessionComplete", "BuildingPrompt"])

/** When the oldest unfinished work started, ms since the epoch; infinite if there is none. */
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
