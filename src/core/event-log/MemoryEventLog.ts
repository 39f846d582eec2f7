/**
 * MemoryEventLog: the log in memory, for tests and experiments. Positions, seqs, hashes, guard, subscriptions and
 * refusals work as in the real log. Only the disk is missing.
 */
import { Effect, Layer, Context } from "effect"
import { AdmissionState } from "./AdmissionState.ts"
import { EventDraft } from "./EventDraft.ts"
import { EventLog, type Selection } from "./EventLog.ts"
import { Log } from "./Log.ts"
import type { LogReader } from "./LogReader.ts"
import { LogRules } from "./LogRules.ts"
import { MemoryLog } from "./MemoryLog.ts"
import { Redact } from "./Redact.ts"
import type { SnapshotOrder, SnapshotRow } from "./Snapshot.ts"
import { sealOf } from "./Snapshot.ts"
import { matches } from "./StoredRune.ts"
import * as StoreEventLog from "./StoreEventLog.ts"
import type { Snapshots } from "./StreamReader.ts"
import type { Position, Positions } from "./Subscribers.ts"
import { walkHere } from "./Verify.ts"

/** Reads the log in memory. Positions begin at 1 and have no gaps, so the index of a rune is its position minus one. */
const readerOf = (log: MemoryLog): LogReader => {
  const select = (selection: Selection, after: number, upTo: number) =>
    log
      .stored()
      .slice(after, upTo)
      .filter((rune) => matches(selection, rune))
  return {
    page: (selection, after, upTo) => Effect.sync(() => ({ runes: select(selection, after, upTo), cursor: upTo })),
    pageBack: (selection, before, downTo, count) =>
      Effect.sync(() => ({ runes: select(selection, downTo, before).slice(-count).toReversed(), cursor: downTo })),
    positions: (newest, after, count) =>
      Effect.sync(() => {
        const stream = log.stored()[newest - 1]?.stream
        return stream === undefined
          ? []
          : select({ stream }, after, newest)
              .slice(-count)
              .map(({ eventId }) => eventId)
      }),
    pages: (newest, after) =>
      Effect.sync(() => {
        const stream = log.stored()[newest - 1]?.stream
        return stream === undefined ? [] : [select({ stream }, after, newest).map(({ eventId }) => eventId)]
      }),
    at: (positions) => Effect.sync(() => positions.flatMap((position) => log.stored()[position - 1] ?? [])),
    newest: (positions, selection, count) =>
      Effect.sync(() =>
        positions
          .flatMap((position) => log.stored()[position - 1] ?? [])
          .filter((rune) => matches(selection, rune))
          .slice(-count)
          .toReversed()
      ),
    lastCommitted: Effect.sync(() => log.head)
  }
}

/** Snapshots that are kept in memory, in the form that they would have on disk. */
const snapshotsOf = (log: MemoryLog): Snapshots & { readonly keep: (order: SnapshotOrder) => void } => {
  const rows = new Map<string, SnapshotRow>()
  const keyOf = (stream: string, name: string) => JSON.stringify([stream, name])
  return {
    get: (stream, name) => Effect.sync(() => rows.get(keyOf(stream, name))),
    keep: (order) => {
      const rune = log.stored()[order.eventId - 1]
      if (rune === undefined || rune.stream !== order.stream) return
      const row = { ...order, seq: rune.seq, hash: rune.hash }
      rows.set(keyOf(order.stream, order.name), { ...row, seal: sealOf(row) })
    }
  }
}

const positionsOf = (log: MemoryLog): Positions => {
  const rows = new Map<string, Position>()
  return {
    get: (name) => Effect.sync(() => rows.get(name)),
    keep: (name, eventId) => void rows.set(name, { eventId, hash: log.stored()[eventId - 1]!.hash })
  }
}

const make = Effect.gen(function* () {
  const rules = yield* LogRules
  const redact = yield* Redact
  const { guard, kinds } = rules
  const log = new MemoryLog(new AdmissionState({ guard, kinds }), new EventDraft(kinds, redact.json))
  const reader = readerOf(log)
  const snapshots = snapshotsOf(log)
  const service = yield* StoreEventLog.make(
    {
      log,
      reader,
      snapshots,
      archives: { folder: undefined, streams: new Set(), kept: new Map() },
      walk: walkHere(reader),
      newest: new Map(),
      failure: () => undefined,
      failed: Effect.never,
      keep: snapshots.keep,
      positions: positionsOf(log),
      change: () => Effect.void,
      unfinished: new Map(),
      settled: Effect.void
    },
    rules
  )
  return Context.make(EventLog, service).pipe(Context.add(Log, log))
})

export const layerMemory: Layer.Layer<EventLog | Log, never, LogRules> = Layer.effectContext(make).pipe(
  Layer.provide(Redact.layer)
)
