/**
 * Writer: the one fiber that appends. It takes what waits, commits it as one
 * group, and answers each caller when its runes are durable.
 *
 * Guarantees: the runes of one append are committed together or not at all; ids
 * and hashes are given in commit order; the queue and the lazy buffer are
 * bounded. An interrupted caller's append is still carried out. When the store
 * gives up every append fails from then on, and `failed` says why.
 */
import { Cause, Clock, Deferred, Effect, Exit, Fiber, Latch, Queue, Result } from "effect"
import { DAEMON_STREAM, type Rune, type RuneDraft } from "./Rune.ts"
import { type Limits, type ReadyDraft, readyAll, readyLazy } from "./EventDraft.ts"
import * as GroupCommit from "./GroupCommit.ts"
import { LazyBuffer } from "./LazyBuffer.ts"
import { type AdmissionState, sealed } from "./AdmissionState.ts"
import { RecentEvents } from "./RecentEvents.ts"
import { type RuneRefused, StorageError } from "./EventLog.ts"
import type { Store } from "./Store.ts"

export interface Options extends Limits {
  /** Appends that may wait; a caller beyond them waits to get in. */
  readonly maxWaiting: number
  /** Appends that are committed as one group, and lazy runes besides. */
  readonly maxGroup: number
  /** Lazy runes that may wait; beyond them the oldest are dropped. */
  readonly maxLazy: number
  /** Takes known secrets out of JSON text. */
  readonly scrub: (json: string) => string
}

export interface Writer {
  readonly append: (drafts: ReadonlyArray<RuneDraft>) => Effect.Effect<ReadonlyArray<Rune>, StorageError | RuneRefused>
  readonly appendLazy: (drafts: ReadonlyArray<RuneDraft>) => Effect.Effect<void>
  /** Whether nothing is appended to it any more, since its conversation is closed. */
  readonly isSealed: (stream: string) => boolean
  readonly live: RecentEvents
  readonly failed: Effect.Effect<StorageError>
}

interface Append {
  readonly drafts: ReadonlyArray<ReadyDraft>
  readonly answer: Deferred.Deferred<ReadonlyArray<Rune>, StorageError | RuneRefused>
}

/** Says that there are lazy runes. */
const KNOCK = "knock"

/** Wakes the writer for lazy runes, unless something is there already that will. */
const knock = (queue: Queue.Queue<Append | typeof KNOCK, Cause.Done>, lazies: LazyBuffer): void => {
  if (lazies.size > 0 && Queue.sizeUnsafe(queue) === 0) Queue.offerUnsafe(queue, KNOCK)
}

const closed = new StorageError({
  reason: "closed",
  message: "The rune log is closed.",
  remedy: "agentd is stopping: try again when it is up."
})

/** The store gave up, or our own code broke: neither takes another rune. */
const storageError = (cause: Cause.Cause<StorageError>): StorageError => {
  const error = Cause.squash(cause)
  return error instanceof StorageError
    ? error
    : new StorageError({
        reason: "defect",
        message: `The rune log's writer broke: ${String(error)}`,
        remedy: "This is a bug in agentd: report it with the output of `agentd verify`."
      })
}

