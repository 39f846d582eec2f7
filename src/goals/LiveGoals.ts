/**
 * LiveGoals: Goals over the log: recovers every goal at the start, keeps those alive
 * that have not ended, tells them what happens to agents, and answers for them.
 *
 *     submit ─┐                             ┌ Planner, Critic ─► AgentPort
 *     approve ┼─► GoalActor ─► machine ─┤ Executing ───────► AgentPort
 *     reports ┘        └ GoalState: the fold     └ Gate, Merge ─────► git, commands
 *
 * A goal that fails touches no other. One that has ended costs a row.
 */
import { Clock, Context, Deferred, Effect, Exit, Layer, Schedule, Scope, Stream } from "effect"
import { existsSync } from "node:fs"
import { DeadLetters } from "../event-actor/DeadLetters.ts"
import * as MachineActor from "../event-actor/MachineActor.ts"
import type * as DynamicSupervisor from "../supervision/DynamicSupervisor.ts"
import { ProcessTree } from "../backends/process/ProcessTree.ts"
import { Reaper } from "../backends/process/Reaper.ts"
import type { Environment } from "../backends/process/RunProcess.ts"
import { services } from "../backends/Services.ts"
import { AgentPort } from "../domain/AgentPort.ts"
import type { GoalConfig } from "../config/GoalConfig.ts"
import { type Caller, CommandRefused } from "../domain/Messages.ts"
import * as GoalMachine from "./GoalMachine.ts"
import * as ConversationMachine from "../agents/ConversationMachine.ts"
import { EventLog, StorageError } from "../event-log/EventLog.ts"
import * as Activities from "./Activities.ts"
import { GoalActor, isFinal, OURSELVES, type Project, scratchOf, takeBack } from "./GoalActor.ts"
import { actorOf, GoalState, startOf, type Stand } from "./GoalState.ts"
import * as ReviewGate from "./ReviewGate.ts"
import * as GoalCommands from "./GoalCommands.ts"
import { Goals } from "./Goals.ts"
import { type GoalRecord, recover } from "./Recovery.ts"
import { figuresOf } from "./GoalView.ts"
import * as Backoff from "../supervision/Backoff.ts"

/** What its projects say, which this layer cannot know. */
export interface Projects {
  /** The conversation that a caller stands in. */
  readonly ofCaller: (caller: Caller) => Effect.Effect<string, CommandRefused>
  /** Undefined for a project whose config cannot be read. */
  readonly config: (conversation: string) => Effect.Effect<(Project & { readonly goals: GoalConfig }) | undefined>
}

export interface Options {
  /** Where the goals belong in the supervision tree. */
  readonly nest: DynamicSupervisor.DynamicSupervisor
  readonly projects: Projects
  /** A folder of agentd's own: checkouts for checks are made in it. */
  readonly scratch: string
  /** Marks the processes of this store's checks. */
  readonly store: string
  /** What checks inherit. */
  readonly environment: Environment
}

/** States of a conversation in which its agents take messages. */
const TAKES_WORK = new Set(["created", "active"])
const SEALED = new Set(["closed", "archived"])

interface Alive {
  readonly goal: GoalActor
  readonly scope: Scope.Closeable
}

/** What was stopped longer ago than this has been taken back, or has ended by itself. */
const STALE = 86_400_000

/** A goal that was only just made, or that crashed, answers within moments. */
const settles = Backoff.waits(Backoff.constant("20 millis")).pipe(Schedule.upTo({ times: 250 }))

export class LiveGoals {
  readonly records: Map<string, Map<string, GoalRecord>> = new Map()
  private readonly alive = new Map<string, Alive>()
  /** Where each conversation stands. */
  private readonly states = new Map<string, string>()
  readonly options: Options
  readonly log: EventLog["Service"]
  readonly crew: AgentPort["Service"]
  readonly ready: Deferred.Deferred<void, StorageError>
  private readonly context: Context.Context<DeadLetters | ProcessTree | Reaper>
  private readonly scope: Scope.Scope

  constructor(parts: {
    readonly options: Options
    readonly log: EventLog["Service"]
    readonly crew: AgentPort["Service"]
    readonly ready: Deferred.Deferred<void, StorageError>
    readonly context: Context.Context<DeadLetters | ProcessTree | Reaper>
    readonly scope: Scope.Scope
  }) {
    this.options = parts.options
    this.log = parts.log
    this.crew = parts.crew
    this.ready = parts.ready
    this.context = parts.context
    this.scope = parts.scope
  }

