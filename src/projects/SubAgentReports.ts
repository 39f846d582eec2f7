/**
 * SubAgentReports: the messages about a sub-agent (child) that its parent receives. These are the child's reports, and
 * for each turn that the parent requested the answer or the reason why there is none, unless the child has reported in
 * that turn. The parent also receives the end of the child if it has received nothing else since its last request.
 *
 * Guarantees: Each event is one message, with an id derived from its rune. A message is pending until the log says that
 * the parent received it. An end that the parent itself caused is not sent to the parent.
 */
import * as MessageFrame from "../domain/MessageFrame.ts"
import { reader, type RuneOf } from "../core/event-log/EventKinds.ts"
import type { Rune } from "../core/event-log/Rune.ts"
import { agentKinds } from "../agents/machines/AgentKinds.ts"
import type * as AgentMachine from "../agents/machines/AgentMachine.ts"
import { text as excerpt } from "../agents/run/LogExcerpt.ts"
import type { Message } from "../agents/machines/Inbox.ts"

/** A pending message, which the parent has not received yet. */
export interface Owed {
  readonly to: string
  readonly child: string
  readonly eventId: number
}

interface Told {
  readonly eventId: number
  readonly turnId: string | null | undefined
}

export interface News {
  /** The newest report or answer of each child. */
  readonly told: Map<string, Told>
  /** Event id of the newest message that the parent sent to each child. */
  readonly asked: Map<string, number>
  /** Pending messages, by message id. */
  readonly owed: Map<string, Owed>
}

export const none = (): News => ({ told: new Map(), asked: new Map(), owed: new Map() })

export interface Child {
  readonly name: string
  readonly parent: string | null
  /** Event id of the first rune since the child's newest start. */
  readonly began: number
}

/** Maximum number of entries. The oldest are deleted first, because their parents no longer exist. */
const MAX_KEPT = 1_000
/** Maximum sizes of a report and of an answer, bytes. */
const MAX_REPORT = 64 * 1024
const MAX_ANSWER = 8 * 1024

const keep = <A>(map: Map<string, A>, key: string, value: A): void => {
  map.delete(key)
  map.set(key, value)
  if (map.size > MAX_KEPT) map.delete(map.keys().next().value!)
}

const owe = ({ owed }: News, to: string, child: string, { eventId }: Pick<Rune, "eventId">): void =>
  keep(owed, `child/${child}/${eventId}`, { to, child, eventId })

const newsKinds = {
  "agent.reported": agentKinds["agent.reported"],
  "agent.answered": agentKinds["agent.answered"],
  "agent.terminated": agentKinds["agent.terminated"],
  "agent.failed": agentKinds["agent.failed"],
  "inbox.received": agentKinds["inbox.received"],
  "inbox.rested": agentKinds["inbox.rested"]
}
const read = reader(newsKinds)
type NewsRune = RuneOf<typeof newsKinds>
type EndRune = Extract<NewsRune, { readonly kind: "agent.failed" | "agent.terminated" }>

/** The user or agent that ended the child; undefined if the event names none. */
const byOf = (event: AgentMachine.Event): string | undefined =>
  event._tag === "parent_closed" ? `agent:${event.parentId}` : "by" in event ? event.by : undefined

/** Applies a rune of a child when the rune becomes durable, or when it is read from the log. */
export const apply = (news: News, any: Rune, { began, name, parent }: Child): void => {
  const rune = read(any)
  switch (rune?.kind) {
    case "agent.reported":
    case "agent.answered": {
      const { parent_id: to, turn_id: turnId } = rune.payload
      keep(news.told, name, { eventId: rune.eventId, turnId })
      if (to !== null && to !== undefined) owe(news, to, name, rune)
      return
    }
    case "agent.terminated":
    case "agent.failed": {
      const isHeard = (news.told.get(name)?.eventId ?? 0) > Math.max(began, news.asked.get(name) ?? 0)
      const isParents = byOf(rune.payload.event) === `agent:${parent}`
      if (parent !== null && !isHeard && !isParents) owe(news, parent, name, rune)
      return
    }
    case "inbox.received":
    case "inbox.rested": {
      const { event } = rune.payload
      if (event._tag !== "Received" && event._tag !== "Rested") return
      const { from, messageId } = event.message
      news.owed.delete(messageId)
      if (parent !== null && from === `agent:${parent}`) keep(news.asked, name, rune.eventId)
    }
  }
}

/** Whether the parent sent this message, as the child's task or later. False for messages from channels and plans. */
export const isAsked = ({ alone, from, messageId }: Message, parent: string, task: string | null): boolean =>
  alone !== true && (from === `agent:${parent}` || messageId === task)

export const isEnd = ({ kind }: Rune): boolean => kind === "agent.terminated" || kind === "agent.failed"

/** The sender that the message names to the parent: the child, or agentd if the child has ended. */
export const sender = (rune: Rune, child: string): string => (isEnd(rune) ? "agentd" : `agent:${child}`)

const whyEnded = (rune: EndRune): string => {
  const reason = rune.kind === "agent.failed" ? rune.payload.error : rune.payload.reason
  const by = byOf(rune.payload.event)
  const why = reason === null || reason === undefined || reason === "" ? "it ended" : MessageFrame.line(reason)
  // "worker" and "agentd" only report the end; any other name is the user who ended the child
  return by === undefined || by === "worker" || by === "agentd" ? why : `${why} by ${by}`
}

/**
 * The text that the parent receives. `answer`: the answer of the turn that the rune belongs to, or of the child's last
 * turn. `trouble`: why that turn got no answer.
 */
export const text = (any: Rune, child: string, answer: string, trouble?: string): string => {
  const rune = read(any)
  const bounded = excerpt(answer.trim(), MAX_ANSWER)
  switch (rune?.kind) {
    case "agent.reported": {
      const { evidence, status, summary } = rune.payload
      const shown = evidence.length === 0 ? "" : `\n\nEvidence:\n${evidence.map((one) => `- ${one}`).join("\n")}`
      return excerpt(`Report of your sub-agent ${child}: ${status}.\n${summary}${shown}`, MAX_REPORT)
    }
    case "agent.terminated":
    case "agent.failed": {
      // agentd sends this message, so the child's own text is quoted
      const said = bounded === "" ? "" : `\n\nThe answer of its last turn:\n${MessageFrame.quoted(bounded)}`
      return `Your sub-agent ${child} has ended without a report: ${whyEnded(rune)}.${said}`
    }
    default:
      if (trouble !== undefined) {
        const why = `Your sub-agent ${child} gave no answer: ${excerpt(MessageFrame.line(trouble), 500)}.`
        return bounded === "" ? why : `${why}\n\nIt had said:\n${MessageFrame.quoted(bounded)}`
      }
      return bounded === ""
        ? `Your sub-agent ${child} has finished its turn without an answer.`
        : `Answer of your sub-agent ${child}:\n${bounded}`
  }
}
