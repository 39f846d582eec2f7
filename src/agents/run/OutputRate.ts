/**
 * OutputRate: limits the rate at which a run's events are read, so that one run's large output does not block the log
 * for other runs. Pure.
 *
 * A run can send a burst of events at once, and after that a limited number of events and bytes per second. If a run
 * exceeds the rate, its output is read later, and nothing is lost.
 */
import type { RunEvent } from "../../runs/Backend.ts"

/**
 * Maximum burst of a run: how much it can send at once. `EACH_SECOND`: how much of the burst becomes free again per
 * second.
 */
const BURST = { events: 5_000, bytes: 64 * 1024 * 1024 }
const EACH_SECOND = { events: 100, bytes: 1024 * 1024 }
/** Maximum length of one wait, ms. Longer waits are split, so that newer events are read in between. */
const LONGEST = 2_000

export interface Rate {
  /** Amount that the run can still send at once; negative if the run has exceeded the rate. */
  readonly events: number
  readonly bytes: number
  /** Time of the last update, ms on the monotonic clock. */
  readonly at: number
  readonly isSlow: boolean
}

export const fresh = (at: number): Rate => ({ ...BURST, at, isSlow: false })

/** Approximate total size of the text in an event, bytes. */
const sizeOf = (value: unknown, depth = 0): number => {
  if (typeof value === "string") return value.length
  if (typeof value !== "object" || value === null || depth > 3) return 0
  return Object.values(value).reduce<number>((sum, one) => sum + sizeOf(one, depth + 1), 0)
}

/** True for text. Consecutive pieces of text are written together, so they do not count as events. */
const isWord = ({ _tag }: RunEvent): boolean => _tag === "Delta" || _tag === "ToolProgress"

const more = (left: number, now: number, before: Rate, of: "events" | "bytes"): number =>
  Math.min(BURST[of], left + (EACH_SECOND[of] * Math.max(0, now - before.at)) / 1_000)

/**
 * Updates the rate after a number of events. `wait`: ms until the next read. `isSlow` stays true until half of the
 * burst is free.
 */
export const after = (rate: Rate, chunk: ReadonlyArray<RunEvent>, now: number): readonly [Rate, wait: number] => {
  const told = chunk.filter((event) => !isWord(event)).length
  const events = more(rate.events, now, rate, "events") - Math.max(1, told)
  const bytes = more(rate.bytes, now, rate, "bytes") - sizeOf(chunk)
  const wait = Math.max(0, -events / EACH_SECOND.events, -bytes / EACH_SECOND.bytes) * 1_000
  const isSlow = wait > 0 || (rate.isSlow && (events < BURST.events / 2 || bytes < BURST.bytes / 2))
  return [{ events, bytes, at: now, isSlow }, Math.min(LONGEST, wait)]
}

export const notice = (isSlow: boolean): RunEvent => ({
  _tag: "Notice",
  text: isSlow
    ? `it sends more than ${BURST.events} events or ${BURST.bytes / 1024 / 1024} MB at once: it is read at ${EACH_SECOND.events} events and ${EACH_SECOND.bytes / 1024 / 1024} MB a second until it is slower; nothing is lost`
    : "it is read at full speed again",
  lasting: { about: "full speed: it sends too much at once", isOver: !isSlow }
})