  /** Undefined where it has ended, or is not carried on. */
  find(record: GoalRecord): GoalActor | undefined {
    return this.alive.get(keyOf(record))?.goal
  }

  /** Its log takes nothing more. */
  isSealed(conversation: string): boolean {
    return SEALED.has(this.states.get(conversation) ?? "")
  }

  /** Tells those whom it may concern. */
  readonly listen = Effect.suspend(() =>
    Stream.runForEach(this.crew.reports, (report) =>
      Effect.sync(() => {
        for (const record of this.records.get(report.conversation)?.values() ?? []) this.find(record)?.heard(report)
      })
    )
  ).pipe(Effect.andThen(Effect.never))

  /** Follows where conversations stand; one that is resumed lets its goals go on. */
  readonly follow = (after: number) =>
    Stream.runForEach(this.log.subscribe({ after, kinds: [...ConversationMachine.kinds] }), ({ stream, to }) =>
      Effect.sync(() => {
        if (to !== null) this.states.set(stream, to)
        for (const record of this.records.get(stream)?.values() ?? []) {
          this.find(record)?.wake()
          // its log takes nothing more
          if (to !== null && SEALED.has(to)) Effect.runForkWith(this.context)(this.park(record))
        }
      })
    )

  /** The next name in a conversation. */
  newRecord(conversation: string): GoalRecord {
    const goals = this.records.get(conversation) ?? new Map<string, GoalRecord>()
    this.records.set(conversation, goals)
    const numbers = [...goals.keys()].map((goalId) => Number(goalId.slice(1)))
    const goalId = `g${Math.max(0, ...numbers.filter(Number.isInteger)) + 1}`
    const book = new GoalState()
    const record = { conversation, goalId, stand: startOf(), book, figures: figuresOf(book), left: [] }
    goals.set(goalId, record)
    return record
  }

  /** It goes on from where its record stands. */
  readonly animate = Effect.fnUntraced({ self: this }, function* (this: LiveGoals, record: GoalRecord) {
    const { conversation, goalId, stand } = record
    const scope = yield* Scope.fork(this.scope)
    const goal = new GoalActor(
      goalId,
      {
        conversation,
        crew: this.crew,
        log: this.log,
        project: this.options.projects.config(conversation),
        takesWork: () => TAKES_WORK.has(this.states.get(conversation) ?? "active"),
        scope,
        scratch: this.options.scratch,
        store: this.options.store,
        environment: this.options.environment,
        settles
      },
      record.book ?? new GoalState()
    )
    yield* this.attach(goal, stand, scope)
    this.alive.set(keyOf(record), { goal, scope })
    goal.over = () => void Effect.runForkWith(this.context)(this.retire(record))
    yield* this.options.nest.add(goal.actor)
    return goal
  })

  private readonly attach = Effect.fnUntraced(
    { self: this },
    function* (this: LiveGoals, goal: GoalActor, snapshot: Stand, scope: Scope.Scope) {
      const kind = yield* MachineActor.kind({
        machine: GoalMachine.Autonomy,
        log: this.log,
        deadLetters: Context.get(this.context, DeadLetters),
        perform: ({ taskIds }) => goal.cancelTasks(taskIds),
        activities: Activities.of(goal)
      }).pipe(Scope.provide(scope), Effect.provideContext(this.context))
      goal.actor = yield* kind.make({
        address: `${goal.around.conversation}/${actorOf(goal.goalId)}`,
        actor: actorOf(goal.goalId),
        stream: goal.around.conversation,
        snapshot
      })
    }
  )

  /** One that has ended: its row stays. */
  private readonly retire = Effect.fnUntraced({ self: this }, function* (this: LiveGoals, record: GoalRecord) {
    const found = this.alive.get(keyOf(record))
    if (found === undefined || !this.alive.delete(keyOf(record))) return
    const { goal, scope } = found
    record.stand = goal.stand
    record.figures = figuresOf(goal.book)
    record.book = undefined
    yield* Activities.tidy(goal)
    yield* this.options.nest.remove(goal.actor.id)
    yield* Scope.close(scope, Exit.void)
  })

