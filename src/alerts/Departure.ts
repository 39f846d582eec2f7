/**
 * Departure: when each message that waits will leave. Pure.
 *
 * Guarantees: as the outbox lets them go: one after the other on each way, those of one channel within its hourly
 * limit, none in quiet hours; taken that nothing joins them and each is received at once.
 */
import * as Outbox from "./Outbox.ts"

/** How a message would go. */
export interface Way {
  readonly destination: string
  /** The most that may leave this way in an hour. */
  readonly maxPerHour: number
  /** The end of the quiet hours that a time lies in, else that very time. */
  readonly quietUntil?: (at: number) => number
}

const NONE: ReadonlySet<string> = new Set()

const same = (at: number): number => at

/** When a message may go, after those that have left by then; Infinity: while another is before it. */
const timeOf = (state: Outbox.State, batch: Outbox.Batch, way: Way, now: number): number => {
  const { destination, maxPerHour, quietUntil = same } = way
  const ready = Outbox.readyAt(state, batch, now)
  if (ready === undefined) return Infinity
  // by a config that was mended since it is tried at once
  const isMended = batch.failure !== null && batch.failure.destination !== destination
  const at = isMended ? now : Math.max(ready, now)
  return quietUntil(Outbox.freeAt(state, { ...batch, destination }, maxPerHour, NONE, at))
}

/** By batch; left out: those behind another, and those that have no way now. */
export const departures = (
  before: Outbox.State,
  wayOf: (batch: Outbox.Batch) => Way | undefined,
  now: number
): ReadonlyMap<string, number> => {
  const ways = new Map(before.batches.map((batch) => [batch.id, wayOf(batch)]))
  const found = new Map<string, number>()
  let [at, state] = [now, before]
  for (;;) {
    const open = state.batches.flatMap((batch) => {
      const way = ways.get(batch.id)
      return way === undefined ? [] : [{ batch, way, at: timeOf(state, batch, way, at) }]
    })
    // of equal ones the older
    const [next] = open.toSorted((a, b) => a.at - b.at)
    if (next === undefined || next.at === Infinity) return found
    const { batch, way } = next
    at = next.at
    if (Outbox.readyAt(before, batch, now) !== undefined) found.set(batch.id, at)
    const name = batch.back === undefined ? Outbox.countedAs({ ...batch, destination: way.destination }) : undefined
    state = {
      ...state,
      left: Outbox.departed(state, at, name),
      batches: state.batches.filter((one) => one !== batch)
    }
  }
}
