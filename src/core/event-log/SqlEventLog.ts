/**
 * SqlEventLog: the log in an SQLite file.
 *
 * When the log is opened, its schema is migrated, and the newest rune of each stream is restored. The guard's states of
 * a stream are read together with the stream. The chains of the newest runes are checked, and a stream with a broken
 * chain is halted. Problems of the file are reported as a StorageError with a remedy.
 */
import { Context, Duration, Effect, Layer, Queue, type Scope } from "effect"
import { closeSync, fsyncSync, mkdirSync, openSync, renameSync, rmSync } from "node:fs"
import { dirname, join } from "node:path"
import { AdmissionState, type StreamState, UnreadGuard } from "./AdmissionState.ts"
import { ActorLookup } from "./ActorLookup.ts"
import { FOLDER } from "./OldArchives.ts"
import { defaultLimits, EventDraft, type Limits } from "./EventDraft.ts"
import type { Erasing } from "./Erasure.ts"
import { type Checked, EventLog, type Problem, StorageError } from "./EventLog.ts"
import { foldOf } from "./InvariantGuard.ts"
import { Log } from "./Log.ts"
import type { LogReader } from "./LogReader.ts"
import { LogRules, type Rules } from "./LogRules.ts"
import type { Change, Opened } from "./LogStore.ts"
import * as Migrations from "./Migrations.ts"
import { readOwn } from "./OwnKinds.ts"
import * as WalMark from "./WalMark.ts"
import { Redact } from "./Redact.ts"
import { NextTick } from "./NextTick.ts"
import type { SnapshotOrder } from "./Snapshot.ts"
import {
  type InlineDisk,
  openInline,
  openThreaded,
  type OpenStore,
  type Options as LogOptions,
  type SqliteLog
} from "./SqliteLog.ts"
import { type Made, SEGMENTS } from "./SegmentFile.ts"
import { SegmentReader } from "./SegmentReader.ts"
import { type Listed, listedIn, Segments } from "./Segments.ts"
import { type Database, nodeSqlite, openStore, using } from "./Sqlite.ts"
import type { StoreOptions } from "./SqliteStore.ts"
import * as SqlReader from "./SqlReader.ts"
import { storageError, untilItPasses } from "./StorageFailure.ts"
import { toRunes } from "./StoredRune.ts"
import * as StoreEventLog from "./StoreEventLog.ts"
import { syncFolder } from "./SyncFolder.ts"
import { snapshotOf, type StreamFold } from "./StreamFold.ts"
import { actorFileOf, sideFileOf } from "./SideFile.ts"
import { noSnapshots, nothingRecent, recover, type Snapshots, WORTH_KEEPING } from "./StreamReader.ts"
import * as ReportedSegments from "./ReportedSegments.ts"
import { type Walk, walkHere, walkThere } from "./Verify.ts"
import * as WholeCheck from "./WholeCheck.ts"

export interface Options extends Partial<Limits> {
  /** Absolute path. The file and its folder are created if missing, readable only by this user. */
  readonly file: string
  /** Maximum size of the store in bytes; when it is reached, the store is full. */
  readonly maxBytes?: number
  /** How long a write is retried if the file is locked or the disk is full. After that, the log fails permanently. */
  readonly giveUpAfter?: Duration.Input
}

type Open = (options: LogOptions) => Effect.Effect<OpenStore, StorageError, Scope.Scope>

const segmentsOf = (file: string): string => join(dirname(file), SEGMENTS)

/** Returns the segments that the store lists now. */
const listed = (file: string): ReadonlyArray<Listed> => using(nodeSqlite.open(file, { readOnly: true }), listedIn)

const archiveOf = (file: string): string => join(dirname(file), FOLDER)

const makeFile = (file: string) =>
  Effect.try({
    try: () => {
      mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
      for (const path of [file, sideFileOf(file)]) closeSync(openSync(path, "a", 0o600))
      for (const ending of ["", "-wal", "-shm"]) rmSync(`${actorFileOf(file)}${ending}`, { force: true })
    },
    catch: (cause) =>
      new StorageError({
        reason: "cannot-open",
        message: `${file} cannot be written: ${cause instanceof Error ? cause.message : String(cause)}`,
        remedy: "Make the file and its folder writable for this user, or name another state directory with --state."
      })
  })