  /** One that never came to be. */
  readonly drop = (record: GoalRecord) =>
    Effect.suspend(() => {
      this.records.get(record.conversation)?.delete(record.goalId)
      return this.park(record)
    })

  /** No longer carried on; it stays as it stands. */
  private readonly park = Effect.fnUntraced({ self: this }, function* (this: LiveGoals, record: GoalRecord) {
    const found = this.alive.get(keyOf(record))
    if (found === undefined || !this.alive.delete(keyOf(record))) return
    record.stand = found.goal.stand
    record.book = found.goal.book
    record.figures = figuresOf(found.goal.book)
    yield* this.options.nest.remove(found.goal.actor.id)
    yield* Scope.close(found.scope, Exit.void)
  })

  /** Those of a conversation that can still be written to. */
  private readonly revive = Effect.fnUntraced(
    { self: this },
    function* (this: LiveGoals, conversation: string, goals: ReadonlyMap<string, GoalRecord>) {
      const open = [...goals.values()].filter(({ stand }) => !isFinal(stand.state))
      if (open.length === 0) return
      if (this.isSealed(conversation)) return
      for (const record of open) yield* this.animate(record)
    }
  )

  /** What a daemon before this one may not have come to any more when a goal ended: again it changes nothing. */
  private readonly finish = Effect.fnUntraced({ self: this }, function* (this: LiveGoals, record: GoalRecord) {
    const { conversation, goalId, left, stand } = record
    const scratch = scratchOf(this.options.scratch, conversation, goalId)
    if (isFinal(stand.state) && existsSync(scratch)) {
      yield* this.crew.recovered
      const project = yield* this.options.projects.config(conversation)
      if (project !== undefined) yield* ReviewGate.clear(project.root, scratch)
    }
    const now = yield* Clock.currentTimeMillis
    if (left.length === 0 || now - stand.at > STALE) return
    yield* this.crew.recovered
    for (const { agent, messageId } of left) yield* takeBack(this.crew, { conversation, agent }, messageId, goalId)
    record.left = []
  })

  readonly recover = Effect.gen({ self: this }, function* () {
    const { records, states } = yield* recover(this.log)
    for (const [conversation, goals] of records) this.records.set(conversation, goals)
    for (const [conversation, state] of states) this.states.set(conversation, state)
    for (const [conversation, goals] of this.records) yield* this.revive(conversation, goals)
  })

  readonly afterwards = Effect.suspend(() =>
    Effect.forEach(
      [...this.records.values()].flatMap((goals) => [...goals.values()]),
      (record) => this.finish(record),
      { discard: true }
    )
  )

  readonly stopAll = (conversation: string, by: string, reason: string): Effect.Effect<void> =>
    Effect.forEach(
      [...(this.records.get(conversation)?.values() ?? [])],
      (record) => {
        const goal = this.find(record)
        return goal === undefined
          ? Effect.void
          : Effect.catch(goal.moveIfStill({ _tag: "user_cancel", by: by || OURSELVES, reason }), (error) =>
              Effect.logWarning(`${conversation}/${record.goalId}: ${error.message}`)
            )
      },
      { discard: true }
    )
}

const keyOf = ({ conversation, goalId }: Pick<GoalRecord, "conversation" | "goalId">): string =>
  `${conversation}/${goalId}`

const make = Effect.fnUntraced(function* (options: Options) {
  const log = yield* EventLog
  const scope = yield* Effect.scope
  const ready = yield* Deferred.make<void, StorageError>()
  const context = yield* services<DeadLetters | ProcessTree | Reaper>()
  const live = new LiveGoals({ options, log, crew: yield* AgentPort, ready, context, scope })
  const head = yield* log.head
  yield* options.nest.add({ id: "reports", start: Effect.succeed(live.listen) })
  yield* options.nest.add({ id: "standings", start: Effect.succeed(live.follow(head)) })
  yield* live.recover.pipe(
    Effect.onExit((exit) => Deferred.done(ready, exit)),
    Effect.andThen(live.afterwards),
    Effect.tapCause((cause) => Effect.logError("the goals could not be recovered", cause)),
    Effect.forkIn(scope)
  )
  return GoalCommands.service(live)
})

/** Goals, kept alive. The nest belongs under a supervisor, beside the conversations and after them. */
export const layer = (options: Options) => Layer.effect(Goals, make(options))
