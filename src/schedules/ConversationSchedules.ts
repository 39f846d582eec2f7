/**
 * ConversationSchedules: the schedules of one conversation, with their state from the log and their content from the
 * project's file. It decides which runs are due, starts them, and appends all runes except those that record a run.
 *
 * Guarantees: a run is recorded by the rune of the message or goal that it creates, so that a crash leaves both or
 * neither. An appended rune is in the state before any other caller reads it. Only one caller at a time may use it.
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
import { dueOf, isFarAhead, LOOK, onceAt } from "./DueTimes.ts"
import { ACTOR, type scheduleKinds } from "./ScheduleKinds.ts"
import { apply, CLOCK, type Entry, fold, type Ran, type State } from "./ScheduleState.ts"

/** The part of the goals service that schedules use. */
export interface GoalPort {
  /** Submits a goal. The goal's first rune contains `key`. */
  readonly submit: (
    config: string,
    goal: NonNullable<Work["goal"]>,
    of: { readonly by: string; readonly key: string }
  ) => Effect.Effect<{ readonly goalId: string; readonly eventId: number }, CommandRefused | StorageError>
  /** Waits until the goals are recovered. Until then `isOpen` returns false for every goal. */
  readonly recovered: Effect.Effect<void>
  readonly isOpen: (conversation: string, goalId: string) => boolean
}

/** The part of a project's file that schedules read. */
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
  /** Nothing is due before this time, ms since the epoch. Infinite if nothing will be due. */
  readonly until: number
  /** True if a run is due but must wait until the previous run ends. */
  readonly waits: boolean
}

const PREFIX = "plan/"

export const goalOf = ({ actor }: Ran): string | null => (actor.startsWith(PREFIX) ? actor.slice(PREFIX.length) : null)

/** The agent whose inbox received the run's message. */
const agentOf = ({ actor }: Ran): string => actor.slice(actor.indexOf("/") + 1)

const UNDER_WAY = "the previous run is still in progress"

const earlier = (a: Looked, b: Looked): Looked => ({ until: Math.min(a.until, b.until), waits: a.waits || b.waits })

export const IDLE: Looked = { until: Number.POSITIVE_INFINITY, waits: false }

export class ConversationSchedules {
  readonly around: Around
  file: ScheduleFile
  state: State
  /** True if the state may lack runes, because after a disk error it is unknown whether they were written. */
  private isStale = false
  /** Parsed cron expressions, by time zone and expression. */
  private readonly parsed = new Map<string, CronTimes.CronTimes>()
  /** The next due time of each schedule, with the value of `upTo` from which it was computed. */
  private readonly next = new Map<string, { readonly upTo: number; readonly times: object; readonly next: number }>()

  constructor(around: Around, file: ScheduleFile, state: State) {
    this.around = around
    this.file = file
    this.state = state
  }

  readonly append = <K extends keyof typeof scheduleKinds>(kind: K, payload: Payload, trigger: string) =>
    this.around.log.append([{ stream: this.around.conversation, kind, actor: ACTOR, trigger, payload }]).pipe(
      Effect.map(([rune]) => this.take(rune!)),
      Effect.uninterruptible
    )

  /** Reads the state from the log again if it may lack runes. */
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

  /** Names of all schedules except removed ones. A schedule whose only time has passed stays for a while. */
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

  /** The work and times of a schedule; undefined if the schedule is over, or missing in the file. */
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

  /** The next due time, ms since the epoch; infinite if there is none. */
  private nextOf(name: string, entry: Entry, times: CronTimes.CronTimes): number {
    const known = this.next.get(name)
    if (known?.upTo === entry.upTo && (known.times === times || entry.once !== null)) return known.next
    const next = times.next(entry.upTo) ?? Number.POSITIVE_INFINITY
    this.next.set(name, { upTo: entry.upTo, times, next })
    return next
  }

  /** Records in the log what has changed in the file. */
  readonly configure = Effect.fnUntraced(
    { self: this },
    function* (this: ConversationSchedules, file: ScheduleFile, now: number) {
      this.file = file
      for (const [name, { cron, timeZone: zone }] of Object.entries(file.schedules)) {
        const timeZone = zone ?? CronTimes.ownZone()
        const entry = this.entry(name)
        const isSame = entry?.over === null && entry.cron === cron
        if (isSame && entry.timeZone === timeZone) continue
        // if only the machine's zone has changed, the schedule itself has not: times missed in between must still be
        // settled
        const from = isSame && zone === undefined ? entry.upTo : now
        yield* this.append("schedule.set", { name, cron, time_zone: timeZone, from }, "config")
      }
      for (const [name, { cron, over }] of Object.entries(this.state.entries)) {
        if (cron === null || over !== null || Object.hasOwn(file.schedules, name)) continue
        yield* this.append("schedule.removed", { name, by: null }, "config")
      }
    }
  )

  /** Whether the message or the goal of the newest run is still in progress. */
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

  /** Runs a schedule: sends the message, or submits the goal. Returns the `eventId` of the run's rune. */
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

  /** Handles the due times of one schedule, until no more are due. */
  private readonly turn = Effect.fnUntraced(
    { self: this },
    function* (this: ConversationSchedules, name: string, now: number) {
      for (;;) {
        const entry = this.entry(name)
        const plan = this.plan(name)
        if (entry === undefined || plan === undefined || entry.pausedBy !== null) return IDLE
        const { cron, timeZone, upTo } = entry
        if (cron !== null && isFarAhead(plan.times, upTo, now)) {
          yield* Effect.logWarning(
            `${name}: a clock that was ahead had settled future times; times from now on count again`
          )
          yield* this.append("schedule.set", { name, cron, time_zone: timeZone, from: now }, CLOCK)
          continue
        }
        const next = this.nextOf(name, entry, plan.times)
        if (next > now) return { until: next, waits: false }
        const due = dueOf(plan.times, plan.catchUp, { upTo: entry.upTo, now })
        if (due._tag === "Wait") return { until: due.until ?? Number.POSITIVE_INFINITY, waits: false }
        if (due._tag === "Missed") {
          const reason = "the schedule could not run at that time"
          yield* this.append("schedule.skipped", { name, due: due.due, count: due.count, reason }, "missed")
          continue
        }
        const skip = (reason: string) =>
          this.append("schedule.skipped", { name, due: due.due, count: 1, reason }, "skipped")
        if (yield* this.isUnderWay(entry.ran)) {
          // the end of a run is not always recorded by a rune, so check again after a while
          if (plan.catchUp === "all") return { until: now + LOOK, waits: true }
          yield* skip(UNDER_WAY)
          continue
        }
        const refused = yield* this.fire({ name, due: due.due, asked: false }, plan.work).pipe(
          Effect.as("its run is in the log already"),
          Effect.catchTag("CommandRefused", ({ message, remedy }) => Effect.succeed(`${message} ${remedy}`))
        )
        // even if the run failed, no due time is run twice
        if (this.entry(name)!.upTo < due.due) yield* skip(refused)
      }
    }
  )

  readonly look = Effect.fnUntraced({ self: this }, function* (this: ConversationSchedules, now: number) {
    yield* this.fresh
    let looked = IDLE
    for (const name of this.names) looked = earlier(looked, yield* this.turn(name, now))
    return looked
  })

  readonly rows = (isHeld: boolean): Effect.Effect<ReadonlyArray<ScheduleInfo>> =>
    Effect.forEach(this.names, (name) => this.row(name, isHeld))

  readonly row = Effect.fnUntraced(
    { self: this },
    function* (this: ConversationSchedules, name: string, isHeld: boolean) {
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
    }
  )
}
