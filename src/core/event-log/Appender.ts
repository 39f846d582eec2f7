/**
 * Appender: appends drafts for callers that are not actors. Each append is one unit, and its caller waits until the
 * unit is durable. Lazy drafts are also appended, but no caller waits for them.
 *
 * Guarantees: the runes of one append become durable together or not at all, in the order of the calls. If an invariant
 * applies to a rune, the rune's stream is read before the append. If an append fails, the appends after it are retried.
 * An append is completed even if its caller is interrupted. The numbers of waiting appends and lazy runes are limited.
 */
import { Deferred, Effect, Exit, Latch, Queue } from "effect"
import type { AdmittingLog } from "./AdmittingLog.ts"
import { RuneRefused, StorageError } from "./EventLog.ts"
import { type Lazy, LazyBuffer } from "./LazyBuffer.ts"
import type { Owner, Prepared, Unit } from "./Log.ts"
import { type Rules, violation } from "./LogRules.ts"
import type { NextTick } from "./NextTick.ts"
import { causeOf, FORMAT, type Rune, type RuneDraft } from "./Rune.ts"

export interface Options {
  /** Maximum number of appends that are not durable yet. At this limit, a caller waits until its append is accepted. */
  readonly maxWaiting: number
  /** Maximum number of lazy runes that were passed to the log but are not durable yet. */
  readonly maxLazyAhead: number
  /** Maximum number of lazy runes in the buffer. Beyond this limit, the oldest are dropped. */
  readonly maxLazy: number
}

/** Interval between two checks for runes that have become durable. */
const LOOK = "5 millis"

export const defaultOptions: Options = { maxWaiting: 1024, maxLazyAhead: 512, maxLazy: 4096 }

export interface Parts {
  readonly log: AdmittingLog
  readonly failure: () => StorageError | undefined
  readonly soon: NextTick
  /** Reads a stream whose guard states are not known yet. */
  readonly read: (stream: string) => Effect.Effect<void, StorageError>
}

type Answer = Deferred.Deferred<ReadonlyArray<Rune>, StorageError | RuneRefused>

/** An append, until it is durable. */
interface Pending {
  readonly drafts: ReadonlyArray<RuneDraft>
  readonly prepared: ReadonlyArray<Prepared>
  readonly at: number
  /** The deferred result for the caller; undefined if no caller waits, as with lazy runes. */
  readonly answer: Answer | undefined
  /** A refusal that the caller gets instead of the runes; undefined: none. */
  readonly says: RuneRefused | undefined
}

const closed = new StorageError({
  reason: "closed",
  message: "The rune log is closed.",
  remedy: "agentd is stopping: try again when it is up."
})

export class Appender implements Owner {
  ahead = 0
  private readonly log: AdmittingLog
  private readonly rules: Rules
  private readonly options: Options
  private readonly failure: () => StorageError | undefined
  private readonly soon: NextTick
  private readonly read: (stream: string) => Effect.Effect<void, StorageError>
  private readonly lazies: LazyBuffer
  /** For a log in memory: appends that wait until the writer fiber runs. */
  private readonly turns: Queue.Queue<() => void>
  private readonly room = Latch.makeUnsafe(true)
  private readonly pending = new Map<Unit, Pending>()
  private lazyAhead = 0
  /** Time of the newest lazy draft, in ms since the epoch. */
  private lazyAt = 0
  private again: Array<Pending> = []
  private isPlanned = false
  private isClosed = false

  constructor(parts: Parts, rules: Rules, options: Options) {
    const { failure, log, read, soon } = parts
    this.log = log
    this.rules = rules
    this.options = options
    this.failure = failure
    this.read = read
    this.soon = soon
    this.lazies = new LazyBuffer(options.maxLazy, rules.home)
    this.turns = Effect.runSync(Queue.bounded<() => void>(options.maxWaiting))
    // append a run's pending output first, so that it precedes the runes that result from it
    log.beforeAppend = () => {
      if (this.lazies.size > 0) this.flushLazies(options.maxLazyAhead - this.lazyAhead, this.lazyAt)
    }
  }

  readonly append = (
    drafts: ReadonlyArray<RuneDraft>
  ): Effect.Effect<ReadonlyArray<Rune>, StorageError | RuneRefused> =>
    Effect.suspend(() => {
      const failed = this.failure() ?? (this.isClosed ? closed : undefined)
      if (failed !== undefined) return Effect.fail(failed)
      if (drafts.length === 0) return Effect.succeed([])
      const prepared = this.log.drafts.prepareAll(drafts)
      if (prepared instanceof RuneRefused) return Effect.fail(prepared)
      const unread = this.unread(drafts)
      if (unread !== undefined) return Effect.andThen(this.read(unread), this.append(drafts))
      return this.ahead < this.options.maxWaiting
        ? this.enter(drafts, prepared)
        : Effect.andThen(this.room.await, this.append(drafts))
    })

