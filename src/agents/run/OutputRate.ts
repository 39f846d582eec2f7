/**
 * OutputRate: limits how fast a run's events are read, so that a flood from one run does not block the log for all
 * others. Pure.
 *
 * A run may emit a burst, and further events at a rate, in events and in bytes. If a run exceeds the rate, its program
 * is read later; nothing is lost.
 */
import type { RunEvent } from "../../runs/Backend.ts"

/** Events and bytes that a run may emit at once, and what is added per second. */
const BURST = { events: 5_000, bytes: 64 * 1024 * 1024 }
const EACH_SECOND = { events: 100, bytes: 1024 * 1024 }
/** ms; longer waits are split, so that newer events are read in between */
const LONGEST = 2_000

export interface Rate {
  /** Remaining part of the burst; negative if exceeded. */
  readonly events: number
  readonly bytes: number
  /** Monotonic clock, ms. */
  readonly at: number
  readonly isSlow: boolean
}

export const fresh = (at: number): Rate => ({ ...BURST, at, isSlow: false })

/** Approximate size of an event's texts, bytes. */
const sizeOf = (value: unknown, depth = 0): number => {
  if (typeof value === "string") return value.length
  if (typeof value !== "object" || value === null || depth > 3) return 0
  return Object.values(value).reduce<number>((sum, one) => sum + sizeOf(one, depth + 1), 0)
}

/** Consecutive words are written together, so they do not count as events. */
const isWord = ({ _tag }: RunEvent): boolean => _tag === "Delta" || _tag === "ToolProgress"

const more = (left: number, now: number, before: Rate, of: "events" | "bytes"): number =>
  Math.min(BURST[of], left + (EACH_SECOND[of] * Math.max(0, now - before.at)) / 1_000)

/** The rate after a chunk of events. `wait`: ms until the next read. `isSlow` until half of the burst is free again. */
export const after = (rate: Rate, chunk: ReadonlyArray<RunEvent>, now: number): readonly [Rate, wait: number] => {
  const told = chunk.filter((event) => !isWord(event)).length
  const events = more(rate.events, now, rate, "events") - Math.max(1, told)
  const bytes = more(rate.bytes, now, rate, "bytes") - sizeOf(chunk)
  const wait = Math.max(0, -events / EACH_SECOND.events, -bytes / EACH_SECOND.bytes) * 1_000
  const isSlow = wait > 0 || (rate.isSlow && (events < BURST.events / 2 || bytes < BURST.bytes / 2))
  return [{ events, bytes, at: now, isSlow }, Math.min(LONGEST, wait)]
}

/** The notice for the row and the log. */
export const notice = (isSlow: boolean): RunEvent => ({
  _tag: "Notice",
  text: isSlow
    ? `it tells more than ${BURST.events} events or ${BURST.bytes / 1024 / 1024} MB at once: it is read at ${EACH_SECOND.events} events and ${EACH_SECOND.bytes / 1024 / 1024} MB a second, and waits meanwhile; nothing is lost`
    : "it is read at full speed again",
  lasting: { about: "full speed: it tells too much at once", isOver: !isSlow }
})
