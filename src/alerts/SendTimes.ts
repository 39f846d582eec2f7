/**
 * SendTimes: computes when each waiting message will be sent. Pure.
 *
 * Guarantees: the rules of the outbox are applied. Messages to one destination are sent one after the other, messages
 * by one channel within its hourly limit, and none in quiet hours. The result assumes that no alert joins a message and
 * that each attempt succeeds at once.
 */
import * as Outbox from "./Outbox.ts"

export interface Way {
  readonly destination: string
  readonly maxPerHour: number
  /** If a time is in quiet hours, returns the end of these hours; otherwise returns the time unchanged. */
  readonly quietUntil?: (at: number) => number
}

const NONE: ReadonlySet<string> = new Set()

const same = (at: number): number => at

/** The earliest time at which a message can be sent; Infinity if another message must be sent first. */
const timeOf = (state: Outbox.State, batch: Outbox.Batch, way: Way, now: number): number => {
  const { destination, maxPerHour, quietUntil = same } = way
  const ready = Outbox.readyAt(state, batch, now)
  if (ready === undefined) return Infinity
  // if the config was changed since the failure, the message is sent again at once
  const isMended = batch.failure !== null && batch.failure.destination !== destination
  const at = isMended ? now : Math.max(ready, now)
  return quietUntil(Outbox.freeAt(state, { ...batch, destination }, maxPerHour, NONE, at))
}

/** Send times by batch id. Omits batches that must wait for another one, and those without a configured receiver. */
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
    // if the times are equal, the older batch is first
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