  readonly appendLazy = (drafts: ReadonlyArray<RuneDraft>): Effect.Effect<void> =>
    Effect.clockWith((clock) => {
      const at = clock.currentTimeMillisUnsafe()
      this.lazyAt = at
      const refused: Array<string> = []
      for (const draft of drafts) {
        const prepared = this.log.drafts.prepareLazy(draft)
        if (prepared instanceof RuneRefused) refused.push(prepared.message)
        else this.lazies.push({ draft, prepared, at })
      }
      this.plan(at)
      return refused.length === 0 ? Effect.void : Effect.logError("runes: lazy runes refused", ...refused)
    })

  /**
   * Completes when all runes that were passed to the appender before this call are durable or dropped. `durable`
   * returns the highest durable eventId.
   */
  flushed(durable: () => number): Effect.Effect<void, StorageError> {
    return Effect.suspend(() => {
      const { given } = this.lazies
      const isOnItsWay = this.until(() => this.lazies.gone >= given)
      return Effect.flatMap(isOnItsWay, () => {
        const last = this.log.head
        return this.until(() => durable() >= last)
      })
    })
  }

  /** Waits, by polling, until `holds` returns true. Fails if the log has failed. */
  private until(holds: () => boolean): Effect.Effect<void, StorageError> {
    return Effect.suspend(() => {
      const failed = this.failure()
      if (failed !== undefined) return Effect.fail(failed)
      return holds() ? Effect.void : Effect.andThen(Effect.sleep(LOOK), this.until(holds))
    })
  }

  /** Appends a rune that records a refused append of an actor. Called after the actor's step has ended. */
  violated(unit: Unit, refused: RuneRefused, at: number): void {
    const rune = unit.runes.find(({ kind }) => kind === refused.kind) ?? unit.runes[0]!
    this.soon(() => {
      const draft = violation(this.rules, refused, rune, (stream) => this.log.admission.isOpen(stream))
      if (draft !== undefined) this.own(draft, at, undefined, undefined)
    })
  }

  /** Passes all waiting appends and lazy runes to the log. From then on, appends are rejected. */
  readonly close: Effect.Effect<void> = Effect.sync(() => {
    this.isClosed = true
    for (const take of Effect.runSync(Queue.clear(this.turns))) take()
    this.flushLazies(Number.MAX_SAFE_INTEGER, 0)
  })

  durable(unit: Unit): void {
    const pending = this.settle(unit)
    if (pending.answer === undefined) this.plan(pending.at)
    else
      Deferred.doneUnsafe(
        pending.answer,
        pending.says === undefined ? Exit.succeed(unit.runes) : Exit.fail(pending.says)
      )
  }

  failed(unit: Unit, error: unknown, culprit: boolean): void {
    const pending = this.settle(unit)
    if (!culprit && this.failure() === undefined) return void this.again.push(pending)
    if (pending.answer === undefined) return
    Deferred.doneUnsafe(pending.answer, Exit.fail(pending.says ?? (error as StorageError)))
  }

  refold(): void {
    const again = this.again
    this.again = []
    for (const { answer, at, drafts, prepared, says } of again) this.take(drafts, prepared, at, answer, says)
  }

  rest(): void {}

  /**
   * Returns the first stream that must be read before the append; undefined if there is none. A stream that accepts no
   * more runes is not read: the append is refused anyway, and the stream may be unreadable.
   */
  private unread(drafts: ReadonlyArray<RuneDraft>): string | undefined {
    const { admission } = this.log
    return drafts.find(
      ({ kind, stream }) =>
        admission.guard.sees(kind) && admission.isOpen(stream) && admission.guardOf(stream) === undefined
    )?.stream
  }

  /** For a log in memory: the writer fiber, which performs the queued appends. */
  readonly run: Effect.Effect<void> = Effect.suspend(() =>
    Effect.map(Queue.takeAll(this.turns), (takes) => takes.forEach((take) => take()))
  ).pipe(Effect.forever)

