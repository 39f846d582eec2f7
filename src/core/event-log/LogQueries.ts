/**
 * LogQueries: reads the runes of a log. Recent runes are read from memory. For a single stream, only its own rows are
 * read. All other selections are read page by page.
 */
import { Effect, Option, Stream } from "effect"
import type { EventLog, Selection, StorageError } from "./EventLog.ts"
import { ActorLookup } from "./ActorLookup.ts"
import type { LogReader, Page } from "./LogReader.ts"
import type { Rules } from "./LogRules.ts"
import type { Archives } from "./OldArchives.ts"
import type { RecentEvents } from "./RecentEvents.ts"
import type { Cause, Rune } from "./Rune.ts"
import type { Segments } from "./Segments.ts"
import type { SnapshotOrder } from "./Snapshot.ts"
import { matches, type StoredRune, toRunes } from "./StoredRune.ts"
import { type Snapshots, StreamReader } from "./StreamReader.ts"
import { verify, type Walk } from "./Verify.ts"

export interface Source {
  readonly reader: LogReader
  /** Index that finds the runes of an actor, up to the last indexed position. */
  readonly lookup?: ActorLookup
  readonly rules: Rules
  readonly archives: Archives
  readonly snapshots: Snapshots
  readonly walk: Walk
  /** Like `walk`, but slower, for background checks. If omitted, `walk` is used. */
  readonly idleWalk?: Walk
  readonly segments?: (() => Segments) | undefined
  /** Called if the side file next to the store is wrong, to rebuild the file. */
  readonly refill?: () => void
  readonly head: Effect.Effect<number, StorageError>
  /** Returns all runes after a cursor if they are all in memory, else undefined. */
  readonly recent: (after: number) => ReadonlyArray<Rune> | undefined
  /** Returns the eventId of a stream's newest durable rune; 0 if the stream has none, undefined if it is not known. */
  readonly newestOf: (stream: string) => number | undefined
  /** The streams that exist when the log is opened. */
  readonly streams: Iterable<string>
  readonly keep: (order: SnapshotOrder) => void
}

/** A part of a result: some runes, and the cursor at which a reader continues. */
interface Section {
  readonly runes: ReadonlyArray<Rune>
  readonly cursor: number
}

/** Maximum number of positions that one step of a search finds. */
const LOOK_BACK = 512

/** Maximum number of steps in a search for positions. If more would be needed, the result has `whole: false`. */
const MAX_SEARCHED = 128

export class LogQueries {
  private readonly of: Source
  readonly streams: StreamReader

  constructor(of: Source) {
    this.of = of
    this.streams = new StreamReader({
      reader: of.reader,
      snapshots: of.snapshots,
      shown: (stored) => this.shown(stored),
      recent: of.recent,
      beginning: () => of.segments?.().beginning,
      folds: of.rules.folds,
      newest: (stream) => this.newest(stream),
      head: of.head,
      streams: of.streams,
      isArchived: (stream) => of.archives.streams.has(stream),
      keep: of.keep
    })
  }

  /** The methods that read. They also work if the log is not open for writing. */
  get reads(): Pick<EventLog["Service"], "read" | "tail" | "get" | "find" | "at" | "places" | "recover" | "verify"> & {
    readonly verifyIdly: EventLog["Service"]["verify"]
  } {
    const { archives, reader, refill, rules, segments, walk } = this.of
    const { idleWalk = walk } = this.of
    const verifying = (walk: Walk) => verify({ reader, walk, rules, archives, segments, refill })
    return {
      read: (selection) => this.read(selection),
      tail: (selection, count) => this.tail(selection, count),
      get: (eventId) => Effect.map(this.page({}, eventId - 1, eventId), ({ runes }) => runes[0]),
      find: (cause, near) => this.find(cause, near),
      at: (positions) => this.at(positions),
      places: (selection, count) => this.places(selection, count),
      recover: this.streams.recover,
      verify: verifying(walk),
      verifyIdly: verifying(idleWalk)
    }
  }

  subscribe(selection: Selection, recent: RecentEvents): Stream.Stream<Rune, StorageError> {
    return Stream.paginate(selection.after ?? 0, (after) =>
      Effect.flatMap(recent.beyond(after), (more) =>
        more
          ? Effect.map(
              this.page(selection, after, recent.head),
              ({ runes, cursor }) => [runes, Option.some(cursor)] as const
            )
          : Effect.succeed([[], Option.none()] as const)
      )
    )
  }

