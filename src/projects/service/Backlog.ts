/**
 * Backlog: the messages to one agent that were not answered, as users see them, and the commands on these messages.
 * Dropped messages can be queued again or discarded. Queued messages can be discarded.
 *
 * Guarantees: Texts are limited in length. Everything that a reply reports is durable. A command on messages that no
 * longer exist fails and changes nothing, so two concurrent retries queue a message only once.
 */
import { Effect } from "effect"
import * as Ids from "../../domain/Ids.ts"
import { type BacklogInfo, type Caller, CommandRefused, type Done, refuse } from "../../domain/Messages.ts"
import type { StorageError } from "../../core/event-log/EventLog.ts"
import type { AgentScope } from "../../agents/actors/AgentScope.ts"
import { isActive } from "../../agents/machines/AgentStates.ts"
import * as Inbox from "../../agents/machines/Inbox.ts"
import { words } from "../../runs/FileDescription.ts"
import type { Settled } from "../../agents/actors/InboxActor.ts"
import * as ProjectStop from "../../agents/machines/ProjectStop.ts"

/** Maximum number of characters of a message or a reason that are shown. */
const MAX_SHOWN = 300

const shown = (text: string): string =>
  text.length <= MAX_SHOWN ? text : `${text.slice(0, MAX_SHOWN).toWellFormed()}…`

/** A message's text, preceded by a list of the attached files. */
const withFiles = ({ files = [], text }: Inbox.Message): string =>
  files.length === 0 ? text : `[${files.map(words).join(", ")}] ${text}`

/** Messages that are waiting or that an interrupted turn did not finish. */
const heldBy = (agentScope: AgentScope): ReadonlyArray<Inbox.Message> => {
  const { carried, waiting } = agentScope.inbox().data
  const turn = agentScope.turn()
  const left = isActive(turn) ? [] : carried.filter(({ messageId }) => turn.data.unfinished.includes(messageId))
  return [...left, ...waiting]
}

/** The agent's unanswered messages and open questions; undefined if there are none. */
export const of = (agentScope: AgentScope): BacklogInfo | undefined => {
  const { dropped, more } = Inbox.droppedOf(agentScope.inbox().data)
  const held = heldBy(agentScope)
  const { bounds = [], questions = [] } = agentScope.inbox().data
  if (dropped.length + more + held.length + questions.length + bounds.length === 0) return undefined
  const { conversation, project } = agentScope.setting
  return {
    conversation,
    project: project(),
    agent: agentScope.name,
    dropped: dropped.map(({ at, errorType, message, reason }) => ({
      messageId: message.messageId,
      from: message.from,
      text: shown(withFiles(message)),
      errorType,
      reason: shown(reason),
      since: at
    })),
    more,
    ...(bounds.length === 0 ? {} : { bounds: bounds.map(({ at: since, ...bound }) => ({ ...bound, since })) }),
    ...(questions.length === 0 ? {} : { questions: questions.map(({ at: since, ...asked }) => ({ ...asked, since })) }),
    held: held.length,
    heldSince: held.length === 0 ? null : Math.min(...held.map(({ at }) => at))
  }
}

const counted = (count: number): string => `${count} message${count === 1 ? "" : "s"}`

const nothing = ({ fullName }: AgentScope, which: string | undefined) =>
  Effect.fail(
    new CommandRefused({
      code: which === undefined ? "conflict" : "not_found",
      message:
        which === undefined
          ? `${fullName} has no unanswered message.`
          : `${fullName} has no unanswered message "${which}": it was already queued again or discarded.`,
      remedy: "See what waits for you: agentd waiting"
    })
  )

const settling = Effect.fnUntraced(function* (
  agentScope: AgentScope,
  which: string | undefined,
  asked: Effect.Effect<Settled, CommandRefused | StorageError>,
  words: (count: number) => string
): Effect.fn.Return<Done, CommandRefused | StorageError> {
  const { count, eventId } = yield* asked
  return count === 0 ? yield* nothing(agentScope, which) : { eventId, message: words(count) }
})

/** Queues one dropped message again, or all that are stored. */
export const retry = Effect.fnUntraced(function* (agentScope: AgentScope, which: string | undefined, { by }: Caller) {
  const as = yield* Ids.messageId
  const { fullName } = agentScope
  const goesOn =
    Inbox.heldBy(agentScope.inbox().data) !== undefined && Inbox.droppedOf(agentScope.inbox().data).dropped.length === 0
  const isStopped = (agentScope.worker()?.state ?? "Stopped") === "Stopped"
  const barred = agentScope.setting.home.barred()
  const rest =
    barred !== undefined
      ? `, which waits: ${barred}.`
      : isStopped
        ? `, which is stopped. Start it: ${ProjectStop.startOf(fullName, agentScope.worker()?.data.stoppedBy)}`
        : "."
  return yield* settling(agentScope, which, agentScope.tellInbox({ _tag: "AskAgain", which, as, by }), (count) =>
    goesOn
      ? `${fullName} goes on${rest}`
      : `${counted(count)} ${count === 1 ? "is" : "are"} queued again for ${fullName}${rest}`
  )
}, Effect.uninterruptible)

/** Discards queued messages that no current turn carries. */
const letGo = Effect.fnUntraced(function* (
  agentScope: AgentScope
): Effect.fn.Return<Done, CommandRefused | StorageError> {
  const { fullName } = agentScope
  const ids = heldBy(agentScope).flatMap(({ alone, messageId }) => (alone === true ? [] : [messageId]))
  if (ids.length > 0 && (yield* agentScope.withdraw(ids)))
    return {
      eventId: agentScope.inbox().entered,
      message: `${counted(ids.length)} of ${fullName} ${ids.length === 1 ? "is" : "are"} discarded.`
    }
  return yield* refuse(
    "conflict",
    ids.length === 0 ? `${fullName} has no queued message.` : `${fullName} has already started on its queued messages.`,
    "See what waits for you: agentd waiting"
  )
})

/** Discards one dropped message or all. If `held` is true, discards queued messages instead. */
export const dismiss = Effect.fnUntraced(function* (
  agentScope: AgentScope,
  { held, which }: { readonly which: string | undefined; readonly held: boolean },
  { by }: Caller
) {
  if (held) return yield* letGo(agentScope)
  return yield* settling(
    agentScope,
    which,
    agentScope.tellInbox({ _tag: "Dismiss", which, by }),
    (count) =>
      `${count === 1 ? "One item" : `${count} items`} of ${agentScope.fullName} ${count === 1 ? "is" : "are"} discarded.`
  )
}, Effect.uninterruptible)
