/**
 * Schedules: the service that sends messages and submits goals at certain times. Some schedules are in projects' files;
 * users add others, which run once.
 *
 *     files, users ──► ConversationSchedules (one per conversation) ──► AgentPort, goals
 *                           ▲ one timer for all, by the wall clock
 *
 * Guarantees: a due time runs at most once, even after a crash, because the rune of the message or goal is also the
 * record of the run. A missed time is handled according to its catchUp. A project that fails affects no other. If there
 * are no schedules, no timer runs. Otherwise the due times are checked at least every minute, because a timer does not
 * notice that the machine slept, or that its clock was set.
 */
import { Clock, Context, Deferred, Effect, Latch, Layer, Semaphore, Stream } from "effect"
import { isZone } from "../config/Zone.ts"
import type { CatchUp } from "../config/ScheduleConfig.ts"
import { AgentPort } from "../domain/AgentPort.ts"
import { Conversations } from "../domain/Conversations.ts"
import { type Caller, type CommandRefused, type Done, refuse } from "../domain/Messages.ts"
import type { ScheduleInfo, Work } from "../domain/ScheduleMessages.ts"
import { EventLog, type RuneRefused, StorageError } from "../core/event-log/EventLog.ts"
import type * as DynamicSupervisor from "../core/supervision/DynamicSupervisor.ts"
import { LOOK } from "./DueTimes.ts"
import { type ScheduleFile, type GoalPort, IDLE, type Looked, ConversationSchedules } from "./ConversationSchedules.ts"
import { fold } from "./ScheduleState.ts"

type Command<A> = Effect.Effect<A, CommandRefused | StorageError>

/** A request for a one-time schedule. */
export interface Request {
  /** Due time, ms since the epoch. */
  readonly due: number
  readonly timeZone: string
  readonly work: Work
  readonly catchUp: CatchUp
}

export class Schedules extends Context.Service<
  Schedules,
  {
    readonly add: (request: Request, caller: Caller) => Command<Done & { readonly name: string }>
    /** Schedules of the caller's project, or of all projects; the one that is due next comes first. */
    readonly list: (options: { readonly all: boolean }, caller: Caller) => Effect.Effect<ReadonlyArray<ScheduleInfo>>
    readonly remove: (name: string, caller: Caller) => Command<Done>
    /** Runs the schedule now, in addition to its due times. */
    readonly run: (name: string, caller: Caller) => Command<Done>
    readonly pause: (name: string, caller: Caller) => Command<Done>
    readonly resume: (name: string, caller: Caller) => Command<Done>
  }
>()("agentd/schedules/Schedules") {}

export interface Options {
  readonly supervisor: DynamicSupervisor.DynamicSupervisor
  readonly goals: GoalPort
  /** The project files in force: each file at the start, and again when it changes. */
  readonly files: Stream.Stream<{ readonly conversation: string; readonly file: ScheduleFile }>
  /** The config file of a conversation's project; undefined if it cannot be read. */
  readonly fileOf: (conversation: string) => Effect.Effect<ScheduleFile | undefined>
  readonly ofCaller: (caller: Caller) => Effect.Effect<string, CommandRefused>
}

/** Maximum number of open one-time schedules per conversation. */
const MAX_ADDED = 1_000

const ENDS = [
  "turn.completed",
  "turn.error",
  "turn.interrupted",
  "inbox.withdrawn",
  "inbox.dropped",
  "plan.goal_met",
  "plan.stopped"
]

/** Turns a rejection by the log into an error for the caller. */
const written = <A>(effect: Effect.Effect<A, CommandRefused | StorageError | RuneRefused>): Command<A> =>
  Effect.catchTag(effect, "RuneRefused", ({ message }) =>
    refuse("conflict", message, "See what is wrong with its conversation: agentd doctor")
  )

const wordsOf = ({ send }: Work): string => (send === undefined ? "submits a goal" : `sends to ${send.agent}`)