const attempt = <A>(file: string, work: () => A): Effect.Effect<A, StorageError> =>
  Effect.try({ try: work, catch: (cause) => storageError(file, cause) })

/** Fails if the file was copied without its write-ahead log, because it then lacks the newest runes. */
const checkWhole = (file: string): Effect.Effect<void, StorageError> =>
  attempt(file, () => {
    if (WalMark.isBare(file)) throw new StorageError(WalMark.refusal(file))
  })

/** State of a fold over the home stream: archived streams, segments, and unfinished erasures. */
interface Moved {
  readonly archived: ReadonlyArray<string>
  readonly unfinished: ReadonlyArray<Erasing>
  readonly segments: ReadonlyArray<Made>
  /** Result of the last check of the whole log; null if there was none. */
  readonly checked: Checked | null
}

const unmoved: Moved = { archived: [], unfinished: [], segments: [], checked: null }

const toldOf = ({ segments }: Moved): Map<number, Made> => new Map(segments.map((made) => [made.first, made]))

const movedFold = ({ archives }: Rules): StreamFold<Moved> => ({
  name: "archives",
  version: 4,
  initial: unmoved,
  apply: (before, rune) => {
    const checked = WholeCheck.apply(before.checked, rune)
    const moved = checked === before.checked ? before : { ...before, checked }
    if (rune.kind === archives.kind) return { ...moved, archived: [...moved.archived, archives.streamOf(rune)] }
    const own = readOwn(rune)
    if (own?.kind === "rune.erasing") return { ...moved, unfinished: [...moved.unfinished, own.payload] }
    const told = toldOf(moved)
    if (ReportedSegments.note(told, own)) return { ...moved, segments: [...told.values()] }
    if (own?.kind !== "rune.erased") return moved
    const { eventId } = own.payload
    return { ...moved, unfinished: moved.unfinished.filter((erasing) => erasing.eventId !== eventId) }
  }
})

interface Restored {
  readonly admission: AdmissionState
  readonly newest: Map<string, number>
  readonly archived: Set<string>
  /** Unfinished erasures, by the eventId of the rune to erase. Kept up to date while the log is open. */
  readonly unfinished: Map<number, Erasing>
  /** Segments, by the eventId of their first rune. Kept up to date while the log is open. */
  readonly told: Map<number, Made>
  readonly checked: Checked | null
  /** Snapshots of states that were folded from many runes, saved so that the next start reads only later runes. */
  readonly worth: ReadonlyArray<SnapshotOrder>
}

/** Halts a stream whose hash chain is broken, so that it accepts no more runes. Other problems are only logged. */
const halt = (admission: AdmissionState, { eventId, message, rule, stream }: Problem) => {
  if (rule !== "INV-HASH-VALID" || stream === "") return Effect.logError(`runes: after rune ${eventId} ${message}`)
  admission.halt(stream, {
    rule,
    message: `its chain is broken at rune ${eventId}: ${message}; \`agentd verify\` says more`
  })
  return Effect.logError(`runes: stream ${stream} is halted at rune ${eventId}: ${message}`)
}

/**
 * Handles problems that are found while the log is in use: halts streams with broken chains, reports the damage in the
 * log, and logs a warning if a chore fails.
 */
const minding = (log: SqliteLog, { home, severityOf }: Rules, service: EventLog["Service"]) =>
  Effect.gen(function* () {
    const found = yield* Queue.unbounded<Problem | string>()
    log.onDamage = (problem) => void Queue.offerUnsafe(found, problem)
    log.onTrouble = (message) => void Queue.offerUnsafe(found, message)
    return yield* Effect.forever(
      Effect.gen(function* () {
        const problem = yield* Queue.take(found)
        if (typeof problem === "string") return yield* Effect.logWarning(`runes: ${problem}`)
        yield* halt(log.admission, problem)
        const { eventId, rule } = problem
        const stream = problem.stream === "" ? home : problem.stream
        const message = `the chain of ${stream} is broken at rune ${eventId}: ${problem.message}`
        const payload = { rule, severity: severityOf(rule) ?? "FATAL", kind: "", actor: "", stream, message }
        if (!log.admission.isOpen(home)) return
        yield* Effect.ignore(
          service.append([{ stream: home, kind: "invariant.violated", actor: "log/check", trigger: "check", payload }])
        )
      })
    )
  })

