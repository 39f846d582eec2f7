/**
 * Schedules in a world of their own: the real ones over a log in memory, whose runs a double takes: agents that write
 * into their inboxes as real ones do, and goals that end when the test says so. The clock is set by the test.
 */
import { Clock, Context, type Duration, Effect, Exit, Latch, Layer, PubSub, Schema, Scope, Stream } from "effect"
import { TestClock } from "effect/testing"
import { SchedulesConfig } from "../../../src/config/ScheduleConfig.ts"
import { AgentPort, type Fate } from "../../../src/domain/AgentPort.ts"
import { Conversations, type Standing } from "../../../src/domain/Conversations.ts"
import { CommandRefused } from "../../../src/domain/Messages.ts"
import * as DaemonLog from "../../../src/app/DaemonLog.ts"
import { EventLog, StorageError } from "../../../src/core/event-log/EventLog.ts"
import type { RuneDraft } from "../../../src/core/event-log/Rune.ts"
import type { ScheduleFile } from "../../../src/schedules/ConversationSchedules.ts"
import { LOOK } from "../../../src/schedules/DueTimes.ts"
import * as Schedules from "../../../src/schedules/Schedules.ts"
import * as DynamicSupervisor from "../../../src/core/supervision/DynamicSupervisor.ts"
import * as Supervisor from "../../../src/core/supervision/Supervisor.ts"
import * as SteppedClock from "../../support/SteppedClock.ts"

export const caller = { by: "ada", config: null }
export const CONVERSATION = "web-00000001"

const decode = Schema.decodeUnknownSync(SchedulesConfig)

/** So much time passes at once: many looks. */
const STEP = 10 * LOOK

/** Dies at a moment of a run: before what is sent is written, or after. */
export type Death = "before" | "after" | undefined

interface FileNews {
  readonly conversation: string
  readonly file: ScheduleFile
}

interface StandingNews {
  readonly conversation: string
  readonly standing: Standing
}

export class World {
  readonly log: EventLog["Service"]
  readonly step: (ms: number) => Effect.Effect<void>
  private readonly within: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  readonly files: PubSub.PubSub<FileNews>
  readonly standings: PubSub.PubSub<StandingNews>
  private scope: Scope.Closeable | undefined
  file: ScheduleFile = { name: "web", path: "/web/agentd.jsonc", schedules: {} }
  standing: Standing = "working"
  schedules!: Schedules.Schedules["Service"]
  /** Messages and goals that are not over. */
  readonly open = new Set<string>()
  private readonly known = new Set<string>()
  /** The reason why nothing is taken. */
  refused: string | undefined
  /** Whether what is sent is over at once. */
  isQuick = true
  /** Whether the goals of before are known again. */
  readonly goalsAre = Latch.makeUnsafe(true)
  /** So many reads of single runes fail. */
  unreadable = 0
  death: Death

  constructor(
    log: EventLog["Service"],
    clock: Effect.Success<typeof SteppedClock.make>,
    files: World["files"],
    standings: World["standings"]
  ) {
    this.log = log
    this.step = clock.step
    this.within = clock.within
    this.files = files
    this.standings = standings
  }

  private take(id: string, draft: RuneDraft) {
    return Effect.gen({ self: this }, function* () {
      if (this.refused !== undefined)
        return yield* new CommandRefused({ code: "unavailable", message: this.refused, remedy: "Wait." })
      if (this.known.has(id)) return 0
      if (this.death === "before") return yield* Effect.die(new Error("killed before"))
      const [rune] = yield* Effect.orDie(this.log.append([draft]))
      this.known.add(id)
      if (!this.isQuick) this.open.add(id)
      if (this.death === "after") return yield* Effect.die(new Error("killed after"))
      return rune!.eventId
    })
  }

  /** Ends what is under way. */
  readonly finish = Effect.suspend(() => {
    this.open.clear()
    const event = { _tag: "Withdrawn", messageId: "schedule" }
    const end = { stream: CONVERSATION, kind: "inbox.withdrawn", actor: "inbox/bob", payload: { event } }
    return Effect.orDie(this.log.append([end]))
  })