class Keeper {
  private readonly books = new Map<string, ConversationSchedules>()
  private readonly news = Latch.makeUnsafe(false)
  private readonly lock = Semaphore.makeUnsafe(1)
  private readonly ready = Deferred.makeUnsafe<void>()
  private readonly options: Options
  private readonly log: EventLog["Service"]
  private readonly agents: AgentPort["Service"]
  private readonly conversations: Conversations["Service"]

  constructor(
    options: Options,
    log: EventLog["Service"],
    agents: AgentPort["Service"],
    conversations: Conversations["Service"]
  ) {
    this.options = options
    this.log = log
    this.agents = agents
    this.conversations = conversations
  }

  private wake(): void {
    this.news.openUnsafe()
  }

  private readonly configure = Effect.fnUntraced(
    { self: this },
    function* (this: Keeper, conversation: string, file: ScheduleFile) {
      const known = this.books.get(conversation)
      const now = yield* Clock.currentTimeMillis
      if (known !== undefined) yield* known.configure(file, now)
      else {
        const { agents, log } = this
        const { schedules } = yield* log.recover(conversation, { schedules: fold })
        const book = new ConversationSchedules(
          { conversation, agents, log, goals: this.options.goals },
          file,
          schedules.state
        )
        yield* book.configure(file, now)
        this.books.set(conversation, book)
      }
      this.wake()
    },
    (effect, conversation) =>
      this.lock
        .withPermit(Effect.uninterruptible(effect))
        .pipe(Effect.catchCause((cause) => Effect.logWarning(`the schedules of ${conversation} no longer run`, cause)))
  )

  /** Follows the projects' files. Run by the supervisor. */
  readonly files = Effect.suspend(() =>
    Stream.runForEach(this.options.files, ({ conversation, file }) => this.configure(conversation, file))
  ).pipe(Effect.andThen(Effect.never))

  /** Follows the conversations. In a closed conversation nothing is due any more. Run by the supervisor. */
  readonly standings = Effect.suspend(() =>
    Stream.runForEach(this.conversations.changes, ({ conversation, standing }) =>
      Effect.sync(() => {
        if (standing === "sealed") this.books.delete(conversation)
        this.wake()
      })
    )
  ).pipe(Effect.andThen(Effect.never))

  /** Handles everything that is due. A conversation that fails affects no other, and is checked again later. */
  private readonly look = Effect.fnUntraced(
    { self: this },
    function* (this: Keeper): Effect.fn.Return<Looked> {
      const now = yield* Clock.currentTimeMillis
      let { until, waits } = IDLE
      for (const [conversation, book] of this.books) {
        if (this.conversations.standing(conversation) !== "working") continue
        const looked = yield* Effect.catchCause(book.look(now), (cause) =>
          Effect.as(Effect.logWarning(`the schedules of ${conversation} could not be checked`, cause), {
            until: now + LOOK,
            waits: false
          })
        )
        until = Math.min(until, looked.until)
        waits ||= looked.waits
      }
      return { until, waits }
    },
    (effect) => this.lock.withPermit(effect)
  )

  /** Waits for a rune after `after` that can mean that a run has ended. */
  private ends(after: number) {
    return this.log.subscribe({ after, kinds: ENDS }).pipe(
      Stream.filter(({ stream }) => this.books.has(stream)),
      Stream.take(1),
      Stream.runDrain,
      Effect.catchCause((cause) =>
        Effect.andThen(Effect.logWarning("the ends of scheduled runs are no longer noticed", cause), Effect.never)
      )
    )
  }

  /** Waits for due times; this is the only timer. Run by the supervisor. */
  readonly times = Effect.gen({ self: this }, function* () {
    yield* this.agents.recovered
    yield* this.options.goals.recovered
    yield* Deferred.succeed(this.ready, undefined)
    while (true) {
      this.news.closeUnsafe()
      const head = yield* this.log.head
      const { until, waits } = yield* this.look()
      const now = yield* Clock.currentTimeMillis
      const sleeps = Number.isFinite(until) ? Effect.sleep(Math.min(Math.max(0, until - now), LOOK)) : Effect.never
      yield* Effect.raceAllFirst([this.news.await, sleeps, waits ? this.ends(head) : Effect.never])
    }
  })

