/**
 * Recovery: rebuilds every plate from the log at startup. Each plate is a stream of its own, read once: its snapshot,
 * and the runes after it.
 *
 * Guarantees: a plate is left out if its stream cannot be read, or if it cannot be rebuilt from its runes. That happens
 * with a log of a newer agentd, or a damaged one. No other plate is affected. Of a forgotten plate only the id is kept,
 * so that it is not used again. A plate that an older daemon made for a run is only closed.
 */
import { Effect } from "effect"
import { EventLog } from "../core/event-log/EventLog.ts"
import type { Rune } from "../core/event-log/Rune.ts"
import type { StreamFold } from "../core/event-log/StreamFold.ts"
import * as PlateFacts from "./PlateFacts.ts"
import { initial, plateActor, type Stand } from "./PlateActor.ts"
import * as PlateId from "./PlateId.ts"
import { isOfRun, readMove } from "./PlateKinds.ts"
import * as PlateMachine from "./PlateMachine.ts"

export interface PlateRecord {
  readonly plateId: string
  readonly stand: Stand
  readonly facts: PlateFacts.PlateFacts
}

export interface Records {
  readonly plates: ReadonlyMap<string, PlateRecord>
  /** Open plates that an older daemon made for runs. */
  readonly runs: ReadonlyArray<PlateRecord>
  /** Ids that no new plate may get. */
  readonly used: ReadonlySet<string>
  readonly forgotten: ReadonlyArray<PlateRecord["stand"]["data"]>
}

/** The result of folding a stream. `stand` is null if the stream contains no plate. */
export interface Folded {
  readonly stand: Stand | null
  readonly facts: PlateFacts.PlateFacts
  readonly isBroken: boolean
  /** True if an older daemon made the plate for a run: only its state is used, to close it. */
  readonly isRun: boolean
}

const kinds: ReadonlySet<string> = new Set(PlateMachine.kinds)

const nothing: Folded = { stand: null, facts: PlateFacts.none, isBroken: false, isRun: false }

export const apply = (before: Folded, rune: Rune): Folded => {
  if (before.isBroken || !kinds.has(rune.kind)) return before
  try {
    const found = before.stand ?? initial(rune.stream)
    const event = readMove(rune)?.payload.event
    if (before.isRun || (event !== undefined && isOfRun(event))) {
      const state = (rune.to ?? found.state) as PlateMachine.State
      return { ...before, isRun: true, stand: { ...found, state, at: rune.at } }
    }
    const stand = plateActor.apply(found, rune, false)
    return event === undefined
      ? { ...before, stand }
      : { ...before, stand, facts: PlateFacts.after(before.facts, event) }
  } catch {
    return { ...before, isBroken: true }
  }
}

export const fold: StreamFold<Folded> = { name: "plate", version: 2, initial: nothing, of: PlateId.isValid, apply }

const CONCURRENCY = 8

export const recover = Effect.gen(function* () {
  const log = yield* EventLog
  const plates = new Map<string, PlateRecord>()
  const used = new Set<string>()
  const forgotten: Array<PlateRecord["stand"]["data"]> = []
  const runs: Array<PlateRecord> = []
  const one = Effect.fnUntraced(function* (plateId: string) {
    const { state } = (yield* log.recover(plateId, { plate: fold })).plate
    const { facts, isBroken, isRun, stand } = state
    if (stand === null && !isBroken) return
    if (isBroken) {
      const message = "its runes do not fold (a log of a newer agentd, or a damaged one)"
      yield* log.setAside({ stream: plateId, part: "the session", message })
    }
    if (stand === null || isBroken || isRun || stand.data.forgotten) {
      used.add(plateId)
      if (stand?.data.forgotten === true) forgotten.push(stand.data)
      if (stand !== null && !isBroken && isRun && stand.state !== "Closed") runs.push({ plateId, stand, facts })
      return
    }
    plates.set(plateId, { plateId, stand, facts })
  })
  const streams = (yield* log.streams).map(({ stream }) => stream).filter(PlateId.isValid)
  yield* Effect.forEach(
    streams,
    (plateId) =>
      Effect.catch(one(plateId), (error) => {
        used.add(plateId)
        return log.setAside({ stream: plateId, part: "the session", message: error.message })
      }),
    { concurrency: CONCURRENCY, discard: true }
  )
  return { plates, runs, used, forgotten } satisfies Records
})