  private get failing(): EventLog["Service"] {
    const get: EventLog["Service"]["get"] = (eventId) =>
      Effect.suspend(() => {
        if (this.unreadable === 0) return this.log.get(eventId)
        this.unreadable -= 1
        return new StorageError({ reason: "io", message: "disk I/O error", remedy: "" })
      })
    return EventLog.of({ ...this.log, get })
  }

  private get agents() {
    const fate = (id: string): Fate => (this.open.has(id) ? { _tag: "Waiting" } : { _tag: "Unknown" })
    return {
      recovered: Effect.void,
      members: () => Effect.succeed([{ agent: "bob" }]),
      fate: (_: object, id: string) => Effect.sync(() => fate(id)),
      post: ({ agent, conversation }: { readonly agent: string; readonly conversation: string }, message: object) => {
        const { messageId, ...rest } = message as { readonly messageId: string }
        const event = { _tag: "Received", message: { messageId, ...rest, urgent: false, at: 0 } }
        return Effect.map(
          this.take(messageId, {
            stream: conversation,
            kind: "inbox.received",
            actor: `inbox/${agent}`,
            payload: { event }
          }),
          (eventId) => ({ eventId })
        )
      }
    } as unknown as AgentPort["Service"]
  }

  private get goals(): Schedules.Options["goals"] {
    return {
      submit: (_, { text }, { by, key }) =>
        Effect.suspend(() => {
          const goalId = `g${this.known.size + 1}`
          const event = { _tag: "goal_submitted", planId: goalId, goal: text, by, key }
          const payload = { plan_id: goalId, goal_description: text, event }
          const draft = { stream: CONVERSATION, kind: "plan.goal_received", actor: `plan/${goalId}`, payload }
          // goals know no keys: what is submitted twice is two goals
          return Effect.map(this.take(`${key} ${goalId}`, draft), (eventId) => {
            if (!this.isQuick) this.open.add(goalId)
            return { goalId, eventId }
          })
        }),
      recovered: this.goalsAre.await,
      isOpen: (_, goalId) => this.goalsAre.isOpen() && this.open.has(goalId)
    }
  }

  /** A daemon's life begins, with what the file says now. */
  private readonly begin = Effect.gen({ self: this }, function* () {
    const scope = yield* Scope.make()
    this.scope = scope
    const supervisor = DynamicSupervisor.make({
      name: "schedules",
      strategy: "one_for_one",
      intensity: 10,
      period: "1 hour"
    })
    const conversations = {
      known: Effect.succeed([CONVERSATION]),
      standing: () => this.standing,
      changes: Stream.fromPubSub(this.standings)
    }
    const now = Stream.suspend(() => Stream.succeed({ conversation: CONVERSATION, file: this.file }))
    const context = yield* Layer.build(
      Schedules.layer({
        supervisor,
        goals: this.goals,
        files: Stream.merge(Stream.fromPubSub(this.files), now),
        fileOf: () => Effect.succeed(undefined),
        ofCaller: () => Effect.succeed(CONVERSATION)
      }).pipe(
        Layer.provide(Layer.succeed(EventLog, this.failing)),
        Layer.provide(Layer.succeed(AgentPort, this.agents)),
        Layer.provide(Layer.succeed(Conversations, conversations))
      )
    ).pipe(Scope.provide(scope))
    this.schedules = Context.get(context, Schedules.Schedules)
    yield* Supervisor.make({ name: "root", children: [supervisor.child] }).pipe(Scope.provide(scope))
    yield* this.settled
  })

  /** So often somebody went to sleep. */
  sleeps = 0

  /** Each sleep is counted. */
  private counted<A, E>(effect: Effect.Effect<A, E>) {
    return Effect.flatMap(Clock.Clock, (clock) =>
      Effect.provideService(
        effect,
        Clock.Clock,
        Object.assign(Object.create(clock) as Clock.Clock, {
          sleep: (duration: Duration.Duration) =>
            Effect.suspend(() => {
              this.sleeps += 1
              return clock.sleep(duration)
            })
        })
      )
    )
  }

