/**
 * StoreEventLog: the service over any log and store: what is written goes through the
 * log, what is read comes in pages, a subscription is both.
 */
import { Effect, Fiber, Semaphore, Stream } from "effect"
import type { AdmissionState } from "./AdmissionState.ts"
import type { AdmittingLog } from "./AdmittingLog.ts"
import { Appender, defaultOptions, type Options } from "./Appender.ts"
import * as Archive from "./Archive.ts"
import { EventLog, RuneRefused, type Selection, StorageError, type StreamHead } from "./EventLog.ts"
import { foldOf } from "./InvariantGuard.ts"
import { type Archives, LogQueries } from "./LogQueries.ts"
import type { LogReader } from "./LogReader.ts"
import type { Rules } from "./LogRules.ts"
import { RecentEvents } from "./RecentEvents.ts"
import type { Rune } from "./Rune.ts"
import type { SnapshotOrder } from "./Snapshot.ts"
import { Soon } from "./Soon.ts"
import { SnapshotKeeper } from "./SnapshotKeeper.ts"
import { type Folds, type RecoveredAll, snapshotOf, type StreamFold } from "./StreamFold.ts"
import type { Snapshots } from "./StreamReader.ts"
import { type Positions, Subscribers } from "./Subscribers.ts"
import type { Walk } from "./Verify.ts"

/** A store that is open for writing. */
export interface Writable {
  readonly log: AdmittingLog
  readonly reader: LogReader
  readonly snapshots: Snapshots
  readonly archives: Archives
  readonly walk: Walk
  /** The newest rune of each stream. */
  readonly newest: Map<string, number>
  readonly failure: () => StorageError | undefined
  readonly failed: Effect.Effect<StorageError>
  readonly keep: (order: SnapshotOrder) => void
  readonly positions: Positions
  readonly erase: Archive.Erase
  /** Until nothing is on its way. */
  readonly settled: Effect.Effect<void>
}

const nowhere = new StorageError({
  reason: "no-archive",
  message: "This log is kept in memory: it has no folder for archives.",
  remedy: "Keep the log in a file."
})

/** Archives one stream at a time: each step is durable before the next. */
const archiving = (
  { archives: { folder, streams }, erase, log, reader }: Writable,
  append: Appender["append"],
  head: Effect.Effect<number>
): EventLog["Service"]["archive"] => {
  const lock = Semaphore.makeUnsafe(1)
  return (stream, draft) =>
    Effect.gen(function* () {
      if (folder === undefined) return yield* nowhere
      if (!log.admission.isSealed(stream) || !log.admission.isWhole(stream)) {
        const message = `${stream} is no closed conversation with a whole log`
        return yield* new RuneRefused({ kind: "session.archived", rule: "unsealed", message })
      }
      const volume = { reader, guard: log.admission.guard, folder, stream, head: yield* head }
      const isKnown = streams.has(stream)
      if (!isKnown) yield* Archive.write(volume)
      const archived = yield* Archive.intact(volume)
      const rune = isKnown ? undefined : (yield* append([draft(archived)]))[0]
      streams.add(stream)
      yield* Archive.erase(stream, archived, erase)
      return { archived, rune }
    }).pipe(Effect.uninterruptible, lock.withPermit)
}

/** Follows what becomes durable: the newest runes in memory, the newest rune of each stream, and what a snapshot lacks. */
const follow = (
  { log, newest }: Writable,
  {
    appender,
    keeper,
    now,
    recent
  }: {
    readonly recent: RecentEvents
    readonly appender: Appender
    readonly keeper: SnapshotKeeper
    readonly now: () => number
  }
): void => {
  log.watch({
    landed: (units) => {
      recent.publish(units)
      for (const { runes } of units) {
        for (const { eventId, stream } of runes) {
          newest.set(stream, eventId)
          keeper.landed(stream)
        }
      }
    },
    refused: (unit, refused) => appender.violated(unit, refused, now())
  })
}

/** No name of a fold: features' are words. */
const ITS_GUARD = "<guard>"