  private shown(stored: ReadonlyArray<StoredRune>): Effect.Effect<ReadonlyArray<Rune>, StorageError> {
    const { streams } = this.of.archives
    return Effect.map(toRunes(stored), (runes) =>
      runes.map((rune, index) =>
        stored[index]!.payload === null && streams.has(rune.stream) ? { ...rune, payload: { archived: true } } : rune
      )
    )
  }

  private at(positions: ReadonlyArray<number>): Effect.Effect<ReadonlyArray<Rune>, StorageError> {
    return Effect.flatMap(this.of.reader.at(positions), (stored) => this.shown(stored))
  }

  private section(page: Effect.Effect<Page, StorageError>): Effect.Effect<Section, StorageError> {
    return Effect.flatMap(page, ({ cursor, runes }) => Effect.map(this.shown(runes), (runes) => ({ runes, cursor })))
  }

  page(selection: Selection, after: number, upTo: number): Effect.Effect<Section, StorageError> {
    return Effect.suspend(() => {
      const kept = this.of.recent(after)
      return kept === undefined
        ? this.section(this.of.reader.page(selection, after, upTo))
        : Effect.succeed({
            runes: kept.filter((rune) => rune.eventId <= upTo && matches(selection, rune)),
            cursor: upTo
          })
    })
  }

  private newestOf({ stream }: Selection): number | undefined {
    return stream === undefined ? undefined : this.of.newestOf(stream)
  }

  /** eventId of the newest rune of a stream; 0 if there is none. If the id is not in memory, the log is read. */
  private newest(stream: string): Effect.Effect<number, StorageError> {
    return Effect.suspend(() => {
      const newest = this.of.newestOf(stream)
      return newest === undefined
        ? Effect.map(this.tail({ stream }, 1), ([rune]) => rune?.eventId ?? 0)
        : Effect.succeed(newest)
    })
  }

  private read(selection: Selection): Stream.Stream<Rune, StorageError> {
    return Stream.unwrap(
      Effect.map(this.of.head, (end) => {
        const after = this.afterIn(selection)
        const place = this.placeFor(selection) ?? 0
        if (place <= after) return this.readOn(selection, end)
        const rest = Stream.suspend(() => this.readOn({ ...selection, after: Math.min(place, end) }, end))
        return Stream.concat(this.readFiled(selection, Math.min(place, end)), rest)
      })
    )
  }

  /**
   * Returns the position after which matching runes can exist. Earlier runes can be deleted, but the lookup can still
   * return their positions.
   */
  private afterIn({ after = 0 }: Selection): number {
    return Math.max(after, this.of.segments?.().deleted ?? 0)
  }

  /** Returns the position up to which the lookup finds all matching runes; undefined if the lookup cannot be used. */
  private placeFor(selection: Selection): number | undefined {
    return ActorLookup.serves(selection) ? this.of.lookup?.place : undefined
  }

  /** Reads, piece by piece, the runes that the lookup finds. */
  private readFiled(selection: Selection, upTo: number): Stream.Stream<Rune, StorageError> {
    return Stream.paginate(this.afterIn(selection), (after) => {
      const found = this.of.lookup?.oldest(selection, after, upTo, LOOK_BACK)
      // if the lookup has stopped working, search the rest in the log
      if (found === undefined) {
        return Effect.map(
          Stream.runCollect(this.readOn({ ...selection, after }, upTo)),
          (runes) => [runes, Option.none()] as const
        )
      }
      return Effect.map(
        this.at(found),
        (runes) =>
          [
            runes.filter((rune) => matches(selection, rune)),
            found.length < LOOK_BACK ? Option.none() : Option.some(found.at(-1)!)
          ] as const
      )
    })
  }

  private readOn(selection: Selection, end: number): Stream.Stream<Rune, StorageError> {
    const newest = this.newestOf(selection)
    if (newest !== undefined) {
      return Stream.takeWhile(this.readStream(selection, newest), ({ eventId }) => eventId <= end)
    }
    return Stream.paginate(selection.after ?? 0, (after) =>
      after >= end
        ? Effect.succeed([[], Option.none()] as const)
        : Effect.map(this.page(selection, after, end), ({ runes, cursor }) => [runes, Option.some(cursor)] as const)
    )
  }