  private enter(
    drafts: ReadonlyArray<RuneDraft>,
    prepared: ReadonlyArray<Prepared>
  ): Effect.Effect<ReadonlyArray<Rune>, StorageError | RuneRefused> {
    return Effect.clockWith((clock) => {
      const at = clock.currentTimeMillisUnsafe()
      // first append the lazy runes that were received earlier
      this.flushLazies(this.options.maxLazyAhead - this.lazyAhead, at)
      const answer: Answer = Deferred.makeUnsafe()
      if (this.log.flight !== undefined) {
        this.take(drafts, prepared, at, answer, undefined)
        return Deferred.await(answer)
      }
      // in a log in memory, appends are durable at once, but they still wait for the writer fiber, as with a disk
      const take = () => this.take(drafts, prepared, at, answer, undefined)
      return Effect.andThen(Queue.offer(this.turns, take), Deferred.await(answer))
    })
  }

  private take(
    drafts: ReadonlyArray<RuneDraft>,
    prepared: ReadonlyArray<Prepared>,
    at: number,
    answer: Answer | undefined,
    says: RuneRefused | undefined
  ): void {
    const failed = this.failure()
    if (failed !== undefined) {
      if (answer !== undefined) Deferred.doneUnsafe(answer, Exit.fail(failed))
      return
    }
    const unit: Unit = {
      owner: this,
      runes: this.runesOf(drafts, prepared, at),
      texts: prepared.map(({ text }) => text)
    }
    const refused = this.log.admission.refuses(unit)
    if (refused !== undefined) return this.refuse(unit, refused, at, answer)
    this.pending.set(unit, { drafts, prepared, at, answer, says })
    if (answer === undefined) this.lazyAhead += 1
    if (this.log.append(unit)) this.durable(unit)
    else if (this.ahead >= this.options.maxWaiting) this.room.closeUnsafe()
  }

  /** Refuses a unit. If a rune records the refusal, the caller gets the error when that rune is durable. */
  private refuse(unit: Unit, refused: RuneRefused, at: number, answer: Answer | undefined): void {
    const rune = unit.runes.find(({ kind }) => kind === refused.kind)!
    const draft = violation(this.rules, refused, rune, (stream) => this.log.admission.isOpen(stream))
    if (draft !== undefined) this.own(draft, at, answer, refused)
    else if (answer !== undefined) Deferred.doneUnsafe(answer, Exit.fail(refused))
  }

  private own(draft: RuneDraft, at: number, answer: Answer | undefined, says: RuneRefused | undefined): void {
    const prepared = this.log.drafts.prepare(draft)
    if (prepared instanceof RuneRefused) throw prepared
    this.take([draft], [prepared], at, answer, says)
  }

  private settle(unit: Unit): Pending {
    const pending = this.pending.get(unit)!
    this.pending.delete(unit)
    if (pending.answer === undefined) this.lazyAhead -= 1
    if (this.ahead < this.options.maxWaiting) this.room.openUnsafe()
    return pending
  }

  private runesOf(drafts: ReadonlyArray<RuneDraft>, prepared: ReadonlyArray<Prepared>, at: number): Array<Rune> {
    const seqs = new Map<string, number>()
    let eventId = this.log.head
    return drafts.map((draft, index) => {
      const { stream } = draft
      const seq = (seqs.get(stream) ?? this.log.seqOf(stream)) + 1
      seqs.set(stream, seq)
      eventId += 1
      const { payload, visibility } = prepared[index]!
      return {
        format: FORMAT,
        eventId,
        seq,
        stream,
        at,
        kind: draft.kind,
        actor: draft.actor,
        from: draft.from ?? null,
        to: draft.to ?? null,
        trigger: draft.trigger ?? null,
        cause: draft.cause == null ? null : causeOf(draft.cause),
        moves: draft.moves ?? [],
        visibility,
        payload
      }
    })
  }

  /** Schedules the lazy runes for the next group commit, even if no other runes are appended. */
  private plan(at: number): void {
    if (this.isPlanned || this.lazies.size === 0) return
    this.isPlanned = true
    this.soon(() => {
      this.isPlanned = false
      this.flushLazies(this.options.maxLazyAhead - this.lazyAhead, at)
    })
  }

  private flushLazies(most: number, at: number): void {
    if (most <= 0 || this.failure() !== undefined) return
    for (const draft of this.lazies.losses()) this.own(this.here(draft), at, undefined, undefined)
    for (const { at, draft, prepared } of this.lazies.take(most)) {
      this.take([this.here(draft)], [prepared], at, undefined, undefined)
    }
  }

  /** Redirects a draft from a sealed stream to the home stream. */
  private here(draft: Lazy["draft"]): RuneDraft {
    return this.log.admission.isSealed(draft.stream)
      ? { ...draft, stream: this.rules.home, actor: `${draft.stream}/${draft.actor}` }
      : draft
  }
}
