/**
 * LiveOutbox: holds the outbox of the running daemon and the notices that wait for an answer, both folded from the log.
 *
 * Guarantees: decisions are made one at a time, each on the basis of all earlier runes; only durable runes change the
 * state.
 */
import { Context, Deferred, Effect, Layer, Queue, Semaphore } from "effect"
import { DAEMON_STREAM, type RuneDraft } from "../core/event-log/Rune.ts"
import { EventLog, type StorageError } from "../core/event-log/EventLog.ts"
import * as OpenNotices from "./OpenNotices.ts"
import * as Outbox from "./Outbox.ts"

const make = Effect.gen(function* () {
  const log = yield* EventLog
  const lock = yield* Semaphore.make(1)
  const wake = yield* Queue.sliding<void>(1)
  const loaded = yield* Deferred.make<void, StorageError>()
  let state = Outbox.initial
  let notices = OpenNotices.initial
  let isKnown = false
  yield* log.recover(DAEMON_STREAM, { outbox: Outbox.fold, notices: OpenNotices.fold }).pipe(
    Effect.map((found) => {
      state = found.outbox.state
      notices = found.notices.state
      isKnown = true
    }),
    Effect.onExit((exit) => Deferred.done(loaded, exit)),
    Effect.tapCause((cause) => Effect.logError("the waiting messages cannot be read: none is sent", cause)),
    Effect.forkScoped
  )
  // if the log cannot be read, wait forever, so that nothing is sent, and nothing is queued twice
  const known = Effect.catch(Deferred.await(loaded), () => Effect.never)

  const commit = <E, R>(
    decide: (state: Outbox.State, notices: OpenNotices.State) => Effect.Effect<ReadonlyArray<RuneDraft>, E, R>
  ) =>
    lock.withPermit(
      Effect.gen(function* () {
        yield* known
        const drafts = yield* decide(state, notices)
        if (drafts.length === 0) return
        // if the log rejects a rune, that is a bug in agentd, not a problem with the mail
        const runes = yield* Effect.catchTag(log.append(drafts), "RuneRefused", Effect.die)
        state = runes.reduce(Outbox.evolve, state)
        notices = runes.reduce(OpenNotices.evolve, notices)
        yield* Queue.offer(wake, undefined)
      })
    )

  return {
    commit,
    /** Reads the state at a time when no decision is being made. */
    look: <A, E, R>(read: (state: Outbox.State, notices: OpenNotices.State) => Effect.Effect<A, E, R>) =>
      lock.withPermit(
        Effect.andThen(
          known,
          Effect.suspend(() => read(state, notices))
        )
      ),
    /** The state of the outbox; undefined until the log's stream has been read. */
    seen: Effect.sync(() => (isKnown ? state : undefined)),
    /** Waits for a change of the state, but at most `millis` ms. */
    changed: (millis: number) =>
      Number.isFinite(millis) ? Effect.asVoid(Effect.timeoutOption(Queue.take(wake), millis)) : Queue.take(wake)
  }
})

export class LiveOutbox extends Context.Service<LiveOutbox, Effect.Success<typeof make>>()("agentd/alerts/LiveOutbox") {
  static readonly layer = Layer.effect(LiveOutbox, make)
}