/** Reports in the home stream that acknowledged runes are missing, so that the user is notified by email. */
const tellGap = Effect.fnUntraced(function* ({ home }: Rules, service: EventLog["Service"], message: string) {
  yield* Effect.logError(`runes: ${message}`)
  const payload = { rule: "INV-EVENTID-MONOTONIC", severity: "FATAL", kind: "", actor: "", stream: home, message }
  const told = service.append([
    { stream: home, kind: "invariant.violated", actor: "log/check", trigger: "open", payload }
  ])
  yield* Effect.catch(told, (error) => Effect.logError(`nobody is mailed of it: ${error.message}`))
})

/** Reports missing acknowledged runes. `behind`: description of what is missing; undefined if no runes are missing. */
const tellingOf = Effect.fnUntraced(function* (behind: string | undefined, rules: Rules, service: EventLog["Service"]) {
  if (behind === undefined) return service
  yield* tellGap(rules, service, behind)
  return EventLog.of({ ...service, reading: Effect.map(service.reading, (of) => ({ ...of, behind })) })
})

/** Restores the states against which appends are checked. */
const restore = Effect.fnUntraced(function* (
  rules: Rules,
  opened: Opened,
  reader: LogReader,
  snapshots: Snapshots,
  segments: Segments
) {
  const { guard, home, kinds } = rules
  const source = { reader, snapshots, shown: toRunes, recent: nothingRecent, beginning: () => segments.beginning }
  const streams = new Map<string, StreamState>()
  const newest = new Map<string, number>()
  const worth: Array<SnapshotOrder> = []
  let moved: Moved = unmoved
  for (const [stream, head] of opened.heads) {
    newest.set(stream, head.eventId)
    if (stream === home) {
      const fold = movedFold(rules)
      const found = (yield* recover(source, { stream, newest: head.eventId }, { fold })).fold
      moved = found.state
      if (found.read >= WORTH_KEEPING) worth.push(snapshotOf(stream, fold, moved, found.eventId))
    }
    const { guarded, isSealed, seq } = head
    streams.set(stream, { seq, isSealed, guard: isSealed || guarded === 0 ? guard.initial : new UnreadGuard() })
  }
  const admission = new AdmissionState({ guard, kinds, head: opened.head, streams })
  for (const problem of opened.problems) yield* halt(admission, problem)
  const unfinished = new Map(moved.unfinished.map((erasing) => [erasing.eventId, erasing]))
  const told = toldOf(moved)
  return {
    admission,
    newest,
    archived: new Set(moved.archived),
    unfinished,
    told,
    checked: moved.checked,
    worth
  } satisfies Restored
})

/** Number of guarded runes of a stream after which a new snapshot of its guard's state is saved. */
const KEEP_EVERY = 512

/**
 * Saves states from time to time and when the log closes, so that the next start need not fold them again. Only states
 * at durable runes are saved.
 */
const keepStates = (
  log: SqliteLog,
  rules: Rules,
  { archived, newest, told, unfinished, ...restored }: Restored,
  soon: NextTick
): Effect.Effect<void> => {
  const { archives, home } = rules
  const guardedKinds = new Set(rules.guard.kinds)
  /** For each stream: number of guarded runes since the guard's state was saved, and eventId of the newest of them. */
  const changed = new Map<string, { count: number; eventId: number }>()
  let isHomeChanged = false
  let { checked } = restored
  const fold = foldOf(rules.guard)
  const keep = (stream: string, eventId: number) => {
    changed.delete(stream)
    const { guard } = rules
    const states = log.admission.guardOf(stream)
    if (states !== undefined && states !== guard.initial) log.keep(snapshotOf(stream, fold, states, eventId))
  }
  log.watch({
    landed: (units) => {
      for (const { runes } of units) {
        for (const rune of runes) {
          const { actor, eventId, kind, stream } = rune
          if (stream === home) {
            isHomeChanged = true
            checked = WholeCheck.apply(checked, rune)
            const own = readOwn(rune)
            if (own?.kind === "rune.erasing") unfinished.set(own.payload.eventId, own.payload)
            else if (own?.kind === "rune.erased") unfinished.delete(own.payload.eventId)
            else ReportedSegments.note(told, own)
          }
          if (stream === home && kind === archives.kind) archived.add(archives.streamOf({ actor }))
          if (!guardedKinds.has(kind)) continue
          const count = (changed.get(stream)?.count ?? 0) + 1
          changed.set(stream, { count, eventId })
        }
      }
      soon(() => {
        if (log.flight.size > 0) return
        for (const [stream, { count, eventId }] of changed) if (count >= KEEP_EVERY) keep(stream, eventId)
      })
    },
    refused: () => {}
  })
  return Effect.sync(() => {
    if (log.failure !== undefined) return
    for (const [stream, { eventId }] of changed) keep(stream, eventId)
    if (!isHomeChanged) return
    const moved = {
      archived: [...archived],
      unfinished: [...unfinished.values()],
      segments: [...told.values()],
      checked
    }
    log.keep(snapshotOf(home, movedFold(rules), moved, newest.get(home)!))
  })
}

