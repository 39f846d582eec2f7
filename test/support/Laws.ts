/** Laws: the rules that every log obeys once all work is done, whatever was killed before. Pure. */
import type { Rune } from "../../src/core/event-log/Rune.ts"

type Event = { readonly _tag: string; readonly [field: string]: unknown }

const eventOf = ({ payload }: Rune): Event => payload["event"] as Event
const text = ({ payload }: Rune, field: string): string => String(payload[field])

const ENDS = ["turn.completed", "turn.interrupted", "turn.error"]

const countBy = <A>(all: ReadonlyArray<A>, key: (one: A) => string): Map<string, number> => {
  const counts = new Map<string, number>()
  for (const one of all) counts.set(key(one), (counts.get(key(one)) ?? 0) + 1)
  return counts
}

/** Whether the turn's messages are finished, and not given to another turn. */
const isFinal = (end: Rune): boolean => {
  const event = eventOf(end)
  return end.kind === "turn.completed" || (end.kind === "turn.error" ? event["retry"] !== true : event["keep"] !== true)
}

interface Turn {
  readonly turnId: string
  readonly messageIds: ReadonlyArray<string>
  readonly ends: ReadonlyArray<Rune>
}

/** Messages of a turn, by the rune that started it. */
export const messagesOf = (started: Rune): ReadonlyArray<string> =>
  eventOf(started)["messageIds"] as ReadonlyArray<string>

export const turnsOf = (runes: ReadonlyArray<Rune>): ReadonlyArray<Turn> => {
  const ends = runes.filter(({ kind }) => ENDS.includes(kind))
  return runes
    .filter(({ kind }) => kind === "turn.started")
    .map((rune) => ({
      turnId: text(rune, "turn_id"),
      messageIds: messagesOf(rune),
      ends: ends.filter((end) => text(end, "turn_id") === text(rune, "turn_id"))
    }))
}

/** Messages that were received, by id. */
export const received = (runes: ReadonlyArray<Rune>): ReadonlyMap<string, string> =>
  new Map(
    runes
      .filter(({ kind }) => kind === "inbox.received")
      .map((rune) => eventOf(rune)["message"] as { readonly messageId: string; readonly text: string })
      .map(({ messageId, text }) => [messageId, text])
  )

/** Descriptions of the broken laws; empty if there are none. */
export const broken = (runes: ReadonlyArray<Rune>): ReadonlyArray<string> => {
  const found: Array<string> = []
  const results = countBy(
    runes.filter(({ kind }) => kind === "tool.result"),
    (rune) => text(rune, "call_id")
  )
  for (const call of runes.filter(({ kind }) => kind === "tool.call")) {
    const count = results.get(text(call, "call_id")) ?? 0
    if (count !== 1) found.push(`call ${text(call, "call_id")} (rune ${call.eventId}) has ${count} results`)
  }
  const turns = turnsOf(runes)
  for (const { ends, turnId } of turns) {
    if (ends.length !== 1) found.push(`turn ${turnId} has ${ends.length} ends`)
  }
  const withdrawn = runes.filter(({ kind }) => kind === "inbox.withdrawn").map((rune) => eventOf(rune)["messageId"])
  for (const [messageId, words] of received(runes)) {
    const last = turns.filter(({ messageIds }) => messageIds.includes(messageId)).flatMap(({ ends }) => ends)
    const final = last.filter(isFinal)
    if (final.length !== 1 && !withdrawn.includes(messageId)) {
      const how = last.map(({ eventId, kind }) => `${kind} (${eventId})`).join(", ")
      found.push(`message ${messageId} is done ${final.length} times, by ${how || "no turn"}: ${words}`)
    }
  }
  found.push(...early(runes, turns))
  const violated = runes.filter(({ kind }) => kind === "invariant.violated")
  found.push(...violated.map((rune) => `rune ${rune.eventId}: ${text(rune, "message")}`))
  return [...found, ...floors(runes)]
}

/** A conversation counts each turn once, and not as completed before the turn ends. */
const early = (runes: ReadonlyArray<Rune>, turns: ReadonlyArray<Turn>): ReadonlyArray<string> => {
  const moves = runes.filter(({ actor }) => actor.startsWith("conversation/"))
  return turns.flatMap(({ ends: [end], turnId }) => {
    const of = (tag: string) =>
      moves.filter((rune) => eventOf(rune)["_tag"] === tag && eventOf(rune)["turnId"] === turnId)
    const [over] = of("turn_completed")
    const begun = of("new_turn").length
    return [
      ...(begun > 1 ? [`its conversation counts turn ${turnId} ${begun} times`] : []),
      ...(end !== undefined && over !== undefined && over.eventId < end.eventId
        ? [`turn ${turnId} ends with rune ${end.eventId}, for its conversation with ${over.eventId} already`]
        : [])
    ]
  })
}

/** A channel never has two ACTIVE seats. */
const floors = (runes: ReadonlyArray<Rune>): ReadonlyArray<string> => {
  const found: Array<string> = []
  const active = new Map<string, Set<string>>()
  for (const rune of runes.filter(({ kind }) => kind === "seat.moved")) {
    const channel = `${rune.stream}/${text(rune, "channel")}`
    const holders = active.get(channel) ?? new Set()
    active.set(channel, holders)
    if (rune.to === "ACTIVE") holders.add(rune.actor)
    else holders.delete(rune.actor)
    if (holders.size > 1) found.push(`rune ${rune.eventId}: ${[...holders].join(" and ")} have the floor of ${channel}`)
  }
  return found
}
