/**
 * MemoryEventLog: the rune log in memory, for tests and for trying things. Ids,
 * hashes, guard, subscriptions and refusals are the real ones; only the disk is
 * not there.
 */
import { Effect, Layer } from "effect"
import { defaultLimits } from "./EventDraft.ts"
import * as AdmissionState from "./AdmissionState.ts"
import { Redact } from "./Redact.ts"
import { EventLog, type Selection } from "./EventLog.ts"
import { matches, type Store, type StoredRune } from "./Store.ts"
import * as StoreEventLog from "./StoreEventLog.ts"

/** Runes are numbered from 1 without a gap: a rune's place is its id less one. */
const makeStore = (): Store => {
  const all: Array<StoredRune> = []
  const select = (selection: Selection, after: number, upTo: number) =>
    all.slice(after, upTo).filter((rune) => matches(selection, rune))
  return {
    persist: (runes) => Effect.sync(() => void all.push(...runes)),
    page: (selection, after, upTo) => Effect.sync(() => ({ runes: select(selection, after, upTo), cursor: upTo })),
    pageBack: (selection, before, downTo, count) =>
      Effect.sync(() => ({ runes: select(selection, downTo, before).slice(-count).toReversed(), cursor: downTo })),
    scan: (after) => Effect.sync(() => all.slice(after)),
    // without a file to move them to, none is ever erased
    erase: () => Effect.void,
    backlog: () => "none",
    tidy: Effect.void,
    lastCommitted: Effect.sync(() => all.length)
  }
}

export const layerMemory: Layer.Layer<EventLog> = Layer.effect(
  EventLog,
  Effect.gen(function* () {
    const redact = yield* Redact
    const options = { ...defaultLimits, ...StoreEventLog.defaultOptions, scrub: redact.json }
    return yield* StoreEventLog.make(makeStore(), AdmissionState.empty, options, {
      folder: undefined,
      streams: new Set()
    })
  })
).pipe(Layer.provide(Redact.layer))
