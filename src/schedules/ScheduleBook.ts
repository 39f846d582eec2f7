/**
 * ScheduleBook: the schedules of one conversation: as its log says they stand, and as its project's file says what they
 * send. Decides what is due, carries it out, and appends what is no run.
 *
 * Guarantees: a run is the rune of what it sends, so that a crash leaves both or neither; what was appended is taken
 * in before anybody else looks. One caller at a time.
 */
import { Effect } from "effect"
import * as CronTimes from "../config/CronTimes.ts"
import type { CatchUp, SchedulesConfig } from "../config/ScheduleConfig.ts"
import type { AgentPort } from "../domain/AgentPort.ts"
import { CommandRefused } from "../domain/Messages.ts"
import { type Key, keyOf, senderOf } from "../domain/ScheduleKey.ts"
import { type ScheduleInfo, shown, type Work } from "../domain/ScheduleMessages.ts"
import type { EventLog, StorageError } from "../core/event-log/EventLog.ts"
import type { Payload, Rune } from "../core/event-log/Rune.ts"
import { dueOf, isFarAhead, LOOK, onceAt } from "./Due.ts"
import { ACTOR, type scheduleKinds } from "./ScheduleKinds.ts"
import { apply, CLOCK, type Entry, fold, type Ran, type State } from "./ScheduleState.ts"

/** The goals of a project, as far as schedules need them. */
export interface GoalPort {
  /** The goal's first rune bears the key. */
  readonly submit: (
    config: string,
    goal: NonNullable<Work["goal"]>,
    of: { readonly by: string; readonly key: string }
  ) => Effect.Effect<{ readonly goalId: string; readonly eventId: number }, CommandRefused | StorageError>
  /** The runs of before are known: until then none is open. */
  readonly recovered: Effect.Effect<void>
  readonly isOpen: (conversation: string, goalId: string) => boolean
}

/** A project's file, as far as schedules read it. */
export interface ScheduleFile {
  readonly name: string
  readonly path: string
  readonly schedules: SchedulesConfig
}

export interface Around {
  readonly conversation: string
  readonly agents: AgentPort["Service"]
  readonly goals: GoalPort
  readonly log: EventLog["Service"]
}

interface Plan {
  readonly work: Work
  readonly catchUp: CatchUp
  readonly times: CronTimes.CronTimes
}

export interface Looked {
  /** Nothing is due before, ms since the epoch. */
  readonly until: number
  /** A time waits for the end of the run before it. */
  readonly waits: boolean
}

const PREFIX = "plan/"

export const goalOf = ({ actor }: Ran): string | null => (actor.startsWith(PREFIX) ? actor.slice(PREFIX.length) : null)

/** The owner of the inbox that has the message. */
const agentOf = ({ actor }: Ran): string => actor.slice(actor.indexOf("/") + 1)

const UNDER_WAY = "the run before it is still under way"

const earlier = (a: Looked, b: Looked): Looked => ({ until: Math.min(a.until, b.until), waits: a.waits || b.waits })

export const IDLE: Looked = { until: Number.POSITIVE_INFINITY, waits: false }

export class ScheduleBook {
  readonly around: Around
  file: ScheduleFile
  state: State
  /** Nobody knows whether what was written is in the state: a disk that failed in between has written it, or not. */
  private isStale = false
  /** Of expressions, by zone and text. */
  private readonly parsed = new Map<string, CronTimes.CronTimes>()
  /** The next time of each, for the `upTo` that it was reckoned from. */
  private readonly next = new Map<string, { readonly upTo: number; readonly times: object; readonly next: number }>()

  constructor(around: Around, file: ScheduleFile, state: State) {
    this.around = around
    this.file = file
    this.state = state
  }

  /** Appends a rune, and takes it in. */
  readonly append = <K extends keyof typeof scheduleKinds>(kind: K, payload: Payload, trigger: string) =>
    this.around.log.append([{ stream: this.around.conversation, kind, actor: ACTOR, trigger, payload }]).pipe(
      Effect.map(([rune]) => this.take(rune!)),
      Effect.uninterruptible
    )

