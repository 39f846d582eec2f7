/**
 * StoreEventLog: the rune log over any store: what is written goes through the
 * one writer, what is read comes in pages, a subscription is both.
 */
import { Effect, Option, Semaphore, Stream } from "effect"
import type { Rune } from "./Rune.ts"
import type { AdmissionState } from "./AdmissionState.ts"
import * as Archive from "./Archive.ts"
import { EventLog, RuneRefused, type Selection, StorageError } from "./EventLog.ts"
import { matches, type Store, type StoredRune, toRunes } from "./Store.ts"
import { verify } from "./Verify.ts"
import * as Writer from "./Writer.ts"

/** One piece of a reader's way from a cursor to the head. */
interface Section {
  readonly runes: ReadonlyArray<Rune>
  readonly cursor: number
}

/** Where the payloads of archived streams are. */
export interface Archives {
  /** Absolute; undefined where the log has no place for them. */
  readonly folder: string | undefined
  /** The streams that are archived, as far as the log says. */
  readonly streams: Set<string>
}

/** All runes after a cursor that are still in memory, if the first of them is. */
type Recent = (after: number) => ReadonlyArray<Rune> | undefined

export const defaultOptions = { maxWaiting: 1024, maxGroup: 512, maxLazy: 4096 } as const

/** Reading, given where the log ends. */
const reading = (
  store: Store,
  head: Effect.Effect<number, StorageError>,
  recent: Recent,
  { folder, streams }: Archives
) => {
  const shown = (stored: ReadonlyArray<StoredRune>) =>
    Effect.map(toRunes(stored), (runes) =>
      runes.map((rune, index) =>
        stored[index]!.payload === null && streams.has(rune.stream) ? { ...rune, payload: { archived: true } } : rune
      )
    )

  const page = (selection: Selection, after: number, upTo: number): Effect.Effect<Section, StorageError> =>
    Effect.suspend(() => {
      const kept = recent(after)
      return kept === undefined
        ? Effect.flatMap(store.page(selection, after, upTo), ({ runes, cursor }) =>
            Effect.map(shown(runes), (runes) => ({ runes, cursor }))
          )
        : Effect.succeed({
            runes: kept.filter((rune) => rune.eventId <= upTo && matches(selection, rune)),
            cursor: upTo
          })
    })

  const read = (selection: Selection) =>
    Stream.unwrap(
      Effect.map(head, (end) =>
        Stream.paginate(selection.after ?? 0, (after) =>
          after >= end
            ? Effect.succeed([[], Option.none()] as const)
            : Effect.map(page(selection, after, end), ({ runes, cursor }) => [runes, Option.some(cursor)] as const)
        )
      )
    )

  const tail = Effect.fnUntraced(function* (selection: Selection, count: number) {
    const downTo = selection.after ?? 0
    const newest: Array<Rune> = []
    let before = yield* head
    while (newest.length < count && before > downTo) {
      const { runes, cursor } = yield* store.pageBack(selection, before, downTo, count - newest.length)
      newest.push(...(yield* shown(runes)))
      before = cursor
    }
    return newest.toReversed()
  })

  const get = (eventId: number) => Effect.map(page({}, eventId - 1, eventId), ({ runes }) => runes[0])

  return { page, read, tail, get, verify: verify(store, folder) }
}

/** One at a time: each step is durable before the next. */
const archiving = (
  store: Store,
  { folder, streams }: Archives,
  { append, isSealed, live }: Writer.Writer
): EventLog["Service"]["archive"] => {
  const lock = Semaphore.makeUnsafe(1)
  return (stream, draft) =>
    Effect.gen(function* () {
      if (folder === undefined) return yield* nowhere
      if (!isSealed(stream)) {
        const message = `${stream} is no closed conversation with a whole log`
        return yield* new RuneRefused({ kind: "session.archived", rule: "unsealed", message })
      }
      const volume = { store, folder, stream, head: live.head }
      const isKnown = streams.has(stream)
      if (!isKnown) yield* Archive.write(volume)
      const archived = yield* Archive.intact(volume)
      const rune = isKnown ? undefined : (yield* append([draft(archived)]))[0]
      streams.add(stream)
      yield* Archive.erase(volume, archived)
      return { archived, rune }
    }).pipe(Effect.uninterruptible, lock.withPermit)
}

const nowhere = new StorageError({
  reason: "no-archive",
  message: "This log is kept in memory: it has no folder for archives.",
  remedy: "Keep the log in a file."
})

export const make = Effect.fnUntraced(function* (
  store: Store,
  restored: AdmissionState,
  options: Writer.Options,
  archives: Archives
) {
  const writer = yield* Writer.make(store, restored, options)
  const { append, appendLazy, failed, live } = writer
  const head = Effect.sync(() => live.head)
  const { page, ...reads } = reading(store, head, (after) => live.since(after), archives)

  const subscribe = (selection: Selection) =>
    Stream.paginate(selection.after ?? 0, (after) =>
      Effect.flatMap(live.beyond(after), (more) =>
        more
          ? Effect.map(page(selection, after, live.head), ({ runes, cursor }) => [runes, Option.some(cursor)] as const)
          : Effect.succeed([[], Option.none()] as const)
      )
    )

  const archive = archiving(store, archives, writer)
  return EventLog.of({ ...reads, append, appendLazy, subscribe, head, archive, failed })
})

/** A log that another process writes: what is there now can be read, and nothing else. */
export const makeReadOnly = (store: Store, where: string, folder: string) => {
  const refused = new StorageError({
    reason: "read-only",
    message: `${where} is open for reading alone.`,
    remedy: "Send the command to the daemon, which writes it."
  })
  const { page: _, ...reads } = reading(store, store.lastCommitted, () => undefined, {
    folder,
    streams: new Set()
  })
  return EventLog.of({
    ...reads,
    append: () => Effect.fail(refused),
    appendLazy: () => Effect.void,
    archive: () => Effect.fail(refused),
    subscribe: reads.read,
    head: Effect.orDie(store.lastCommitted),
    failed: Effect.never
  })
}
