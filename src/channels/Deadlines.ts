/**
 * Deadlines: computes the time limits in a channel: for a turn without a sign of life, for a wait, and for an answer
 * without a signal. Pure.
 *
 * Guarantees: a channel in which no agent has the floor or waits has no deadlines. A deadline is computed from the
 * channel's runes. If there was a later sign of life, which has no rune, the deadline is extended when it is reached.
 */
import { type Channel, type Deadline, holder, type Seated, seatOf } from "./ChannelState.ts"
import type { View } from "./ChannelTransaction.ts"
import { Seat } from "./SeatMachine.ts"

export type What = keyof typeof Seat.timers | "cap" | "time" | "silence"

export const read = (key: string): { readonly agent: string; readonly what: What } => {
  const [agent = "", what = ""] = key.split(" ")
  return { agent, what: what as What }
}

/** The time limit of the seat's current state, from the state machine's table; undefined if it has none. */
const limitOf = ({ agent, stand }: Seated): Deadline | undefined => {
  const { at, data, state } = stand
  const { timeout } = Seat.states[state]
  if (timeout === undefined) return undefined
  const since = timeout === "turn" ? (data.aliveAt ?? at) : at
  const after = Seat.timers[timeout].after(data, since)
  return after === Infinity ? undefined : { key: `${agent} ${timeout}`, since, after }
}

/** A turn with signs of life can keep the floor for at most this multiple of its time limit. */
const CAP = 10

const capOf = ({ agent, stand }: Seated): Deadline | undefined => {
  const { at, data, state } = stand
  const after = CAP * data.limits.turnTimeout
  return state !== "ACTIVE" || after === Infinity
    ? undefined
    : { key: `${agent} cap`, since: data.beganAt ?? at, after }
}

/** When the seat's turn or wait ends by itself, ms since the epoch; null if there is no limit. */
export const endOf = (seated: Seated, aliveAt: number): number | null => {
  const limit = limitOf(seated)
  if (limit === undefined) return null
  const cap = capOf(seated)
  if (cap === undefined) return limit.since + limit.after
  return Math.min(Math.max(limit.since, aliveAt) + limit.after, cap.since + cap.after)
}

const timeOf = ({ agent, stand }: Seated): Deadline | undefined => {
  const { wait } = stand.data
  if (wait?.until._tag !== "Time" || wait.resolved) return undefined
  return { key: `${agent} time`, since: stand.at, after: Math.max(0, wait.until.at - stand.at) }
}

/** The deadline at which an answer without a signal counts as the end of the turn; undefined if there is none. */
const silenceOf = (channel: Channel): Deadline | undefined => {
  const { floor, settings } = channel
  const { autoDetectSilenceSeconds, autoDetectTurnEnd } = settings.turnConfig
  if (!autoDetectTurnEnd || floor === null || floor.answeredAt === null) return undefined
  const since = Math.max(floor.answeredAt, holder(channel)?.stand.data.aliveAt ?? 0)
  return { key: `${floor.agent} silence`, since, after: 1000 * autoDetectSilenceSeconds }
}

/** Whether the agent with the floor has answered, and has been silent for the required time since. */
export const isSilent = (channel: Channel, view: View): boolean => {
  const silence = silenceOf(channel)
  if (silence === undefined || channel.floor === null || view.busy(channel.floor.agent)) return false
  return Math.max(silence.since, view.aliveAt(channel.floor.agent)) + silence.after <= view.now
}

export const of = (channel: Channel): ReadonlyArray<Deadline> => {
  if (channel.closed) return []
  const { current, paused } = channel.queue
  const found: Array<Deadline | undefined> = [silenceOf(channel)]
  for (const agent of current === null ? paused : [...paused, current]) {
    const seated = seatOf(channel, agent)
    if (seated !== undefined) found.push(limitOf(seated), capOf(seated), timeOf(seated))
  }
  return found.filter((deadline) => deadline !== undefined)
}
