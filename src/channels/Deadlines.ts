/**
 * Deadlines: what ends by itself in a channel if nothing happens: a turn without a
 * sign of life, a wait, an answer without a signal. Pure.
 *
 * Guarantees: a channel in which nobody has the floor and nobody waits has none.
 */
import type { Channel, Seated } from "./ChannelState.ts"
import { seatOf } from "./ChannelState.ts"
import type { View } from "./ChannelTransaction.ts"

export type What = "turn" | "wait" | "time" | "silence"

export interface Deadline {
  /** The agent and what: a name has no blank. */
  readonly key: string
  /** ms since the epoch */
  readonly at: number
  /** ms; it is never further away than this, whatever the clock says. */
  readonly within: number
}

export const read = (key: string): { readonly agent: string; readonly what: What } => {
  const [agent = "", what = ""] = key.split(" ")
  return { agent, what: what as What }
}

/** When the turn or the wait of a seat ends by itself; null for no limit. */
export const endOf = ({ stand }: Seated, aliveAt: number): number | null => {
  const { aliveAt: recorded, limits, wait } = stand.data
  if (stand.state === "ACTIVE") return Math.max(recorded ?? stand.at, aliveAt) + limits.turnTimeout
  return stand.state === "WAITING" && wait?.resolved === false ? stand.at + wait.timeout : null
}

/** When an answer without a signal counts as the turn's end; undefined where it does not. */
const silenceOf = (channel: Channel, view: Pick<View, "aliveAt" | "busy">): Deadline | undefined => {
  const { floor, settings } = channel
  const { autoDetectSilenceSeconds, autoDetectTurnEnd } = settings.turnConfig
  if (!autoDetectTurnEnd || floor === null || floor.answeredAt === null || view.busy(floor.agent)) return undefined
  const within = 1000 * autoDetectSilenceSeconds
  return { key: `${floor.agent} silence`, at: Math.max(floor.answeredAt, view.aliveAt(floor.agent)) + within, within }
}

/** Whether who has the floor has answered, and has been silent for long enough since. */
export const isSilent = (channel: Channel, view: View): boolean => {
  const silence = silenceOf(channel, view)
  return silence !== undefined && silence.at <= view.now
}

export const of = (channel: Channel, view: Pick<View, "aliveAt" | "busy">): ReadonlyArray<Deadline> => {
  const { current, paused } = channel.queue
  const found: Array<Deadline> = []
  for (const agent of current === null ? paused : [...paused, current]) {
    const seated = seatOf(channel, agent)
    if (seated === undefined) continue
    const { limits, wait } = seated.stand.data
    const at = endOf(seated, view.aliveAt(agent))
    if (at !== null) {
      const isTurn = seated.stand.state === "ACTIVE"
      found.push({
        key: `${agent} ${isTurn ? "turn" : "wait"}`,
        at,
        within: isTurn ? limits.turnTimeout : wait!.timeout
      })
    }
    if (wait?.until._tag === "Time" && !wait.resolved) {
      found.push({ key: `${agent} time`, at: wait.until.at, within: wait.timeout })
    }
  }
  const silence = silenceOf(channel, view)
  return silence === undefined ? found : [...found, silence]
}