/** Saves a copy of a store next to it, readable only by its owner. When this returns, the copy is on disk. */
const keep = (database: Database, file: string, copy: string): void => {
  const part = `${copy}.part`
  try {
    rmSync(part, { force: true })
    // VACUUM INTO accepts an existing empty file, and leaves its mode unchanged
    closeSync(openSync(part, "wx", 0o600))
    database.prepare("VACUUM INTO ?").run(part)
    const handle = openSync(part, "r")
    try {
      fsyncSync(handle)
    } finally {
      closeSync(handle)
    }
    renameSync(part, copy)
    syncFolder(dirname(file))
  } catch (cause) {
    throw storageError(copy, cause)
  }
}

/** Copies an older store, then migrates it. If the disk has no space for the copy, the store is not changed. */
const migrate = Effect.fnUntraced(function* (options: Options, giveUpAfter: Duration.Duration) {
  const { file } = options
  const copied = yield* untilItPasses(giveUpAfter)(
    attempt(file, () =>
      using(openStore(options), (database) => {
        const version = Migrations.olderVersion(database, file)
        const copy = `${file}.schema-${version}`
        if (version !== undefined) keep(database, file, copy)
        Migrations.migrate(database, file)
        // closing this connection can move the write-ahead log into the file and delete it, so clear the file's mark
        database.exec("PRAGMA user_version = 0")
        return version === undefined ? undefined : { version, copy }
      })
    )
  )
  if (copied === undefined) return
  yield* Effect.logInfo(
    `the store was brought from schema ${copied.version} to ${Migrations.SCHEMA_VERSION}; as it was: ${copied.copy}`
  )
})

const prepare = (options: Options, giveUpAfter: Duration.Duration) =>
  Effect.andThen(checkWhole(options.file), Effect.andThen(makeFile(options.file), migrate(options, giveUpAfter)))

/** Opens a connection for reading on this thread, in small pieces. */
const reading = (file: string): Effect.Effect<Database, StorageError, Scope.Scope> =>
  Effect.acquireRelease(
    attempt(file, () => openStore({ file, readOnly: true })),
    (database) => Effect.sync(() => database.close())
  )

const storeOf = ({ guard, home, kinds }: Rules, { file, maxBytes }: Options): StoreOptions => ({
  file,
  home,
  seals: kinds.sealing,
  guarded: guard.kinds,
  ...(maxBytes === undefined ? {} : { maxBytes })
})

