/**
 * LiveOutbox: the outbox of the running daemon: the fold of the log, kept.
 *
 * Guarantees: one decision at a time, each on the state that all runes before it
 * led to; the state changes only by runes that are durable.
 */
import { Context, Effect, Layer, Queue, Semaphore } from "effect"
import type { RuneDraft } from "../event-log/Rune.ts"
import { EventLog } from "../event-log/EventLog.ts"
import * as Outbox from "./Outbox.ts"

const make = Effect.gen(function* () {
  const log = yield* EventLog
  const lock = yield* Semaphore.make(1)
  const wake = yield* Queue.sliding<void>(1)
  let state = yield* Outbox.load

  /** Appends what is decided on the state, and folds it in. */
  const commit = <E, R>(decide: (state: Outbox.State) => Effect.Effect<ReadonlyArray<RuneDraft>, E, R>) =>
    lock.withPermit(
      Effect.gen(function* () {
        const drafts = yield* decide(state)
        if (drafts.length === 0) return
        // A refusal is a fault of agentd, not of the mail.
        const runes = yield* Effect.catchTag(log.append(drafts), "RuneRefused", Effect.die)
        state = runes.reduce(Outbox.evolve, state)
        yield* Queue.offer(wake, undefined)
      })
    )

  return {
    commit,
    /** Reads the state while nothing is being decided. */
    look: <A, E, R>(read: (state: Outbox.State) => Effect.Effect<A, E, R>) =>
      lock.withPermit(Effect.suspend(() => read(state))),
    /** Waits for a change, or for so many ms. */
    changed: (millis: number) =>
      Number.isFinite(millis) ? Effect.asVoid(Effect.timeoutOption(Queue.take(wake), millis)) : Queue.take(wake)
  }
})

export class LiveOutbox extends Context.Service<LiveOutbox, Effect.Success<typeof make>>()("agentd/alerts/LiveOutbox") {
  static readonly layer = Layer.effect(LiveOutbox, make)
}
