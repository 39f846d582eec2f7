/**
 * SqliteLog: the durable log, for use on the actors' thread. `ThreadedLog` accesses the database in a separate thread.
 * `InlineLog` commits on the same thread, with the same store code, for the simulator and for environments without
 * threads.
 *
 * A storage error that lasts longer than its retry time is fatal: `failure` is set permanently, and no more appends
 * become durable.
 */
import { Deferred, Effect, Exit, Latch, type Scope } from "effect"
import type { AdmissionState } from "./AdmissionState.ts"
import { AdmittingLog } from "./AdmittingLog.ts"
import type { EventDraft } from "./EventDraft.ts"
import { type Problem, type Sealing, StorageError } from "./EventLog.ts"
import { errorOf, type Failure, MAX_GROUP, type Outcome } from "./GroupCommit.ts"
import { Flight, shareOf, type Unit } from "./Log.ts"
import { DONE, EPOCH } from "./LogControl.ts"
import { type Change, LogStore, type Opened, type Order } from "./LogStore.ts"
import { LogWorker } from "./LogWorker.ts"
import { rowOf } from "./Row.ts"
import type { Sealed } from "./Sealer.ts"
import type { Made } from "./SegmentFile.ts"
import type { NextTick } from "./NextTick.ts"
import type { SnapshotOrder } from "./Snapshot.ts"
import type { StoreOptions } from "./SqliteStore.ts"
import { storageError } from "./StorageFailure.ts"
import { logThread } from "./ThreadFile.ts"

export interface Parts {
  readonly admission: AdmissionState
  readonly drafts: EventDraft
  readonly soon: NextTick
}

export interface Options {
  readonly store: StoreOptions
  /** How long (ms) a write is retried if the file is locked or the disk is full, before the log fails permanently. */
  readonly giveUpAfter: number
}

/** An open store. `log` creates the log for this store when the restored state is known. */
export interface OpenStore {
  readonly opened: Opened
  readonly log: (parts: Parts) => Effect.Effect<SqliteLog, never, Scope.Scope>
}

export abstract class SqliteLog extends AdmittingLog {
  readonly flight = new Flight()
  durable: number
  private readonly gaveUp = Deferred.makeUnsafe<StorageError>()
  failure: StorageError | undefined = undefined
  /** Called when a problem in older runes is found while the log is in use. */
  onDamage: (problem: Problem) => void = () => {}
  /** Called with a message when background work (a chore) fails; the work is retried later. */
  onTrouble: (message: string) => void = () => {}
  protected readonly file: string
  private readonly soon: NextTick
  private idlers: Array<() => void> = []
  private isFlushing = false
  private readonly flushes = (): void => {
    this.isFlushing = false
    this.flush()
  }

  constructor({ admission, drafts, soon }: Parts, file: string) {
    super(admission, drafts)
    this.soon = soon
    this.durable = admission.head
    this.file = file
  }

  share(ready: number): number {
    return shareOf(this.flight.owners + ready)
  }

  /** Throws if the storage has failed permanently, so that no caller waits for a log that no longer accepts runes. */
  append(unit: Unit): boolean {
    if (this.failure !== undefined) throw this.failure
    this.admission.take(unit, false)
    this.flight.push(unit)
    this.send(unit)
    if (!this.isFlushing) {
      // flush when the current call stack has ended, so that all its appends become one group
      this.isFlushing = true
      this.soon(this.flushes)
    }
    return false
  }

  /** Saves a snapshot when the store is idle. No caller waits for it. */
  keep(order: SnapshotOrder): void {
    if (this.failure === undefined) this.carryOut({ _tag: "Snapshot", order })
  }

  /** Rebuilds the side file next to the store, after it could not be read. */
  reindex(): void {
    if (this.failure === undefined) this.carryOut({ _tag: "Reindex" })
  }

  /** Saves the position of a subscriber when the store is idle. */
  keepPosition(name: string, eventId: number): void {
    if (this.failure === undefined) this.carryOut({ _tag: "Position", name, eventId })
  }