const writable = (
  open: Open,
  walk: (file: string, reader: LogReader, segments: Segments) => Walk,
  idleWalk?: (file: string) => Walk
) =>
  Effect.fnUntraced(function* (options: Options) {
    const { file } = options
    const rules = yield* LogRules
    const redact = yield* Redact
    const giveUpAfter = Duration.fromInputUnsafe(options.giveUpAfter ?? "10 seconds")
    yield* prepare(options, giveUpAfter)
    const store = storeOf(rules, options)
    const { log: logOver, opened } = yield* untilItPasses(giveUpAfter)(
      open({ store, giveUpAfter: Duration.toMillis(giveUpAfter) })
    )
    yield* Effect.sync(() => WalMark.accepted(file))
    const folder = segmentsOf(file)
    const segments = yield* attempt(file, () => new Segments(folder, listed(file)))
    const reader = new SegmentReader(SqlReader.make(yield* reading(file), { file, giveUpAfter }), () => segments)
    let damaged = () => {}
    const lookup = yield* Effect.acquireRelease(
      Effect.sync(() => new ActorLookup(sideFileOf(file), () => damaged())),
      (opened) => Effect.sync(() => opened.close())
    )
    const snapshots: Snapshots = { get: (stream, name) => Effect.sync(() => lookup.snapshot(stream, name)) }
    const restored = yield* restore(rules, opened, reader, snapshots, segments)
    const limits = {
      maxRuneBytes: options.maxRuneBytes ?? defaultLimits.maxRuneBytes,
      maxDrafts: options.maxDrafts ?? defaultLimits.maxDrafts
    }
    const drafts = new EventDraft(rules.kinds, redact.json, limits)
    const soon = yield* NextTick
    const log = yield* logOver({ admission: restored.admission, drafts, soon })
    damaged = () => log.reindex()
    for (const order of restored.worth) log.keep(order)
    const keepLast = keepStates(log, rules, restored, soon)
    yield* Effect.addFinalizer(() => Effect.andThen(keepLast, log.close))
    const change = (change: Change) => untilItPasses(giveUpAfter)(log.change(change))
    const { told } = restored
    const moved = movedFold(rules)
    const service = yield* StoreEventLog.make(
      {
        log,
        reader,
        lookup,
        snapshots,
        archives: { folder: archiveOf(file), streams: restored.archived, kept: new Map() },
        walk: walk(file, reader, segments),
        ...(idleWalk === undefined ? {} : { idleWalk: idleWalk(file) }),
        checked: restored.checked,
        refill: damaged,
        newest: restored.newest,
        failure: () => log.failure,
        failed: log.failed,
        keep: (order) => log.keep(order),
        positions: {
          get: (name) => Effect.sync(() => lookup.position(name)),
          keep: (name, eventId) => log.keepPosition(name, eventId)
        },
        change,
        unfinished: restored.unfinished,
        segments: { seal: (sealing) => log.seal(sealing), change, folder, segments, told, moved },
        settled: log.settled
      },
      rules
    )
    yield* Effect.forkScoped(minding(log, rules, service), { startImmediately: true })
    return Context.make(EventLog, yield* tellingOf(opened.behind, rules, service)).pipe(Context.add(Log, log))
  })

/** Pause (ms) of a background check per thousand runes. These take some 5 ms, so the check uses a tenth of a core. */
const IDLE = 40

const idly = (file: string): Walk => walkThere(file, IDLE)

/**
 * Opens or creates the file, with a separate thread for the database. Only one program may open a file for writing, and
 * it must hold the StoreLock.
 */
export const layer = (options: Options): Layer.Layer<EventLog | Log, StorageError, Redact | LogRules> =>
  Layer.effectContext(writable(openThreaded, (file) => walkThere(file), idly)(options))

/** Like `layer`, but without a thread. For tests with virtual time, and for environments that have no threads. */
export const layerInline = (
  options: Options,
  disk?: InlineDisk
): Layer.Layer<EventLog | Log, StorageError, Redact | LogRules> =>
  Layer.effectContext(
    writable(
      (store) => openInline(store, disk),
      (file, reader, segments) => walkHere(reader, segments, disk === undefined ? file : undefined)
    )(options)
  )

const readable = Effect.fnUntraced(function* (file: string) {
  const rules = yield* LogRules
  yield* checkWhole(file)
  const database = yield* reading(file)
  yield* attempt(file, () => Migrations.requireCurrent(database, file))
  const folder = segmentsOf(file)
  const segments = new Segments(folder, [])
  let known = "[]"
  // read the list each time, because the daemon can move more runes to segments meanwhile
  const now = () => {
    const all = listed(file)
    const text = JSON.stringify(all)
    if (text !== known) segments.list(all)
    known = text
    return segments
  }
  const reader = new SegmentReader(SqlReader.make(database, { file, giveUpAfter: Duration.seconds(1) }), now)
  const of = {
    reader,
    snapshots: noSnapshots,
    archives: { folder: archiveOf(file), streams: new Set<string>(), kept: new Map() },
    segments: now,
    walk: walkThere(file)
  }
  return StoreEventLog.makeReadOnly(of, rules, file)
})

/** A log that reads even while a daemon writes to the file. Appends fail. The head is read from the store each time. */
export const layerReadOnly = (options: Pick<Options, "file">): Layer.Layer<EventLog, StorageError, LogRules> =>
  Layer.effect(EventLog, readable(options.file))
