/**
 * WhyLimits: explains the limits that an agent has reached, its unanswered messages, and the files that were sent to
 * it, in plain sentences. Pure. A part of Why.
 *
 * Guarantees: Each sentence names the rune on which it is based. Texts from outside agentd are limited in length.
 */
import { words } from "../../runs/FileDescription.ts"
import type { WhyLine } from "../../domain/Messages.ts"
import { checkedReader } from "../../core/event-log/EventKinds.ts"
import type { Rune } from "../../core/event-log/Rune.ts"
import { agentKinds } from "../../agents/machines/AgentKinds.ts"

export const boundKinds = {
  "agent.bound_reached": agentKinds["agent.bound_reached"],
  "inbox.received": agentKinds["inbox.received"],
  "inbox.rested": agentKinds["inbox.rested"],
  "inbox.asked_again": agentKinds["inbox.asked_again"],
  "inbox.dismissed": agentKinds["inbox.dismissed"]
}

/** Skips runes that only a newer version of agentd can read. */
const read = checkedReader(boundKinds)

/** Maximum length of text from outside agentd, characters. */
export const LONG = 300

export const cut = (words: string): string => (words.length <= LONG ? words : `${words.slice(0, LONG).toWellFormed()}…`)

const told = (any: Rune): string | undefined => {
  const rune = read(any)
  if (rune?.kind === "agent.bound_reached") return cut(rune.payload.text)
  const event = rune?.payload.event
  switch (event?._tag) {
    case "Received": {
      const { files = [], from } = event.message
      return files.length === 0 ? undefined : cut(`was sent by ${from}: ${files.map(words).join(", ")}`)
    }
    case "Rested":
      return `a message from ${cut(event.message.from)} is withheld, after ${cut(event.reason)}`
    case "AskedAgain":
      return `${event.by} queued its messages again (${event.messages.length})`
    case "Dismissed":
      return `${event.by} discarded the unanswered messages`
    default:
      return undefined
  }
}

export const expiredIn = (runes: ReadonlyArray<Rune>): ReadonlyArray<Rune> =>
  runes.filter((any) => {
    const rune = read(any)
    return rune?.kind === "agent.bound_reached" && rune.payload.call_id !== undefined
  })

export const past = (runes: ReadonlyArray<Rune>): ReadonlyArray<WhyLine> =>
  runes.flatMap((rune) => {
    const text = told(rune)
    return text === undefined ? [] : [{ eventId: rune.eventId, at: rune.at, text }]
  })