  readonly start = Effect.suspend(() => this.within(this.counted(this.begin)))

  /** As after a kill -9: nothing is said. */
  readonly stop = Effect.suspend(() => (this.scope === undefined ? Effect.void : Scope.close(this.scope, Exit.void)))

  readonly restart = Effect.suspend(() => {
    this.death = undefined
    return Effect.andThen(this.stop, this.start)
  })

  /** All that is due has been done. */
  readonly settled = Effect.gen({ self: this }, function* () {
    for (let turn = 0; turn < 200; turn++) yield* Effect.yieldNow
    yield* this.log.flushed.pipe(Effect.orDie)
    for (let turn = 0; turn < 50; turn++) yield* Effect.yieldNow
  })

  /** The file as it is from now on. */
  readonly configure = (schedules: unknown) =>
    Effect.gen({ self: this }, function* () {
      this.file = { ...this.file, schedules: decode(schedules) }
      yield* PubSub.publish(this.files, { conversation: CONVERSATION, file: this.file })
      yield* this.settled
    })

  readonly stands = (standing: Standing) =>
    Effect.gen({ self: this }, function* () {
      this.standing = standing
      yield* PubSub.publish(this.standings, { conversation: CONVERSATION, standing })
      yield* this.settled
    })

  /** So much time passes; a daemon that runs looks each minute. */
  readonly pass = (ms: number) =>
    Effect.gen({ self: this }, function* () {
      for (let left = ms; left > 0; left -= STEP) {
        yield* TestClock.adjust(Math.min(left, STEP))
        yield* this.settled
      }
    })

  /** The machine sleeps: the wall clock goes on, alone. */
  readonly sleep = (ms: number) => Effect.andThen(this.step(ms), this.pass(LOOK))

  /** All runs, by the times that they are named after, in the order of the log. */
  readonly runs = Effect.suspend(() =>
    Effect.map(Stream.runCollect(this.log.read({ stream: CONVERSATION })), (runes) =>
      [...runes].flatMap(({ payload }) => {
        const event = payload["event"] as
          | { readonly key?: string; readonly message?: { readonly messageId: string } }
          | undefined
        const key = event?.key ?? event?.message?.messageId
        return key === undefined ? [] : [key.replace("schedule/", "").replace(":00.000Z", "")]
      })
    )
  )

  /** Times that passed without a run. */
  readonly skips = Effect.suspend(() =>
    Effect.map(Stream.runCollect(this.log.read({ stream: CONVERSATION, kinds: ["schedule.skipped"] })), (runes) =>
      [...runes].map(
        ({ payload }) =>
          `${payload["name"]}@${new Date(Number(payload["due"])).toISOString().replace(":00.000Z", "")} ${payload["count"]} ${String(payload["reason"])}`
      )
    )
  )

  readonly row = (name: string) =>
    this.within(Effect.map(this.schedules.list({ all: true }, caller), (rows) => rows.find((row) => row.name === name)))

  /** By a person, at the world's own clock. */
  readonly ask = <A, E>(command: (schedules: Schedules.Schedules["Service"]) => Effect.Effect<A, E>) =>
    this.within(
      Effect.andThen(
        Effect.suspend(() => command(this.schedules)),
        (answer) => Effect.as(this.settled, answer)
      )
    )
}

/** `at`: when the test begins. */
export const run = <A, E>(at: string, body: (world: World) => Effect.Effect<A, E>) =>
  Effect.gen(function* () {
    yield* TestClock.setTime(Date.parse(at))
    const files = yield* PubSub.bounded<FileNews>(16)
    const standings = yield* PubSub.bounded<StandingNews>(16)
    const world = new World(yield* EventLog, yield* SteppedClock.make, files, standings)
    yield* world.start
    return yield* Effect.ensuring(body(world), world.stop)
  }).pipe(Effect.provide(DaemonLog.layerMemory))