  /** The state that the log says, where that may be more than what is known. */
  readonly fresh = Effect.suspend(() =>
    this.isStale
      ? Effect.map(this.around.log.recover(this.around.conversation, { schedules: fold }), ({ schedules }) => {
          this.state = schedules.state
          this.isStale = false
        })
      : Effect.void
  )

  private take(rune: Rune): Rune {
    this.state = apply(this.state, rune)
    return rune
  }

  /** All but removed ones; of one whose time is over the row is kept a while. */
  get names(): ReadonlyArray<string> {
    return Object.keys(this.state.entries).filter((name) => this.state.entries[name]!.over !== "removed")
  }

  entry(name: string): Entry | undefined {
    return Object.hasOwn(this.state.entries, name) ? this.state.entries[name] : undefined
  }

  private timesOf(cron: string, timeZone: string): CronTimes.CronTimes {
    const key = `${timeZone} ${cron}`
    const known = this.parsed.get(key)
    if (known !== undefined) return known
    const times = CronTimes.of(cron, timeZone)
    this.parsed.set(key, times)
    return times
  }

  /** Undefined for one that is over, or that the file does not have. */
  plan(name: string): Plan | undefined {
    const entry = this.entry(name)
    if (entry === undefined || entry.over !== null) return undefined
    const { cron, once, timeZone } = entry
    if (once !== null) return { work: once.work, catchUp: once.catchUp, times: onceAt(once.due) }
    const said = Object.hasOwn(this.file.schedules, name) ? this.file.schedules[name] : undefined
    if (said === undefined || cron === null) return undefined
    const { catchUp, goal, send } = said
    const work = { ...(send === undefined ? {} : { send }), ...(goal === undefined ? {} : { goal }) }
    return { work, catchUp, times: this.timesOf(cron, timeZone) }
  }

  /** When it is due next, ms since the epoch; infinite: never. */
  private nextOf(name: string, entry: Entry, times: CronTimes.CronTimes): number {
    const known = this.next.get(name)
    if (known?.upTo === entry.upTo && (known.times === times || entry.once !== null)) return known.next
    const next = times.next(entry.upTo) ?? Number.POSITIVE_INFINITY
    this.next.set(name, { upTo: entry.upTo, times, next })
    return next
  }

  /** Takes over what the file says, as far as it is news. */
  readonly configure = Effect.fnUntraced(
    { self: this },
    function* (this: ScheduleBook, file: ScheduleFile, now: number) {
      this.file = file
      for (const [name, { cron, timeZone: zone }] of Object.entries(file.schedules)) {
        const timeZone = zone ?? CronTimes.ownZone()
        const entry = this.entry(name)
        const isSame = entry?.over === null && entry.cron === cron
        if (isSame && entry.timeZone === timeZone) continue
        // a machine that came to another zone has changed no schedule: what passed meanwhile is still to be settled
        const from = isSame && zone === undefined ? entry.upTo : now
        yield* this.append("schedule.set", { name, cron, time_zone: timeZone, from }, "config")
      }
      for (const [name, { cron, over }] of Object.entries(this.state.entries)) {
        if (cron === null || over !== null || Object.hasOwn(file.schedules, name)) continue
        yield* this.append("schedule.removed", { name, by: null }, "config")
      }
    }
  )

  /** Whether what the newest run sent is not over. */
  readonly isUnderWay = (ran: Ran | null): Effect.Effect<boolean> => {
    const { agents, conversation, goals } = this.around
    if (ran === null) return Effect.succeed(false)
    const goalId = goalOf(ran)
    if (goalId !== null) return Effect.sync(() => goals.isOpen(conversation, goalId))
    if (ran.messageId === null) return Effect.succeed(false)
    return agents.fate({ conversation, agent: agentOf(ran) }, ran.messageId).pipe(
      Effect.map(({ _tag }) => _tag === "Waiting" || _tag === "Carried"),
      Effect.orElseSucceed(() => false)
    )
  }

