/**
 * StoreEventLog: implements the EventLog service with any log and store. Runes are appended through the log, and read
 * page by page. A subscription combines both.
 */
import { Effect, Fiber, Option, Queue, Semaphore, Stream } from "effect"
import { UnreadableParts } from "./UnreadableParts.ts"
import type { AdmissionState, Stop } from "./AdmissionState.ts"
import type { AdmittingLog } from "./AdmittingLog.ts"
import type { ActorLookup } from "./ActorLookup.ts"
import { Appender, defaultOptions, type Options } from "./Appender.ts"
import { type Erasing, MAX_FIELDS, sizeOf, textsIn, without } from "./Erasure.ts"
import {
  type Checked,
  type Damage,
  type Erasable,
  EventLog,
  RuneRefused,
  type Selection,
  StorageError,
  type StreamHead
} from "./EventLog.ts"
import { hashPayload } from "./HashChain.ts"
import * as Retention from "./Retention.ts"
import { foldOf } from "./InvariantGuard.ts"
import type { Change } from "./LogStore.ts"
import { LogQueries } from "./LogQueries.ts"
import type { LogReader } from "./LogReader.ts"
import type { Rules } from "./LogRules.ts"
import { RecentEvents } from "./RecentEvents.ts"
import * as OldArchives from "./OldArchives.ts"
import { readOwn } from "./OwnKinds.ts"
import type { Payload, Rune } from "./Rune.ts"
import type { Segments } from "./Segments.ts"
import type { SnapshotOrder } from "./Snapshot.ts"
import { parsePayload } from "./StoredRune.ts"
import * as SegmentLog from "./SegmentLog.ts"
import { NextTick } from "./NextTick.ts"
import { SnapshotKeeper } from "./SnapshotKeeper.ts"
import { type Folds, type RecoveredAll, snapshotOf, type StreamFold } from "./StreamFold.ts"
import type { Snapshots } from "./StreamReader.ts"
import { type Positions, type Skipped, Subscribers } from "./Subscribers.ts"
import type { Walk } from "./Verify.ts"
import { WholeCheck } from "./WholeCheck.ts"

export interface Writable {
  readonly log: AdmittingLog
  readonly reader: LogReader
  readonly lookup?: ActorLookup
  readonly snapshots: Snapshots
  readonly archives: OldArchives.Archives
  readonly walk: Walk
  readonly idleWalk?: Walk
  /** Result of the last check of the whole log, according to the home stream. */
  readonly checked?: Checked | null
  readonly refill?: () => void
  readonly newest: Map<string, number>
  readonly failure: () => StorageError | undefined
  readonly failed: Effect.Effect<StorageError>
  readonly keep: (order: SnapshotOrder) => void
  readonly positions: Positions
  /** Changes the store. The change is durable when the effect completes. */
  readonly change: (change: Change) => Effect.Effect<void, StorageError>
  /** Erasures that were begun but not finished, by the eventId of the rune to erase. */
  readonly unfinished: ReadonlyMap<number, Erasing>
  /** The objects that move runes to segments; omitted for a log without a file. */
  readonly segments?: SegmentLog.Parts & { readonly moved: StreamFold<unknown> }
  /** Completes when all appends are on disk. */
  readonly settled: Effect.Effect<void>
}

/** Appends the rune that marks a stream as archived, once per stream. */
const archiving = (
  { archives: { streams }, log }: Writable,
  append: Appender["append"],
  lock: Semaphore.Semaphore
): EventLog["Service"]["archive"] => {
  return (stream, draft) =>
    Effect.gen(function* () {
      if (!log.admission.isSealed(stream) || !log.admission.isWhole(stream)) {
        const message = `${stream} is no closed conversation with a whole log`
        return yield* new RuneRefused({ kind: "session.archived", rule: "unsealed", message })
      }
      if (streams.has(stream)) return undefined
      const [rune] = yield* append([draft])
      streams.add(stream)
      return rune
    }).pipe(Effect.uninterruptible, lock.withPermit)
}

/** Reads the erasures, each by the eventId of the erased rune. */
const erasuresIn = (queries: LogQueries, home: string): Effect.Effect<ReadonlyMap<number, Erasing>, StorageError> =>
  Stream.runFold(
    queries.reads.read({ stream: home, kinds: ["rune.erasing"] }),
    () => new Map<number, Erasing>(),
    (all, rune) => {
      const own = readOwn(rune)
      return own?.kind === "rune.erasing" ? all.set(own.payload.eventId, own.payload) : all
    }
  )