/** Recovers a stream, and makes the guard's states of it in the same pass. */
const recoveringGuard = (
  admission: AdmissionState,
  recover: EventLog["Service"]["recover"]
): EventLog["Service"]["recover"] => {
  const guard = foldOf(admission.guard)
  return <F extends Folds>(stream: string, folds: F) =>
    Effect.suspend(() => {
      if (admission.guardOf(stream) !== undefined) return recover(stream, folds)
      return Effect.map(recover(stream, { ...folds, [ITS_GUARD]: guard }), (all) => {
        const read = all as RecoveredAll<F> & RecoveredAll<{ readonly [ITS_GUARD]: typeof guard }>
        admission.restoreGuard(stream, read[ITS_GUARD].state)
        return read
      })
    })
}

export const make = Effect.fnUntraced(function* (of: Writable, rules: Rules, options: Options = defaultOptions) {
  const { failed, failure, keep, log, newest, reader, settled } = of
  const soon = yield* Soon
  const read = (stream: string) => Effect.asVoid(recover(stream, {}))
  const appender = new Appender({ log, failure, read, soon }, rules, options)
  const recent = new RecentEvents(log.head)
  if (log.flight === undefined) yield* Effect.forkScoped(appender.run)
  const clock = yield* Effect.clockWith(Effect.succeed)
  const head = Effect.sync(() => recent.head)
  const streams = Effect.sync((): ReadonlyArray<StreamHead> =>
    Array.from(newest, ([stream, eventId]) => ({ stream, eventId, isSealed: log.admission.isSealed(stream) }))
  )
  const queries = new LogQueries({
    ...of,
    rules,
    head,
    recent: (after) => recent.since(after),
    newestOf: (stream) => newest.get(stream) ?? 0,
    streams: newest.keys()
  })
  const recover = recoveringGuard(log.admission, queries.reads.recover)
  const keeper = new SnapshotKeeper(queries.streams)
  follow(of, { recent, appender, keeper, now: () => clock.currentTimeMillisUnsafe() })
  const keeping = yield* Effect.forkScoped(keeper.run)
  const { follow: subscribed } = new Subscribers({
    ...of,
    recent,
    page: (selection, after, upTo) => queries.page(selection, after, upTo)
  })
  const subscribe = (selection: Selection) => queries.subscribe(selection, recent)
  // what waits is still written, and told, before the end
  yield* Effect.addFinalizer(() =>
    appender.close.pipe(
      Effect.andThen(settled),
      Effect.andThen(Fiber.interrupt(keeping)),
      Effect.andThen(Effect.suspend(() => (failure() === undefined ? keeper.last : Effect.void))),
      Effect.andThen(Effect.sync(() => recent.close()))
    )
  )
  return EventLog.of({
    ...queries.reads,
    recover,
    append: appender.append,
    appendLazy: appender.appendLazy,
    subscribe,
    follow: subscribed,
    head,
    archive: archiving({ ...of, reader }, appender.append, head),
    failed,
    streams,
    keep: <S>(stream: string, fold: StreamFold<S>, state: S, eventId: number) =>
      keep(snapshotOf(stream, fold, state, eventId))
  })
})

/** A log that another process writes: what is there now can be read, and nothing else. */
export const makeReadOnly = (
  of: Pick<Writable, "archives" | "reader" | "snapshots" | "walk">,
  rules: Rules,
  where: string
) => {
  const refused = new StorageError({
    reason: "read-only",
    message: `${where} is open for reading alone.`,
    remedy: "Send the command to the daemon, which writes it."
  })
  const { reader } = of
  const queries = new LogQueries({
    ...of,
    rules,
    head: reader.lastCommitted,
    recent: () => undefined,
    newestOf: () => undefined,
    streams: [],
    keep: () => {}
  })
  const streamOf = ({ eventId, stream }: Rune): StreamHead => ({ stream, eventId, isSealed: false })
  return EventLog.of({
    ...queries.reads,
    append: () => Effect.fail(refused),
    appendLazy: () => Effect.void,
    archive: () => Effect.fail(refused),
    subscribe: queries.reads.read,
    follow: () => Effect.fail(refused),
    head: Effect.orDie(reader.lastCommitted),
    failed: Effect.never,
    streams: Effect.map(
      Stream.runFold(
        queries.reads.read({}),
        () => new Map<string, StreamHead>(),
        (all, rune) => all.set(rune.stream, streamOf(rune))
      ),
      (all) => [...all.values()]
    ),
    keep: () => {}
  })
}
