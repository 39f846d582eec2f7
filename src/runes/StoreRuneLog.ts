/**
 * StoreRuneLog: the rune log over any store: what is written goes through the
 * one writer, what is read comes in pages, a subscription is both.
 */
import { Effect, Option, Stream } from "effect"
import type { Rune } from "../domain/Rune.ts"
import type { Ledger } from "./Ledger.ts"
import { RuneLog, type Selection, StorageError } from "./RuneLog.ts"
import { matches, type Store, toRunes } from "./Store.ts"
import { verify } from "./Verify.ts"
import * as Writer from "./Writer.ts"

/** One piece of a reader's way from a cursor to the head. */
interface Section {
  readonly runes: ReadonlyArray<Rune>
  readonly cursor: number
}

/** All runes after a cursor that are still in memory, if the first of them is. */
type Recent = (after: number) => ReadonlyArray<Rune> | undefined

export const defaultOptions = { maxWaiting: 1024, maxGroup: 512, maxLazy: 4096 } as const

/** Reading, given where the log ends. */
const reading = (store: Store, head: Effect.Effect<number, StorageError>, recent: Recent) => {
  const page = (selection: Selection, after: number, upTo: number): Effect.Effect<Section, StorageError> =>
    Effect.suspend(() => {
      const kept = recent(after)
      return kept === undefined
        ? Effect.flatMap(store.page(selection, after, upTo), ({ runes, cursor }) =>
            Effect.map(toRunes(runes), (runes) => ({ runes, cursor }))
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
      newest.push(...(yield* toRunes(runes)))
      before = cursor
    }
    return newest.toReversed()
  })

  const get = (eventId: number) => Effect.map(page({}, eventId - 1, eventId), ({ runes }) => runes[0])

  return { page, read, tail, get, verify: verify(store) }
}

export const make = Effect.fnUntraced(function* (store: Store, restored: Ledger, options: Writer.Options) {
  const { append, appendLazy, failed, live } = yield* Writer.make(store, restored, options)
  const head = Effect.sync(() => live.head)
  const { page, ...reads } = reading(store, head, (after) => live.since(after))

  const subscribe = (selection: Selection) =>
    Stream.paginate(selection.after ?? 0, (after) =>
      Effect.flatMap(live.beyond(after), (more) =>
        more
          ? Effect.map(page(selection, after, live.head), ({ runes, cursor }) => [runes, Option.some(cursor)] as const)
          : Effect.succeed([[], Option.none()] as const)
      )
    )

  return RuneLog.of({ ...reads, append, appendLazy, subscribe, head, failed })
})

/** A log that another process writes: what is there now can be read, and nothing else. */
export const makeReadOnly = (store: Store, where: string) => {
  const refused = new StorageError({
    reason: "read-only",
    message: `${where} is open for reading alone.`,
    remedy: "Send the command to the daemon, which writes it."
  })
  const { page: _, ...reads } = reading(store, store.lastCommitted, () => undefined)
  return RuneLog.of({
    ...reads,
    append: () => Effect.fail(refused),
    appendLazy: () => Effect.void,
    subscribe: reads.read,
    head: Effect.orDie(store.lastCommitted),
    failed: Effect.never
  })
}