/** Kinds of runes whose text is part of states. Their text is never erased. */
const KEPT = new Set([
  "stream.checkpoint",
  "segment.sealed",
  "segment.rewritten",
  "log.begins",
  "log.repaired",
  "log.verified",
  "session.archived",
  "rune.erasing",
  "rune.erased",
  "invariant.violated"
])

const unerasable = (kind: string, message: string): RuneRefused => new RuneRefused({ kind, rule: "erase", message })

/** Finds the erasable text of a rune, and computes the payload without this text. */
const looking = ({ archives, reader }: Writable, rules: Rules) =>
  Effect.fnUntraced(function* (eventId: number) {
    const [stored] = eventId < 1 ? [] : yield* reader.at([eventId])
    if (stored === undefined) return yield* unerasable("", `there is no rune ${eventId}`)
    const { kind, payload, stream } = stored
    const kept = archives.kept.get(stream)
    if (kept !== undefined) return yield* unerasable(kind, `its text would stay in an archive: ${kept.message}`)
    const parsed = parsePayload(stored)
    if (payload === null || parsed === undefined) {
      return yield* unerasable(kind, `the payload of rune ${eventId} cannot be read: \`agentd verify\` says more`)
    }
    const paths = KEPT.has(kind) ? [] : textsIn(parsed)
    if (paths.length === 0 || paths.length > MAX_FIELDS) {
      const message = `rune ${eventId} (${kind}) holds no text that can be erased: ids, names and figures stay, since states are made of them`
      return yield* unerasable(kind, message)
    }
    const left = without(payload, paths)
    if (!rules.kinds.accepts(kind, JSON.parse(left))) {
      return yield* unerasable(kind, `rune ${eventId} (${kind}) would not be one of its kind without its texts`)
    }
    const fields = paths.map((path) => path.join("."))
    const found: Erasable = { eventId, stream, kind, fields, size: sizeOf(parsed, paths) }
    return { found, paths, left: { text: left, hash: hashPayload(left) } }
  })

/** Erases the text of one rune at a time. Each step is durable before the next one begins. */
const erasing = (
  of: Writable,
  rules: Rules,
  parts: {
    readonly recent: RecentEvents
    readonly append: Appender["append"]
    readonly lock: Semaphore.Semaphore
    readonly erasures: OldArchives.Parts["erasures"]
  }
) => {
  const { change, reader, segments, unfinished } = of
  const { append, erasures, lock, recent } = parts

  const look = looking(of, rules)

  /** Performs all steps of an erasure. Repeating a step that was already done has no effect. */
  const finish = (begun: Erasing) =>
    Effect.gen(function* () {
      const { by, eventId, stream } = begun
      yield* change({ _tag: "Rewrite", erasing: begun })
      if (segments !== undefined) yield* SegmentLog.rewrite(segments, { append, erasures, home: rules.home })(begun)
      const [stored] = yield* reader.at([eventId])
      if (stored !== undefined && stored.payload !== null) recent.replace(eventId, parsePayload(stored) ?? {})
      yield* append([
        { stream: rules.home, kind: "rune.erased", actor: "log/eraser", payload: { eventId, stream, by } }
      ])
    })

  return {
    erasable: (eventId: number) => Effect.map(look(eventId), ({ found }) => found),
    erase: (eventId: number, by: string) =>
      Effect.gen(function* () {
        const { found, left, paths } = yield* look(eventId)
        const begun: Erasing = { eventId, stream: found.stream, fields: paths, left: left.hash, by }
        yield* append([
          { stream: rules.home, kind: "rune.erasing", actor: "log/eraser", payload: begun as unknown as Payload }
        ])
        yield* finish(begun)
        return found
      }).pipe(Effect.uninterruptible, lock.withPermit),
    /** Finishes the erasures that a killed daemon has left unfinished. */
    resume: Effect.suspend(() =>
      Effect.forEach(
        [...unfinished.values()],
        (begun) =>
          Effect.catch(finish(begun), ({ message }) =>
            Effect.logWarning(
              `the erasure of rune ${begun.eventId} is not finished, the next start goes on: ${message}`
            )
          ),
        { discard: true }
      )
    ).pipe(Effect.uninterruptible, lock.withPermit)
  }
}

/** Updates the runes in memory and the newest rune of each stream, and counts runes until the next snapshots. */
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