  /** Changes the store. The change is durable when the effect completes. */
  abstract change(change: Change): Effect.Effect<void, StorageError>

  /** Moves the oldest runes to a segment. Undefined: there are too few runes. */
  abstract seal(sealing: Sealing): Effect.Effect<Made | undefined, StorageError>

  /** Completes when the storage has failed permanently. */
  readonly failed: Effect.Effect<StorageError> = Effect.suspend(() => Deferred.await(this.gaveUp))

  /** Completes when all appends are on disk, or when the storage has failed permanently. */
  readonly settled: Effect.Effect<void> = Effect.callback<void>((resume) => {
    if (this.flight.size === 0 || this.failure !== undefined) resume(Effect.void)
    else this.idlers.push(() => resume(Effect.void))
  })

  /** Closes the log. Call this after `settled`. */
  abstract readonly close: Effect.Effect<void>

  protected abstract send(unit: Unit): void
  protected abstract flush(): void
  protected abstract carryOut(order: Order): void

  protected landed(appends: number): void {
    this.tell(this.flight.peek(appends))
    for (let n = 0; n < appends; n++) {
      const unit = this.flight.shift()
      this.admission.landed()
      this.durable = unit.runes[unit.runes.length - 1]!.eventId
      unit.owner.durable(unit)
    }
    this.flight.passed(this.durable)
    this.settle()
  }

  protected undone(failure: Failure): void {
    const error = this.inOurWords(failure)
    if (failure.isFatal) this.giveUp(error)
    this.undo(error, !failure.isFatal)
  }

  protected undo(error: StorageError, hasCulprit: boolean): void {
    this.admission.undo(this.durable)
    this.flight.fail(error, hasCulprit)
    this.settle()
  }

  private settle(): void {
    if (this.idlers.length === 0 || (this.flight.size > 0 && this.failure === undefined)) return
    const idlers = this.idlers
    this.idlers = []
    for (const idler of idlers) idler()
  }

  protected giveUp(error: StorageError): void {
    if (this.failure !== undefined) return
    this.failure = error
    Deferred.doneUnsafe(this.gaveUp, Exit.succeed(error))
  }

  protected inOurWords(failure: Failure): StorageError {
    return storageError(this.file, errorOf(failure))
  }
}

const rowsOf = ({ runes, texts }: Unit) => runes.map((rune, index) => rowOf(rune, texts[index]!))

const broken = (reason: string) =>
  new StorageError({
    reason: "defect",
    message: `The log's thread broke: ${reason}`,
    remedy: "This is a bug in agentd: report it with the output of `agentd verify`."
  })

const stopped = (thread: LogWorker): Effect.Effect<void> =>
  Effect.callback<void>((resume) => thread.stop(() => resume(Effect.void)))

class ThreadedLog extends SqliteLog {
  private readonly thread: LogWorker
  /** Appends that the next message to the thread will contain. */
  private batch: Array<Unit> = []
  private seen = 0
  private orders = 0
  private readonly carried = new Map<number, (exit: Exit.Exit<void, StorageError>) => void>()
  private readonly sealing = new Map<number, (sealed: Sealed) => void>()
  private isClosed = false

  constructor(thread: LogWorker, parts: Parts, file: string) {
    super(parts, file)
    this.thread = thread
    thread.onMessage((message) => {
      switch (message._tag) {
        case "Failed":
          return this.notTaken(message.failure)
        case "Carried":
          return this.answer(
            message.id,
            message.failure === undefined ? Exit.void : Exit.fail(this.inOurWords(message.failure))
          )
        case "Sealed":
          this.sealing.get(message.id)?.(message.sealed)
          return void this.sealing.delete(message.id)
        case "Damaged":
          return this.onDamage(message.problem)
        case "Troubled":
          return this.onTrouble(message.message)
        case "Broken":
          return this.broke(broken(message.reason))
        default:
          return undefined
      }
    })
    this.listen()
  }