  /** Reads only the rows of one stream, even if they are far apart in the log. */
  private readStream(selection: Selection, newest: number): Stream.Stream<Rune, StorageError> {
    return Stream.unwrap(
      Effect.map(this.of.reader.pages(newest, selection.after ?? 0), (pages) =>
        Stream.paginate(0, (index) =>
          index >= pages.length
            ? Effect.succeed([[], Option.none()] as const)
            : Effect.map(
                this.at(pages[index]!),
                (runes) => [runes.filter((rune) => matches(selection, rune)), Option.some(index + 1)] as const
              )
        )
      )
    )
  }

  private readonly tail = Effect.fnUntraced(function* (this: LogQueries, selection: Selection, count: number) {
    const downTo = this.afterIn(selection)
    const newest: Array<Rune> = []
    let before = yield* this.of.head
    while (newest.length < count && before > downTo) {
      const { runes, cursor } = yield* this.back(selection, before, downTo, count - newest.length)
      newest.push(...runes)
      before = cursor
    }
    return newest.toReversed()
  })

  private readonly places = Effect.fnUntraced(function* (this: LogQueries, selection: Selection, count: number) {
    const downTo = this.afterIn(selection)
    const newest: Array<number> = []
    let before = yield* this.of.head
    for (let steps = 0; newest.length < count && before > downTo; steps++) {
      if (steps === MAX_SEARCHED) return { positions: newest.toReversed(), whole: false }
      const place = Math.max(downTo, this.placeFor(selection) ?? 0)
      const wanted = count - newest.length
      const filed =
        place >= before && ActorLookup.isExact(selection)
          ? this.of.lookup?.newest(selection, before, downTo, wanted)
          : undefined
      if (filed !== undefined) {
        for (const position of filed) newest.push(position)
        before = filed.length < wanted ? downTo : filed.at(-1)! - 1
        continue
      }
      const { runes, cursor } = yield* this.back(selection, before, downTo, wanted)
      for (const { eventId } of runes) newest.push(eventId)
      before = cursor
    }
    return { positions: newest.toReversed(), whole: newest.length < count }
  })

  private readonly find = Effect.fnUntraced(function* (this: LogQueries, { seq, stream }: Cause, near?: Rune) {
    const last = near?.stream === stream && near.seq >= seq ? near : (yield* this.tail({ stream }, 1))[0]
    if (last === undefined || seq > last.seq || seq < 1) return undefined
    const positions = yield* this.of.reader.positions(last.eventId, 0, last.seq - seq + 1)
    const [rune] = yield* this.at(positions.slice(0, 1))
    return rune?.seq === seq ? rune : undefined
  })

  /** Reads the next piece of a backward search, newest rune first. */
  private back(
    selection: Selection,
    before: number,
    downTo: number,
    count: number
  ): Effect.Effect<Section, StorageError> {
    const place = Math.max(downTo, this.placeFor(selection) ?? 0)
    if (place >= before) return this.backFiled(selection, before, downTo, count)
    const newest = this.newestOf(selection)
    // the lookup worked until now but fails here, so `before` is possibly not a rune of the stream
    const isLost = before < (newest ?? 0) && this.of.lookup !== undefined && ActorLookup.serves(selection)
    if (newest === undefined || isLost) {
      return this.section(this.of.reader.pageBack(selection, before, place, count))
    }
    return Effect.gen({ self: this }, function* () {
      // find one position more than will be read, because the next piece begins there
      const found = yield* this.of.reader.positions(Math.min(newest, before), place, LOOK_BACK + 1)
      const isLast = found.length <= LOOK_BACK
      const looked = isLast ? found : found.slice(1)
      const runes = yield* Effect.flatMap(this.of.reader.newest(looked, selection, count), (stored) =>
        this.shown(stored)
      )
      return { runes, cursor: isLast ? place : found[0]! }
    })
  }

  /** Like `back`, but reads at the positions that the lookup finds. */
  private backFiled(
    selection: Selection,
    before: number,
    downTo: number,
    count: number
  ): Effect.Effect<Section, StorageError> {
    const { lookup, reader } = this.of
    const found = lookup?.newest(selection, before, downTo, LOOK_BACK)
    // if the lookup has stopped working, search the rest in the log
    if (found === undefined) return this.section(reader.pageBack(selection, before, downTo, count))
    return Effect.gen({ self: this }, function* () {
      const runes = yield* Effect.flatMap(reader.newest(found.toReversed(), selection, count), (stored) =>
        this.shown(stored)
      )
      yield* Effect.yieldNow
      return { runes, cursor: found.length < LOOK_BACK ? downTo : found.at(-1)! - 1 }
    })
  }
}