export const make = Effect.fnUntraced(function* (store: Store, restored: AdmissionState, options: Options) {
  const queue = yield* Queue.bounded<Append | typeof KNOCK, Cause.Done>(options.maxWaiting)
  const lazies = new LazyBuffer(options.maxLazy)
  const live = new RecentEvents(restored.head)
  const gaveUp = yield* Deferred.make<StorageError>()
  const untidy = Latch.makeUnsafe()
  let ledger = restored
  let failure: StorageError | undefined

  const write = Effect.fnUntraced(function* (appends: ReadonlyArray<Append>) {
    const loose = lazies.take(options.maxGroup).map((draft) => late(ledger, draft))
    const at = yield* Clock.currentTimeMillis
    const group = GroupCommit.form(
      ledger,
      [...loose.map((draft) => [draft]), ...appends.map(({ drafts }) => drafts)],
      at
    )
    if (group.admitted.length > 0) {
      yield* store.persist(group.admitted.map(({ stored }) => stored))
      ledger = group.ledger
      live.publish(group.admitted)
    }
    return group.results.slice(loose.length)
  })

  const serve = Effect.fnUntraced(function* (taken: ReadonlyArray<Append | typeof KNOCK>) {
    const appends = taken.filter((item) => item !== KNOCK)
    const written = failure === undefined ? yield* Effect.exit(write(appends)) : Exit.fail(failure)
    if (Exit.isFailure(written)) {
      failure ??= storageError(written.cause)
      Deferred.doneUnsafe(gaveUp, Effect.succeed(failure))
    }
    for (const [index, { answer }] of appends.entries()) {
      Deferred.doneUnsafe(
        answer,
        Exit.isFailure(written) ? Effect.fail(failure!) : Effect.fromResult(written.value[index]!)
      )
    }
    if (failure !== undefined) return
    knock(queue, lazies)
    const backlog = store.backlog()
    if (backlog === "some") untidy.openUnsafe()
    if (backlog === "much") yield* store.tidy
  })

  yield* Effect.forkScoped(Effect.forever(housekeeping(store, live, untidy)))
  const fiber = yield* Queue.takeBetween(queue, 1, options.maxGroup).pipe(
    Effect.flatMap(serve),
    Effect.forever,
    Effect.catchTag("Done", () =>
      serve([]).pipe(Effect.repeat({ while: () => lazies.size > 0 && failure === undefined }))
    ),
    Effect.forkScoped
  )
  // Runs before the fiber's own finalizer: what waits is still written.
  yield* Effect.addFinalizer(() =>
    Effect.andThen(
      Effect.andThen(Queue.end(queue), Fiber.await(fiber)),
      Effect.sync(() => live.close())
    )
  )

  const isSealed = (stream: string) => sealed(ledger, stream)
  return {
    ...entrance(queue, lazies, options, () => failure),
    isSealed,
    live,
    failed: Deferred.await(gaveUp)
  } satisfies Writer
})

/** What comes after a conversation is closed is told in the daemon's stream. */
const late = (ledger: AdmissionState, draft: ReadyDraft): ReadyDraft =>
  sealed(ledger, draft.stream) ? { ...draft, stream: DAEMON_STREAM, actor: `${draft.stream}/${draft.actor}` } : draft

/** So long without an append, and there is time for housekeeping. */
const QUIET = "200 millis"

/** Once there is something to do, waits for a quiet moment. */
const housekeeping = Effect.fnUntraced(function* (store: Store, live: RecentEvents, untidy: Latch.Latch) {
  yield* untidy.await
  let head: number
  do {
    head = live.head
    yield* Effect.sleep(QUIET)
  } while (live.head > head)
  untidy.closeUnsafe()
  yield* store.tidy
})

/** The callers' side: drafts are made ready in their own time. */
const entrance = (
  queue: Queue.Queue<Append | typeof KNOCK, Cause.Done>,
  lazies: LazyBuffer,
  options: Options,
  failure: () => StorageError | undefined
): Pick<Writer, "append" | "appendLazy"> => ({
  append: (drafts) =>
    Effect.suspend(() => {
      const failed = failure()
      if (failed !== undefined) return Effect.fail(failed)
      if (drafts.length === 0) return Effect.succeed([])
      const prepared = readyAll(drafts, options.scrub, options)
      if (Result.isFailure(prepared)) return Effect.fail(prepared.failure)
      const answer: Append["answer"] = Deferred.makeUnsafe()
      return Effect.flatMap(Queue.offer(queue, { drafts: prepared.success, answer }), (taken) =>
        taken ? Deferred.await(answer) : Effect.fail(closed)
      )
    }),

  appendLazy: (drafts) =>
    Effect.suspend(() => {
      const refused: Array<string> = []
      for (const draft of drafts) {
        const prepared = readyLazy(draft, options.scrub, options)
        if (Result.isSuccess(prepared)) lazies.push(prepared.success)
        else refused.push(prepared.failure.message)
      }
      knock(queue, lazies)
      return refused.length === 0 ? Effect.void : Effect.logError("runes: lazy runes refused", ...refused)
    })
})