  readonly close: Effect.Effect<void> = Effect.suspend(() => {
    this.isClosed = true
    this.flush()
    return Effect.andThen(
      stopped(this.thread),
      // report the last durable appends before the close completes
      Effect.sync(() => this.land())
    )
  })

  seal(sealing: Sealing): Effect.Effect<Made | undefined, StorageError> {
    return Effect.callback<Made | undefined, StorageError>((resume) => {
      if (this.failure !== undefined) return resume(Effect.fail(this.failure))
      const id = ++this.orders
      this.sealing.set(id, (sealed) =>
        resume("failure" in sealed ? Effect.fail(this.inOurWords(sealed.failure)) : Effect.succeed(sealed.made))
      )
      this.thread.say({ _tag: "Seal", id, sealing })
    })
  }

  change(change: Change): Effect.Effect<void, StorageError> {
    return Effect.callback<void, StorageError>((resume) => {
      if (this.failure !== undefined) return resume(Effect.fail(this.failure))
      const id = ++this.orders
      this.carried.set(id, resume)
      this.thread.say({ _tag: "Change", id, change })
    })
  }

  protected send(unit: Unit): void {
    this.batch.push(unit)
  }

  protected flush(): void {
    if (this.batch.length === 0) return
    const appends = this.batch.map(rowsOf)
    this.batch = []
    this.thread.say({ _tag: "Appends", appends })
  }

  protected carryOut(order: Order): void {
    this.thread.say(order)
  }

  private listen(): void {
    const waited = Atomics.waitAsync(this.thread.control, DONE, this.seen)
    const next = () => {
      this.land()
      if (!this.isClosed) this.listen()
    }
    if (waited.async) void waited.value.then(next)
    else queueMicrotask(next)
  }

  private land(): void {
    const done = Atomics.load(this.thread.control, DONE)
    const appends = (done - this.seen) | 0
    this.seen = done
    if (appends > 0) this.landed(appends)
  }

  private notTaken(failure: Failure): void {
    this.land()
    this.batch = []
    this.thread.say({ _tag: "Reset" })
    Atomics.add(this.thread.control, EPOCH, 1)
    Atomics.notify(this.thread.control, EPOCH)
    this.undone(failure)
  }

  private answer(id: number, exit: Exit.Exit<void, StorageError>): void {
    this.carried.get(id)?.(exit)
    this.carried.delete(id)
  }

  private broke(error: StorageError): void {
    if (this.isClosed) return
    this.giveUp(error)
    this.undo(error, false)
    for (const id of this.carried.keys()) this.answer(id, Exit.fail(error))
    for (const answer of this.sealing.values()) {
      answer({ failure: { code: undefined, message: error.message, isFatal: true } })
    }
  }
}

export const openThreaded = (options: Options): Effect.Effect<OpenStore, StorageError, Scope.Scope> =>
  Effect.gen(function* () {
    const { file } = options.store
    const thread = yield* Effect.acquireRelease(
      Effect.sync(() => new LogWorker(logThread())),
      stopped
    )
    const opened = yield* Effect.callback<Opened, StorageError>((resume) => {
      thread.onMessage((message) => {
        if (message._tag === "Up") resume(Effect.succeed(message.opened))
        else if (message._tag === "NotUp") resume(Effect.fail(storageError(file, errorOf(message.failure))))
        else if (message._tag === "Broken") resume(Effect.fail(broken(message.reason)))
      })
      thread.open(options)
    })
    return { opened, log: (parts) => Effect.sync(() => new ThreadedLog(thread, parts, file)) }
  })

/** Time without an append after which housekeeping runs. */
const QUIET = "200 millis"
const PAUSE = "20 millis"

/** The disk that a log without a thread uses: the real disk or a simulated one. */
export interface InlineDisk {
  readonly open: (options: StoreOptions) => LogStore
  /** `seek` runs before a group is written. `settle` runs when the group is durable, before its owners are notified. */
  readonly seek: Effect.Effect<void>
  readonly settle: Effect.Effect<void>
}