  private readonly bookOf = Effect.fnUntraced({ self: this }, function* (this: Keeper, caller: Caller) {
    yield* Deferred.await(this.ready)
    const conversation = yield* Effect.mapError(this.options.ofCaller(caller), (refused) =>
      caller.config === null
        ? refuse(
            "not_found",
            "There is no agentd.jsonc here, so no project is selected.",
            "Go to the project's folder, then try again."
          )
        : refused
    )
    // the project's file may not have been applied yet to a conversation that has just begun
    const file = this.books.has(conversation) ? undefined : yield* this.options.fileOf(conversation)
    if (file !== undefined && this.conversations.standing(conversation) !== "sealed")
      yield* this.configure(conversation, file)
    const book = this.books.get(conversation)
    if (book !== undefined) return book
    return yield* refuse(
      "closed",
      "The conversation of this project is closed, or its config cannot be read.",
      "Find out which: agentd project show"
    )
  })

  /** Finds a schedule: `nightly` within its project, `project/nightly` from anywhere. */
  private readonly find = Effect.fnUntraced({ self: this }, function* (this: Keeper, named: string, caller: Caller) {
    yield* Deferred.await(this.ready)
    const slash = named.lastIndexOf("/")
    const name = named.slice(slash + 1)
    const project = named.slice(0, Math.max(0, slash))
    const books =
      slash === -1
        ? [yield* this.bookOf(caller)]
        : [...this.books.values()].filter(
            ({ around, file }) => around.conversation === project || file.name === project
          )
    const book = books.find((one) => one.plan(name) !== undefined)
    if (book !== undefined) return { book, name }
    return yield* refuse(
      "not_found",
      `There is no schedule "${named}".`,
      "See which there are: agentd schedule ls --all"
    )
  })

  private on(
    named: string,
    caller: Caller,
    act: (of: {
      readonly book: ConversationSchedules
      readonly name: string
    }) => Effect.Effect<Done, CommandRefused | StorageError | RuneRefused>
  ): Command<Done> {
    return this.find(named, caller).pipe(
      Effect.flatMap((found) =>
        this.lock.withPermit(Effect.uninterruptible(Effect.andThen(found.book.fresh, written(act(found)))))
      ),
      Effect.tap(() => Effect.sync(() => this.wake()))
    )
  }

  readonly add: Schedules["Service"]["add"] = Effect.fnUntraced(
    { self: this },
    function* (this: Keeper, { catchUp, due, timeZone, work }: Request, caller: Caller) {
      const book = yield* this.bookOf(caller)
      const { conversation } = book.around
      const from = yield* Clock.currentTimeMillis
      if (due <= from)
        return yield* refuse("invalid", "That time is past.", "Name a later time. For the forms: agentd at --help")
      if (!isZone(timeZone)) return yield* refuse("invalid", `There is no time zone "${timeZone}".`, "For example: UTC")
      const { goal, send } = work
      if ((goal === undefined) === (send === undefined))
        return yield* refuse("invalid", "A schedule sends a message, or submits a goal.", "See how: agentd at --help")
      const members = (yield* this.agents.members(conversation)).map(({ agent }) => agent)
      if (send !== undefined && !members.includes(send.agent))
        return yield* refuse(
          "not_found",
          `There is no agent "${send.agent}".`,
          `There are: ${members.join(", ") || "none"}`
        )
      return yield* this.lock.withPermit(
        Effect.gen({ self: this }, function* () {
          const { added, entries } = book.state
          if (Object.values(entries).filter(({ once, over }) => once !== null && over === null).length >= MAX_ADDED)
            return yield* refuse(
              "full",
              `${MAX_ADDED} schedules are waiting already.`,
              "Remove some: agentd schedule rm NAME"
            )
          const name = `at-${added + 1}`
          const payload = { name, due, time_zone: timeZone, work, catch_up: catchUp, by: caller.by, from }
          const { eventId } = yield* written(book.append("schedule.added", { ...payload }, "person"))
          this.wake()
          return { eventId, name, message: `${name} ${wordsOf(work)}.` }
        }).pipe(Effect.uninterruptible)
      )
    }
  )

