/**
 * Recovery: what the log says of every goal, in one pass over it.
 *
 * A pure fold, but for the reading. A goal whose runes do not fold (a log of a newer
 * agentd, an archived conversation) is named and left out, and touches no other; of
 * one that has ended only its row is kept.
 */
import { Effect, Stream } from "effect"
import type { Rune } from "../event-log/Rune.ts"
import * as GoalMachine from "./GoalMachine.ts"
import * as ConversationMachine from "../agents/ConversationMachine.ts"
import type { EventLog } from "../event-log/EventLog.ts"
import { isFinal } from "./GoalActor.ts"
import { actorOf, GoalState, onward, type Stand, startOf } from "./GoalState.ts"
import { type Figures, figuresOf } from "./GoalView.ts"

export interface GoalRecord {
  readonly conversation: string
  readonly goalId: string
  stand: Stand
  /** Undefined once it has ended. */
  book: GoalState | undefined
  figures: Figures
  /** What was in flight when it was stopped. */
  left: ReadonlyArray<{ readonly agent: string; readonly messageId: string }>
}

/** By conversation, then by goal. */
export type Records = Map<string, Map<string, GoalRecord>>

const PREFIX = actorOf("")

const leftOf = (stand: Stand, book: GoalState): GoalRecord["left"] =>
  Object.keys(stand.data.inFlight).flatMap((id) => {
    const node = book.plan.find(id)
    return node?.agent == null || node.messageId === null ? [] : [{ agent: node.agent, messageId: node.messageId }]
  })

const apply = (records: Records, broken: Set<string>, archived: Set<string>, rune: Rune): void => {
  const { actor, at, eventId, payload, seq, stream } = rune
  const key = `${stream}/${actor}`
  if (broken.has(key)) return
  const goalId = actor.slice(PREFIX.length)
  const goals = records.get(stream) ?? new Map<string, GoalRecord>()
  const record = goals.get(goalId)
  const book = record?.book ?? new GoalState()
  try {
    const told = { eventId, seq, at, event: payload["event"] as GoalMachine.Event }
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

export const recover = Effect.fnUntraced(function* (log: EventLog["Service"]) {
  const records: Records = new Map()
  const states = new Map<string, string>()
  const broken = new Set<string>()
  const archived = new Set<string>()
  yield* Stream.runForEachArray(log.read({ kinds: [...GoalMachine.kinds, ...ConversationMachine.kinds] }), (runes) =>
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