const ownDisk: InlineDisk = { open: (options) => new LogStore(options), seek: Effect.void, settle: Effect.void }

class InlineLog extends SqliteLog {
  private readonly disk: InlineDisk
  private readonly store: LogStore
  private readonly tries: number
  private waiting: Array<Unit> = []
  private readonly work = Latch.makeUnsafe()
  private isClosed = false

  constructor(store: LogStore, disk: InlineDisk, parts: Parts, { giveUpAfter, store: { file } }: Options) {
    super(parts, file)
    this.disk = disk
    this.store = store
    store.onDamage = (problem) => this.onDamage(problem)
    store.onTrouble = (message) => this.onTrouble(message)
    this.tries = Math.ceil(giveUpAfter / 20)
  }

  /** Writes the appends, in a fiber that replaces the log's thread. */
  readonly run: Effect.Effect<void> = Effect.gen({ self: this }, function* () {
    while (!this.isClosed || this.waiting.length > 0) {
      yield* this.work.await
      this.work.closeUnsafe()
      while (this.waiting.length > 0 && this.failure === undefined) yield* this.write
      if (!this.isClosed && this.store.isUntidy) {
        const told = yield* Effect.timeoutOption(this.work.await, QUIET)
        if (told._tag === "None") this.tidy()
      }
    }
  })

  readonly close: Effect.Effect<void> = Effect.sync(() => {
    this.isClosed = true
    this.work.openUnsafe()
  })

  seal(sealing: Sealing): Effect.Effect<Made | undefined, StorageError> {
    return Effect.callback<Made | undefined, StorageError>((resume) => {
      this.store.seal(sealing, (sealed) =>
        resume("failure" in sealed ? Effect.fail(this.inOurWords(sealed.failure)) : Effect.succeed(sealed.made))
      )
      this.tidy()
    })
  }

  change(change: Change): Effect.Effect<void, StorageError> {
    return Effect.try({ try: () => this.store.carryOut(change), catch: (cause) => storageError(this.file, cause) })
  }

  protected send(unit: Unit): void {
    this.waiting.push(unit)
  }

  protected flush(): void {
    this.work.openUnsafe()
  }

  /** Does all pending housekeeping and chores at once, because no caller waits for this thread. */
  private tidy(): void {
    this.store.rest()
    while (this.store.choresDue() === 0) this.store.chore()
  }

  protected carryOut(order: Order): void {
    this.store.carryOut(order)
  }

  private readonly write: Effect.Effect<void> = Effect.gen({ self: this }, function* () {
    yield* this.disk.seek
    let rows = 0
    let count = 0
    while (count < this.waiting.length && rows < MAX_GROUP) rows += this.waiting[count++]!.runes.length
    const appends = this.waiting.slice(0, count).map(rowsOf)
    const writing = this.store.commit(appends)
    let step: IteratorResult<void, Outcome> = writing.next(true)
    for (let tries = 0; step.done !== true; tries++) {
      if (tries < this.tries) yield* Effect.sleep(PAUSE)
      step = writing.next(tries < this.tries)
    }
    const { done, failure } = step.value
    yield* this.disk.settle
    this.waiting = failure === undefined ? this.waiting.slice(count) : []
    if (done > 0) this.landed(done)
    if (failure === undefined) this.store.keepUp()
    else this.undone(failure)
  })
}

export const openInline = (
  options: Options,
  disk: InlineDisk = ownDisk
): Effect.Effect<OpenStore, StorageError, Scope.Scope> =>
  Effect.gen(function* () {
    const store = yield* Effect.acquireRelease(
      Effect.try({
        try: () => disk.open(options.store),
        catch: (cause) => storageError(options.store.file, cause)
      }),
      (store) => Effect.sync(() => store.close())
    )
    return {
      opened: store.opened,
      log: (parts) =>
        Effect.suspend(() => {
          const log = new InlineLog(store, disk, parts, options)
          return Effect.as(Effect.forkScoped(log.run), log)
        })
    }
  })