/** The halted streams: as a list, and as a stream that also emits those that are halted later. */
const damagesOf = ({ log: { admission } }: Writable) => {
  const damaged = Effect.sync(() => admission.stops.map(([stream, { message }]): Damage => ({ stream, message })))
  return {
    damaged,
    damages: Stream.callback<Damage>((queue) =>
      Effect.acquireRelease(
        Effect.sync(() => {
          const hear = (stream: string, { message }: Stop) => void Queue.offerUnsafe(queue, { stream, message })
          for (const [stream, stop] of admission.stops) hear(stream, stop)
          admission.onHalt.add(hear)
          return hear
        }),
        (hear) => Effect.sync(() => admission.onHalt.delete(hear))
      )
    )
  }
}

/** Reports a rune that a subscriber has skipped, so that the user is notified by email. */
const skipping =
  ({ home }: Rules, append: Appender["append"], admission: AdmissionState) =>
  ({ eventId, message, rune, subscriber }: Skipped): Effect.Effect<void> =>
    Effect.gen(function* () {
      const text = `${subscriber} goes on without rune ${eventId}: ${message}`
      yield* Effect.logError(`runes: ${text}`)
      // do not report a skipped report, because that would never end
      if (rune?.kind === "invariant.violated" || !admission.isOpen(home)) return
      const { actor = "", kind = "", stream = home } = rune ?? {}
      const payload = { rule: "INV-RUNE-READ", severity: "ERROR", kind, actor, stream, message: text }
      const told = append([
        { stream: home, kind: "invariant.violated", actor: `log/${subscriber}`, trigger: "follow", payload }
      ])
      yield* Effect.catch(told, (error) => Effect.logError(`nobody is mailed of it: ${error.message}`))
    })

/** Key of the guard's fold. The angle brackets ensure that no feature's fold has the same name. */
const ITS_GUARD = "<guard>"

/** Recovers a stream and, while its runes are read, restores the guard's states for the stream. */
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

/** Finishes in the background what a killed daemon has left unfinished: segments, then erasures, then archives. */
const resuming = (
  { archives, segments, unfinished }: Writable,
  lock: Semaphore.Semaphore,
  rest: { readonly erasures: Effect.Effect<void>; readonly archives: Effect.Effect<void> }
) => {
  const begun = segments !== undefined && SegmentLog.isBegun(segments) ? SegmentLog.resume(segments) : undefined
  const hasArchives = OldArchives.areThere(archives)
  if (begun === undefined && unfinished.size === 0 && !hasArchives) return Effect.void
  const finished = Effect.catch(begun ?? Effect.void, (error) =>
    Effect.logWarning(`a segment is not finished, the next start goes on: ${error.message}`)
  )
  return Effect.forkScoped(
    lock
      .withPermit(finished)
      .pipe(
        Effect.andThen(unfinished.size > 0 ? rest.erasures : Effect.void),
        Effect.andThen(hasArchives ? rest.archives : Effect.void)
      )
  )
}

/** Number of permits of the semaphore `files`. A check takes one permit; a deletion of segments takes all of them. */
const READERS = 1_000

interface Locks {
  readonly lock: Semaphore.Semaphore
  /** Protects the segment files: a check of the whole log holds a permit while it reads them. */
  readonly files: Semaphore.Semaphore
}

/** The methods that move the oldest runes to segments, and that delete segments while no check is reading the files. */
const sealingOf = (
  { archives, log, segments }: Writable,
  rules: Rules,
  append: Appender["append"],
  { files, lock }: Locks
): Pick<EventLog["Service"], "seal" | "sealed" | "forget"> => {
  const nothing = () => Effect.succeed(undefined)
  if (segments === undefined) {
    return { seal: nothing, sealed: Effect.succeed({ last: 0, bytes: 0, deleted: 0 }), forget: nothing }
  }
  const { segments: all } = segments
  const folds = [...rules.folds, segments.moved, foldOf(rules.guard)]
  const isArchived = (stream: string) => archives.streams.has(stream)
  const seal = SegmentLog.seal(segments, append, rules.home)
  const forget = Retention.forget(segments, { append, rules, folds, isArchived })
  return {
    seal: (sealing) => lock.withPermit(seal(sealing)),
    sealed: Effect.sync(() => ({ last: all.last, bytes: all.bytes, deleted: all.deleted })),
    forget: (which) =>
      Effect.suspend(() => {
        // delete nothing while a stream is halted, because its damage can still be repaired
        if (log.admission.stops.length > 0) return Effect.succeed(undefined)
        return Effect.map(files.withPermitsIfAvailable(READERS)(forget(which)), Option.getOrUndefined)
      }).pipe(lock.withPermit)
  }
}

