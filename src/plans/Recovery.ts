/**
 * Recovery: what the log says of every goal, in one pass over it.
 *
 * A pure fold, but for the reading. A goal whose runes do not fold (a log of a newer
 * agentd, an archived conversation) is named and left out, and touches no other; of
 * one that has ended only its row is kept.
 */
import { Effect, Stream } from "effect"
import type { Rune } from "../domain/Rune.ts"
import * as Autonomy from "../machines/Autonomy.ts"
import * as Conversation from "../machines/Conversation.ts"
import type { RuneLog } from "../runes/RuneLog.ts"
import { isFinal } from "./AutonomyActor.ts"
import { actorOf, Book, onward, type Stand, startOf } from "./Book.ts"
import { type Figures, figuresOf } from "./Row.ts"

export interface GoalRecord {
  readonly conversation: string
  readonly goalId: string
  stand: Stand
  /** Undefined once it has ended. */
  book: Book | undefined
  figures: Figures
  /** What was in flight when it was stopped. */
  left: ReadonlyArray<{ readonly agent: string; readonly messageId: string }>
}

/** By conversation, then by goal. */
export type Records = Map<string, Map<string, GoalRecord>>

const PREFIX = actorOf("")

const leftOf = (stand: Stand, book: Book): GoalRecord["left"] =>
  Object.keys(stand.data.inFlight).flatMap((id) => {
    const node = book.plan.find(id)
    return node?.agent == null || node.messageId === null ? [] : [{ agent: node.agent, messageId: node.messageId }]
  })

const apply = (records: Records, broken: Set<string>, archived: Set<string>, rune: Rune): void => {
  const { actor, at, eventId, payload, stream } = rune
  const key = `${stream}/${actor}`
  if (broken.has(key)) return
  const goalId = actor.slice(PREFIX.length)
  const goals = records.get(stream) ?? new Map<string, GoalRecord>()
  const record = goals.get(goalId)
  const book = record?.book ?? new Book()
  try {
    const told = { eventId, at, event: payload["event"] as Autonomy.Event }
    const stand = onward(record?.stand ?? startOf(), told)
    book.apply(told)
    const next: GoalRecord = record ?? { conversation: stream, goalId, stand, book, figures: figuresOf(book), left: [] }
    next.stand = stand
    if (isFinal(stand.state)) {
      next.figures = figuresOf(book)
      next.left = leftOf(stand, book)
      next.book = undefined
    }
    goals.set(goalId, next)
    records.set(stream, goals)
  } catch {
    broken.add(key)
    goals.delete(goalId)
    // what an archive has taken is gone in order
    if (payload["event"] === undefined) archived.add(key)
  }
}

export const recover = Effect.fnUntraced(function* (log: RuneLog["Service"]) {
  const records: Records = new Map()
  const states = new Map<string, string>()
  const broken = new Set<string>()
  const archived = new Set<string>()
  yield* Stream.runForEachArray(log.read({ kinds: [...Autonomy.kinds, ...Conversation.kinds] }), (runes) =>
    Effect.sync(() => {
      for (const rune of runes) {
        if (rune.actor.startsWith(PREFIX)) apply(records, broken, archived, rune)
        else if (rune.to !== null) states.set(rune.stream, rune.to)
      }
    })
  )
  const lost = [...broken].filter((key) => !archived.has(key))
  if (lost.length > 0) yield* Effect.logWarning(`goals that the log no longer tells: ${lost.join(", ")}`)
  return { records, states }
})
