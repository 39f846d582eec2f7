/**
 * ScheduleState: the schedules of one conversation, from the log. The state has each schedule, the time up to which its
 * due times are settled, and its newest run. A pure fold.
 *
 * Guarantees: a due time up to `upTo` never runs again. `upTo` never decreases, except when a wrong clock has settled
 * times for days ahead. For this reason, schedules that are over are still stored, up to a limit.
 */
import type { CatchUp } from "../config/ScheduleConfig.ts"
import * as ConversationId from "../domain/ConversationId.ts"
import { type Key, keyIn } from "../domain/ScheduleKey.ts"
import { shown, type Skipped, type Work } from "../domain/ScheduleMessages.ts"
import { ERASED } from "../core/event-log/Erasure.ts"
import type { Rune } from "../core/event-log/Rune.ts"
import type { StreamFold } from "../core/event-log/StreamFold.ts"
import { read } from "./ScheduleKinds.ts"

/** Data of a one-time schedule. It is stored here because no file contains it. */
export interface Once {
  readonly due: number
  readonly work: Work
  readonly catchUp: CatchUp
  readonly by: string
}

/** A run of a schedule. The run's rune contains the message or the goal. */
export interface Ran {
  readonly due: number
  readonly asked: boolean
  readonly at: number
  readonly eventId: number
  /** The actor of the run's rune: an inbox or a goal. */
  readonly actor: string
  /** Id of the message; null if the run is a goal. */
  readonly messageId: string | null
}

export interface Entry {
  /** Cron expression; null for a one-time schedule. */
  readonly cron: string | null
  readonly timeZone: string
  readonly once: Once | null
  /** Due times up to this time are settled: they have run or are skipped. In ms since the epoch. */
  readonly upTo: number
  readonly pausedBy: string | null
  readonly ran: Ran | null
  /** Times that were skipped since the last run; null if none were. */
  readonly skipped: Skipped | null
  /**
   * `removed`: a user or the file removed the schedule. `done`: its only due time has passed. Null while it is active.
   */
  readonly over: "removed" | "done" | null
}

export interface State {
  readonly entries: { readonly [name: string]: Entry }
  /** Number of one-time schedules so far. Each new one gets a unique name from it. */
  readonly added: number
}

export const empty: State = { entries: {}, added: 0 }

/** Maximum number of schedules that are over and still stored. */
export const MAX_OVER = 1_000

/**
 * Maximum time that a correct clock can be ahead, in ms. If a time further in the future is settled, the clock was
 * wrong.
 */
export const FAR_AHEAD = 2 * 86_400_000

/** Trigger of the rune that makes due times count again that a wrong clock has settled. */
export const CLOCK = "clock"

const blank: Entry = {
  cron: null,
  timeZone: "UTC",
  once: null,
  upTo: 0,
  pausedBy: null,
  ran: null,
  skipped: null,
  over: null
}

/** Removes the oldest schedules that are over, if there are too many. Entries are in the order of their last change. */
const bounded = (entries: State["entries"]): State["entries"] => {
  const over = Object.keys(entries).filter((name) => entries[name]!.over !== null)
  if (over.length <= MAX_OVER) return entries
  const gone = new Set(over.slice(0, over.length - MAX_OVER))
  return Object.fromEntries(Object.entries(entries).filter(([name]) => !gone.has(name)))
}

/** Shortens the text of a schedule that is over, because only its beginning is needed. */
const lighter = (entry: Entry): Entry =>
  entry.over === null || entry.once === null
    ? entry
    : { ...entry, once: { ...entry.once, work: shown(entry.once.work) } }

/** Changes the entry with this name, or adds a changed `born`. Without entry and `born`, the state stays the same. */
const changed = (state: State, name: string, change: (entry: Entry) => Entry, born?: Entry): State => {
  const known = Object.hasOwn(state.entries, name) ? state.entries[name] : born
  if (known === undefined) return state
  const { [name]: _, ...others } = state.entries
  return { ...state, entries: bounded({ ...others, [name]: lighter(change(known)) }) }
}

const run = (state: State, { asked, due, name }: Key, messageId: string | null, { actor, at, eventId }: Rune): State =>
  changed(state, name, (entry) => ({
    ...entry,
    upTo: asked && entry.once === null ? entry.upTo : Math.max(entry.upTo, due),
    ran: { due, asked, at, eventId, actor, messageId },
    skipped: null,
    over: entry.once === null ? entry.over : "done"
  }))

export const apply = (state: State, rune: Rune): State => {
  if (rune.kind === "session.closed") return empty
  const known = read(rune)
  switch (known?.kind) {
    case "inbox.received": {
      const { messageId } = known.payload.event.message
      const key = keyIn(messageId)
      return key === undefined ? state : run(state, key, messageId, rune)
    }
    case "plan.goal_received": {
      const key = keyIn(known.payload.event.key ?? "")
      return key === undefined ? state : run(state, key, null, rune)
    }
    case "schedule.set": {
      const { cron, from, name, time_zone: timeZone } = known.payload
      const upTo = (before: number) => (rune.trigger === CLOCK ? from : Math.max(before, from))
      const set = (entry: Entry): Entry => ({ ...entry, cron, timeZone, upTo: upTo(entry.upTo), over: null })
      return changed(state, name, set, blank)
    }
    case "schedule.added": {
      const { by, catch_up: catchUp, due, from, name, time_zone: timeZone, work } = known.payload
      const added = { ...state, added: state.added + 1 }
      if ((work.send?.text ?? work.goal?.text) === ERASED) return added
      const once = { due, work, catchUp, by }
      return changed(added, name, () => ({ ...blank, timeZone, once, upTo: from }), blank)
    }
    case "schedule.removed":
      return changed(state, known.payload.name, (entry) => ({ ...entry, over: "removed" }))
    case "schedule.paused":
      return changed(state, known.payload.name, (entry) => ({ ...entry, pausedBy: known.payload.by }))
    case "schedule.resumed": {
      const { from, name } = known.payload
      return changed(state, name, (entry) => ({
        ...entry,
        pausedBy: null,
        // the only time of a one-time schedule is not skipped
        upTo: entry.once !== null ? entry.upTo : entry.upTo > from + FAR_AHEAD ? from : Math.max(entry.upTo, from)
      }))
    }
    case "schedule.skipped": {
      const { count, due, name, reason } = known.payload
      return changed(state, name, (entry) => ({
        ...entry,
        upTo: Math.max(entry.upTo, due),
        skipped: { due, count: count + (entry.skipped?.count ?? 0), reason, at: rune.at },
        over: entry.once === null ? entry.over : "done"
      }))
    }
    default:
      return state
  }
}

export const fold: StreamFold<State> = {
  name: "schedules",
  version: 1,
  initial: empty,
  of: ConversationId.mayBe,
  apply
}
