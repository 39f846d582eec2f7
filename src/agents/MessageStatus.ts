/**
 * MessageStatus: an agent as its siblings see it, and what became of a message that it was
 * sent: from the committed state of its machines, and what is remembered of the last
 * thousand messages that are over.
 */
import { Effect } from "effect"
import type { Fate, Member } from "../domain/AgentPort.ts"
import type { EventLog, StorageError } from "../event-log/EventLog.ts"
import { isWithdrawn } from "./Inbox.ts"
import type { AgentSupervisor } from "./AgentSupervisor.ts"
import { outputOf } from "./TurnActor.ts"

/** As far as the machines' own data tell. */
export const nowOf = ({ inbox, turn, worker }: AgentSupervisor, messageId: string): Fate | undefined => {
  const { data, state } = turn.snapshot
  const { waiting } = inbox.snapshot.data
  const isActive = state === "streaming" || state === "tool_executing"
  if (isActive && data.messageIds.includes(messageId)) return { _tag: "Carried", turnId: data.turnId! }
  const run = worker?.snapshot
  if (run?.state === "Spawning" && run.data.messageIds.includes(messageId)) {
    return { _tag: "Carried", turnId: run.data.runId! }
  }
  const waits = data.messageIds.includes(messageId)
    ? data.unfinished.includes(messageId) && !isWithdrawn(inbox.snapshot.data, messageId)
    : waiting.some((message) => message.messageId === messageId)
  return waits ? { _tag: "Waiting" } : undefined
}

export const fateOf = (
  agent: AgentSupervisor,
  log: EventLog["Service"],
  messageId: string
): Effect.Effect<Fate, StorageError> =>
  Effect.suspend(() => {
    const found = nowOf(agent, messageId)
    if (found !== undefined) return Effect.succeed(found)
    const ended = agent.record.ended.get(messageId)
    const { messageIds, turnId } = agent.turn.snapshot.data
    // its turn is being brought to its end: nobody has been told yet
    if (turnId !== null && messageIds.includes(messageId) && ended?.turnId !== turnId) {
      return Effect.succeed<Fate>({ _tag: "Carried", turnId })
    }
    if (ended !== undefined) {
      const { eventId, outcome, turnId } = ended
      return Effect.map(log.get(eventId), (rune): Fate => ({ _tag: "Ended", turnId, outcome, output: outputOf(rune) }))
    }
    const fate: Fate = isWithdrawn(agent.inbox.snapshot.data, messageId) ? { _tag: "Dropped" } : { _tag: "Unknown" }
    return Effect.succeed(fate)
  })

export const memberOf = (agent: AgentSupervisor): Member => {
  const { around, life, live, meter, name, turn, worker } = agent
  const { can, role } = around.config()
  const state = life?.snapshot.state
  const run = worker?.snapshot
  return {
    conversation: around.conversation,
    agent: name,
    online: (state === "idle" || state === "running_turn") && around.home.barred() === undefined,
    busy: turn.snapshot.state !== "idle" || run?.state === "Spawning" || live.turnId !== undefined,
    spent: meter.exhausted !== undefined,
    can,
    role: role ?? null,
    parent: around.parent,
    cwd: run?.data.cwd ?? null,
    branch: run?.data.branch ?? null
  }
}
