/**
 * RetainedFiles: finds the attached files that messages in open conversations need. These are messages that wait, that
 * an unfinished turn carries, or that were not answered and need the user's decision.
 *
 * Guarantees: If it cannot be determined which files are needed (the log cannot be read or applied), none is removed.
 * Files are also kept for messages to agents that are no longer in the config, and in projects whose config cannot be
 * read.
 */
import { Effect } from "effect"
import type { EventLog } from "../../core/event-log/EventLog.ts"
import { type InboxState, isActive, type TurnState } from "../../agents/machines/AgentStates.ts"
import { droppedOf, type Message } from "../../agents/machines/Inbox.ts"
import type { MessageFiles } from "../../agents/prompt/MessageFiles.ts"
import type { Projects } from "../Projects.ts"

interface Stands {
  readonly inbox: InboxState
  readonly turn: TurnState
}

export const neededMessages = ({ inbox, turn }: Stands): ReadonlyArray<Message> => {
  const { carried, waiting } = inbox.data
  const isUndone = isActive(turn) || turn.state === "interrupted" || turn.data.unfinished.length > 0
  const dropped = droppedOf(inbox.data).dropped.map(({ message }) => message)
  return [...waiting, ...(isUndone ? carried : []), ...dropped]
}

/** Hashes of the files that are needed; undefined if they cannot be determined. */
const needed = (projects: Projects): ReadonlySet<string> | undefined => {
  const stands: Array<Stands> = []
  const lost = projects.notLiving
    .filter(({ reason }) => reason === "lost")
    .map(({ record }) => ({ record, members: new Map<string, never>() }))
  for (const { members, record } of [...projects.living.values(), ...lost]) {
    for (const { agentScope } of members.values()) stands.push({ inbox: agentScope.inbox(), turn: agentScope.turn() })
    for (const [name, agent] of record.agents) {
      if (agent.broken !== undefined) return undefined
      if (!members.has(name)) stands.push(agent)
    }
  }
  return new Set(stands.flatMap(neededMessages).flatMap(({ files = [] }) => files.map(({ sha256 }) => sha256)))
}

export const sweep = (projects: Projects, log: EventLog["Service"], files: MessageFiles): Effect.Effect<void> =>
  Effect.suspend(() => {
    if (files.isEmpty) return Effect.void
    return Effect.flatMap(log.reading, ({ unreadable }) => {
      const kept = unreadable.length > 0 ? undefined : needed(projects)
      return kept === undefined ? Effect.void : files.sweep(kept)
    })
  })