  /** Sends what is due; the rune of the run is the answer. */
  readonly fire = (key: Key, { goal, send }: Work): Effect.Effect<number, CommandRefused | StorageError> =>
    Effect.gen({ self: this }, function* () {
      const { agents, conversation, goals, log } = this.around
      const by = senderOf(key.name)
      const id = keyOf(key)
      const { eventId } =
        send !== undefined
          ? yield* agents.post(
              { conversation, agent: send.agent },
              { messageId: id, from: by, text: send.text, alone: false }
            )
          : yield* goals.submit(this.file.path, goal!, { by, key: id })
      const rune = yield* log.get(eventId)
      if (rune !== undefined) this.take(rune)
      return eventId
    }).pipe(
      Effect.tapError(({ _tag }) => Effect.sync(() => void (this.isStale ||= _tag !== "CommandRefused"))),
      Effect.uninterruptible
    )

  /** Carries out what is due of one schedule, until nothing is. */
  private readonly turn = Effect.fnUntraced({ self: this }, function* (this: ScheduleBook, name: string, now: number) {
    for (;;) {
      const entry = this.entry(name)
      const plan = this.plan(name)
      if (entry === undefined || plan === undefined || entry.pausedBy !== null) return IDLE
      const { cron, timeZone, upTo } = entry
      if (cron !== null && isFarAhead(plan.times, upTo, now)) {
        yield* Effect.logWarning(`${name}: its times were settled by a clock that was ahead; those from now on count`)
        yield* this.append("schedule.set", { name, cron, time_zone: timeZone, from: now }, CLOCK)
        continue
      }
      const next = this.nextOf(name, entry, plan.times)
      if (next > now) return { until: next, waits: false }
      const due = dueOf(plan.times, plan.catchUp, { upTo: entry.upTo, now })
      if (due._tag === "Wait") return { until: due.until ?? Number.POSITIVE_INFINITY, waits: false }
      if (due._tag === "Missed") {
        const reason = "nobody could act at that time"
        yield* this.append("schedule.skipped", { name, due: due.due, count: due.count, reason }, "missed")
        continue
      }
      const skip = (reason: string) =>
        this.append("schedule.skipped", { name, due: due.due, count: 1, reason }, "skipped")
      if (yield* this.isUnderWay(entry.ran)) {
        // not every end is a rune, nor is it over with that
        if (plan.catchUp === "all") return { until: now + LOOK, waits: true }
        yield* skip(UNDER_WAY)
        continue
      }
      const refused = yield* this.fire({ name, due: due.due, asked: false }, plan.work).pipe(
        Effect.as("its run is in the log already"),
        Effect.catchTag("CommandRefused", ({ message, remedy }) => Effect.succeed(`${message} ${remedy}`))
      )
      // whatever comes of it, no time is due twice
      if (this.entry(name)!.upTo < due.due) yield* skip(refused)
    }
  })

  readonly look = Effect.fnUntraced({ self: this }, function* (this: ScheduleBook, now: number) {
    yield* this.fresh
    let looked = IDLE
    for (const name of this.names) looked = earlier(looked, yield* this.turn(name, now))
    return looked
  })

  readonly rows = (isHeld: boolean): Effect.Effect<ReadonlyArray<ScheduleInfo>> =>
    Effect.forEach(this.names, (name) => this.row(name, isHeld))

  readonly row = Effect.fnUntraced({ self: this }, function* (this: ScheduleBook, name: string, isHeld: boolean) {
    const entry = this.entry(name)!
    const plan = this.plan(name)
    const { once, over, pausedBy, ran } = entry
    const next = plan === undefined ? Number.POSITIVE_INFINITY : this.nextOf(name, entry, plan.times)
    const info: ScheduleInfo = {
      name,
      conversation: this.around.conversation,
      project: this.file.name,
      cron: entry.cron,
      timeZone: entry.timeZone,
      work: shown(plan?.work ?? once?.work ?? {}),
      catchUp: plan?.catchUp ?? once?.catchUp ?? "once",
      state: over !== null ? "done" : pausedBy !== null ? "paused" : isHeld ? "held" : "waits",
      next: over === null && Number.isFinite(next) ? next : null,
      by: once?.by ?? null,
      pausedBy,
      last:
        ran === null
          ? null
          : {
              due: ran.due,
              at: ran.at,
              eventId: ran.eventId,
              asked: ran.asked,
              messageId: ran.messageId,
              goalId: goalOf(ran),
              underWay: yield* this.isUnderWay(ran)
            },
      skipped: entry.skipped
    }
    return info
  })
}