  readonly list: Schedules["Service"]["list"] = Effect.fnUntraced(
    { self: this },
    function* (this: Keeper, { all }: { readonly all: boolean }, caller: Caller) {
      const own = all
        ? undefined
        : yield* Effect.orElseSucceed(this.options.ofCaller(caller), (): string | undefined => undefined)
      const rows: Array<ScheduleInfo> = []
      for (const [conversation, book] of this.books) {
        if (own !== undefined && own !== conversation) continue
        rows.push(...(yield* book.rows(this.conversations.standing(conversation) !== "working")))
      }
      const at = ({ next }: ScheduleInfo) => next ?? Number.POSITIVE_INFINITY
      return rows.toSorted((a, b) => (at(a) === at(b) ? (a.name < b.name ? -1 : 1) : at(a) - at(b)))
    }
  )

  readonly remove: Schedules["Service"]["remove"] = (named, caller) =>
    this.on(named, caller, ({ book, name }) =>
      book.entry(name)!.cron === null
        ? Effect.map(book.append("schedule.removed", { name, by: caller.by }, "person"), ({ eventId }) => ({
            eventId,
            message: `${name} is removed: nothing is sent.`
          }))
        : refuse(
            "conflict",
            `${name} is in ${book.file.path}.`,
            `Remove it from that file, then: agentd trust ${book.file.name}. Or: agentd schedule pause ${named}`
          )
    )

  readonly run: Schedules["Service"]["run"] = (named, caller) =>
    this.on(
      named,
      caller,
      Effect.fnUntraced({ self: this }, function* (this: Keeper, { book, name }) {
        const { work } = book.plan(name)!
        if (yield* book.isUnderWay(book.entry(name)!.ran))
          return yield* refuse(
            "not_now",
            `The last run of ${name} is still in progress.`,
            "Wait until it has ended. See its state: agentd schedule ls"
          )
        const eventId = yield* book.fire({ name, due: yield* Clock.currentTimeMillis, asked: true }, work)
        return { eventId, message: `${name} ${wordsOf(work)} now.` }
      })
    )

  readonly pause: Schedules["Service"]["pause"] = (named, caller) =>
    this.on(named, caller, ({ book, name }) =>
      Effect.map(book.append("schedule.paused", { name, by: caller.by }, "person"), ({ eventId }) => ({
        eventId,
        message: `${name} is paused: its times pass. Let it go on: agentd schedule resume ${named}`
      }))
    )

  readonly resume: Schedules["Service"]["resume"] = (named, caller) =>
    this.on(
      named,
      caller,
      Effect.fnUntraced(function* ({ book, name }) {
        if (book.entry(name)!.pausedBy === null)
          return yield* refuse("conflict", `${name} is not paused.`, "See when it is due: agentd schedule ls")
        const from = yield* Clock.currentTimeMillis
        const { eventId } = yield* book.append("schedule.resumed", { name, by: caller.by, from }, "person")
        return { eventId, message: `${name} goes on.` }
      })
    )
}

const make = Effect.fnUntraced(function* (options: Options) {
  const keeper = new Keeper(options, yield* EventLog, yield* AgentPort, yield* Conversations)
  yield* options.supervisor.add({ id: "files", start: Effect.succeed(keeper.files) })
  yield* options.supervisor.add({ id: "standings", start: Effect.succeed(keeper.standings) })
  yield* options.supervisor.add({ id: "times", start: Effect.succeed(keeper.times) })
  const { add, list, pause, remove, resume, run } = keeper
  return Schedules.of({ add, list, pause, remove, resume, run })
})

/** The supervisor in the options must be started by another supervisor, after those of the agents and the goals. */
export const layer = (options: Options) => Layer.effect(Schedules, make(options))