/** The methods that check the whole log, and that report which parts of streams were set aside. */
const healthOf = (
  { archives, checked = null }: Writable,
  rules: Rules,
  append: Appender["append"],
  { reads: { tail, verify, verifyIdly }, streams }: LogQueries,
  files: Semaphore.Semaphore
): Pick<EventLog["Service"], "verify" | "scrub" | "checked" | "reading" | "setAside"> => {
  const whole = new WholeCheck(rules, append, checked)
  const aside = new UnreadableParts(rules, append, tail)
  return {
    verify: whole.noting(files.withPermit(verify)),
    scrub: whole.telling(files.withPermit(verifyIdly)),
    checked: Effect.sync(() => whole.last),
    reading: Effect.sync(() => {
      const unread = OldArchives.told(archives)
      return { ...streams.reading, aside: aside.all, ...(unread === undefined ? {} : { archives: unread }) }
    }),
    setAside: aside.add
  }
}

export const make = Effect.fnUntraced(function* (of: Writable, rules: Rules, options: Options = defaultOptions) {
  const { failed, failure, keep, log, newest, settled } = of
  const soon = yield* NextTick
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
    segments: of.segments && (() => of.segments!.segments),
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
    skipped: skipping(rules, appender.append, log.admission),
    page: (selection, after, upTo) => queries.page(selection, after, upTo)
  })
  const lock = Semaphore.makeUnsafe(1)
  const files = Semaphore.makeUnsafe(READERS)
  const erasures = erasuresIn(queries, rules.home)
  const eraser = erasing(of, rules, { recent, append: appender.append, lock, erasures })
  const parts = { ...of, segments: of.segments, append: appender.append, home: rules.home, erasures, lock }
  yield* resuming(of, lock, { erasures: eraser.resume, archives: OldArchives.restoreAll(parts) })
  const subscribe = (selection: Selection) => queries.subscribe(selection, recent)
  // when the log closes, waiting appends are still written and reported
  yield* Effect.addFinalizer(() =>
    appender.close.pipe(
      Effect.andThen(settled),
      Effect.andThen(Fiber.interrupt(keeping)),
      Effect.andThen(Effect.suspend(() => (failure() === undefined ? keeper.last : Effect.void))),
      Effect.andThen(Effect.sync(() => recent.close()))
    )
  )
  const { verifyIdly: _, ...reads } = queries.reads
  return EventLog.of({
    ...reads,
    ...damagesOf(of),
    recover,
    append: appender.append,
    appendLazy: appender.appendLazy,
    flushed: appender.flushed(() => recent.head),
    subscribe,
    follow: subscribed,
    head,
    assigned: Effect.sync(() => log.head),
    archive: archiving(of, appender.append, lock),
    erasable: eraser.erasable,
    erase: eraser.erase,
    ...sealingOf(of, rules, appender.append, { lock, files }),
    ...healthOf(of, rules, appender.append, queries, files),
    failed,
    streams,
    keep: <S>(stream: string, fold: StreamFold<S>, state: S, eventId: number) =>
      keep(snapshotOf(stream, fold, state, eventId))
  })
})

/** For a log that another process writes: all operations except reading fail or have no effect. */
export const makeReadOnly = (
  of: Pick<Writable, "archives" | "reader" | "snapshots" | "walk"> & {
    readonly segments: () => Segments
  },
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
  const { verifyIdly: _, ...reads } = queries.reads
  const streamOf = ({ eventId, stream }: Rune): StreamHead => ({ stream, eventId, isSealed: false })
  return EventLog.of({
    ...reads,
    append: () => Effect.fail(refused),
    appendLazy: () => Effect.void,
    flushed: Effect.void,
    archive: () => Effect.fail(refused),
    erasable: () => Effect.fail(refused),
    erase: () => Effect.fail(refused),
    seal: () => Effect.fail(refused),
    sealed: Effect.succeed({ last: 0, bytes: 0, deleted: 0 }),
    forget: () => Effect.fail(refused),
    damaged: Effect.succeed([]),
    damages: Stream.empty,
    scrub: Effect.fail(refused),
    reading: Effect.sync(() => ({ ...queries.streams.reading, aside: [] })),
    setAside: () => Effect.void,
    checked: Effect.succeed(null),
    subscribe: queries.reads.read,
    follow: () => Effect.fail(refused),
    head: Effect.orDie(reader.lastCommitted),
    assigned: Effect.orDie(reader.lastCommitted),
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
