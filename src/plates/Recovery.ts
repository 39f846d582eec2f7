/**
 * Recovery: what the log says of every plate, in one pass over it.
 *
 * A pure fold, but for the reading. A plate whose runes do not fold (a log of a
 * newer agentd, a damaged one) is left out and touches no other; a forgotten one
 * leaves its name only, which is not used again.
 */
import { Effect, Stream } from "effect"
import type { Rune } from "../event-log/Rune.ts"
import { evolve } from "../event-actor/StateMachine.ts"
import * as PlateMachine from "./PlateMachine.ts"
import { EventLog } from "../event-log/EventLog.ts"
import * as Facts from "./Facts.ts"
import { initial, type Stand } from "./PlateActor.ts"

export interface PlateRecord {
  readonly plateId: string
  stand: Stand
  facts: Facts.Facts
}

export interface Records {
  readonly plates: Map<string, PlateRecord>
  /** Names that no new plate may have. */
  readonly used: Set<string>
}

export const empty = (): Records => ({ plates: new Map(), used: new Set() })

/** One rune, folded in. */
export const apply = (records: Records, rune: Rune): void => {
  const plateId = rune.stream
  if (records.used.has(plateId)) return
  const record = records.plates.get(plateId) ?? { plateId, stand: initial(plateId), facts: Facts.none }
  try {
    record.stand = evolve(PlateMachine.Plate, record.stand, rune)
    record.facts = Facts.after(record.facts, rune.payload["event"] as PlateMachine.Event)
    records.plates.set(plateId, record)
  } catch {
    records.plates.delete(plateId)
    records.used.add(plateId)
    return
  }
  if (record.stand.data.forgotten) {
    records.plates.delete(plateId)
    records.used.add(plateId)
  }
}

export const recover = Effect.gen(function* () {
  const log = yield* EventLog
  const records = empty()
  yield* Stream.runForEachArray(log.read({ kinds: PlateMachine.kinds }), (runes) =>
    Effect.sync(() => {
      for (const rune of runes) apply(records, rune)
    })
  )
  return records
})
