/**
 * GoalRegistry: every goal of the log: recovers them at the start, keeps those alive
 * that have not ended, and tells them what happens to agents and conversations.
 *
 * Guarantees: a goal that fails touches no other; a goal whose runes do not fold (a log
 * of a newer agentd, an archived conversation) is named and left out; of a goal that
 * has ended a row stays.
 */
import { Clock, Context, Deferred, Effect, Exit, Schedule, Scope, Stream } from "effect"
import { existsSync } from "node:fs"
import { DeadLetters } from "../event-actor/DeadLetters.ts"
import * as MachineActor from "../event-actor/MachineActor.ts"
import type * as DynamicSupervisor from "../supervision/DynamicSupervisor.ts"
import type { ProcessTree } from "../backends/process/ProcessTree.ts"
import type { Reaper } from "../backends/process/Reaper.ts"
import type { Environment } from "../backends/process/RunProcess.ts"
import type { AgentPort } from "../domain/AgentPort.ts"
import type { Conversations, Standing } from "../domain/Conversations.ts"
import type { GoalConfig } from "../config/GoalConfig.ts"
import type { Caller, CommandRefused } from "../domain/Messages.ts"
import type { EventLog, StorageError } from "../event-log/EventLog.ts"
import type { Rune } from "../event-log/Rune.ts"
import * as GoalMachine from "./GoalMachine.ts"
import * as Activities from "./Activities.ts"
import { GoalActor, isFinal, OURSELVES, type Project, scratchOf, takeBack } from "./GoalActor.ts"
import { actorOf, apply as applyTo, type GoalState, initial, type Stand } from "./GoalState.ts"
import * as ReviewGate from "./ReviewGate.ts"
import { type Figures, figuresOf } from "./GoalView.ts"

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

export interface GoalRecord {
  readonly conversation: string
  readonly goalId: string
  stand: Stand
  /** Undefined once it has ended. */
  state: GoalState | undefined
  figures: Figures
  /** What was in flight when it was stopped. */
  left: ReadonlyArray<{ readonly agent: string; readonly messageId: string }>
}

/** By conversation, then by goal. */
export type Records = Map<string, Map<string, GoalRecord>>

const PREFIX = actorOf("")

const leftOf = ({ plan, stand }: GoalState): GoalRecord["left"] =>
  Object.keys(stand.data.inFlight).flatMap((id) => {
    const node = plan.find(id)
    return node?.agent == null || node.messageId === null ? [] : [{ agent: node.agent, messageId: node.messageId }]
  })

const apply = (records: Records, broken: Set<string>, archived: Set<string>, rune: Rune): void => {
  const { actor, at, eventId, payload, stream } = rune
  const key = `${stream}/${actor}`
  if (broken.has(key)) return
  const goalId = actor.slice(PREFIX.length)
  const goals = records.get(stream) ?? new Map<string, GoalRecord>()
  const record = goals.get(goalId)
  try {
    const told = { eventId, at, event: payload["event"] as GoalMachine.Event }
    const state = applyTo(record?.state ?? initial, told)
    const { stand } = state
    const over = isFinal(stand.state)
    const left = over ? leftOf(state) : []
    const kept = over ? undefined : state
    goals.set(goalId, { conversation: stream, goalId, stand, state: kept, figures: figuresOf(state), left })
    records.set(stream, goals)
  } catch {
    broken.add(key)
    goals.delete(goalId)
    // what an archive has taken is gone in order
    if (payload["event"] === undefined) archived.add(key)
  }
}

export const recover = Effect.fnUntraced(function* (log: EventLog["Service"]) {
  const records: Records = new Map()
  const broken = new Set<string>()
  const archived = new Set<string>()
  yield* Stream.runForEachArray(log.read({ kinds: [...GoalMachine.kinds] }), (runes) =>
    Effect.sync(() => {
      for (const rune of runes) {
        if (rune.actor.startsWith(PREFIX)) apply(records, broken, archived, rune)
      }
    })
  )
  const lost = [...broken].filter((key) => !archived.has(key))
  if (lost.length > 0) yield* Effect.logWarning(`goals that the log no longer tells: ${lost.join(", ")}`)
  return records
})

interface Alive {
  readonly goal: GoalActor
  readonly scope: Scope.Closeable
}

/** What was stopped longer ago than this has been taken back, or has ended by itself. */
const STALE = 86_400_000

/** A goal that was only just made, or that crashed, answers within moments. */
const settles = Schedule.max([Schedule.spaced("20 millis"), Schedule.recurs(250)])

export class GoalRegistry {
  readonly records: Map<string, Map<string, GoalRecord>> = new Map()
  private readonly alive = new Map<string, Alive>()
  /** Where conversations stand that have said so since the start. */
  private readonly standings = new Map<string, Standing>()
  readonly options: Options
  readonly log: EventLog["Service"]
  readonly crew: AgentPort["Service"]
  private readonly conversations: Conversations["Service"]
  readonly ready: Deferred.Deferred<void, StorageError>
  private readonly context: Context.Context<DeadLetters | ProcessTree | Reaper>
  private readonly scope: Scope.Scope

  constructor(parts: {
    readonly options: Options
    readonly log: EventLog["Service"]
    readonly crew: AgentPort["Service"]
    readonly conversations: Conversations["Service"]
    readonly ready: Deferred.Deferred<void, StorageError>
    readonly context: Context.Context<DeadLetters | ProcessTree | Reaper>
    readonly scope: Scope.Scope
  }) {
    this.options = parts.options
    this.log = parts.log
    this.crew = parts.crew
    this.conversations = parts.conversations
    this.ready = parts.ready
    this.context = parts.context
    this.scope = parts.scope
  }

  /** Undefined where it has ended, or is not carried on. */
  find(record: GoalRecord): GoalActor | undefined {
    return this.alive.get(keyOf(record))?.goal
  }

  private standing(conversation: string): Standing {
    return this.standings.get(conversation) ?? this.conversations.standing(conversation)
  }

  /** Its log takes nothing more. */
  isSealed(conversation: string): boolean {
    return this.standing(conversation) === "sealed"
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
  readonly follow = Effect.suspend(() =>
    Stream.runForEach(this.conversations.changes, ({ conversation, standing }) =>
      Effect.sync(() => {
        this.standings.set(conversation, standing)
        for (const record of this.records.get(conversation)?.values() ?? []) {
          this.find(record)?.wake()
          if (standing === "sealed") Effect.runForkWith(this.context)(this.park(record))
        }
      })
    )
  ).pipe(Effect.andThen(Effect.never))

  /** The next name in a conversation. */
  newRecord(conversation: string): GoalRecord {
    const goals = this.records.get(conversation) ?? new Map<string, GoalRecord>()
    this.records.set(conversation, goals)
    const numbers = [...goals.keys()].map((goalId) => Number(goalId.slice(1)))
    const goalId = `g${Math.max(0, ...numbers.filter(Number.isInteger)) + 1}`
    const { stand } = initial
    const record = { conversation, goalId, stand, state: initial, figures: figuresOf(initial), left: [] }
    goals.set(goalId, record)
    return record
  }

  /** It goes on from where its record stands. */
  readonly animate = Effect.fnUntraced({ self: this }, function* (this: GoalRegistry, record: GoalRecord) {
    const { conversation, goalId, stand } = record
    const scope = yield* Scope.fork(this.scope)
    const goal = new GoalActor(
      goalId,
      {
        conversation,
        crew: this.crew,
        log: this.log,
        project: this.options.projects.config(conversation),
        takesWork: () => this.standing(conversation) === "working",
        scope,
        scratch: this.options.scratch,
        store: this.options.store,
        environment: this.options.environment,
        settles
      },
      record.state ?? initial
    )
    yield* this.attach(goal, stand, scope)
    this.alive.set(keyOf(record), { goal, scope })
    goal.over = () => void Effect.runForkWith(this.context)(this.retire(record))
    yield* this.options.nest.add(goal.actor)
    return goal
  })

  private readonly attach = Effect.fnUntraced(
    { self: this },
    function* (this: GoalRegistry, goal: GoalActor, snapshot: Stand, scope: Scope.Scope) {
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
  private readonly retire = Effect.fnUntraced({ self: this }, function* (this: GoalRegistry, record: GoalRecord) {
    const found = this.alive.get(keyOf(record))
    if (found === undefined || !this.alive.delete(keyOf(record))) return
    const { goal, scope } = found
    record.stand = goal.stand
    record.figures = figuresOf(goal.state)
    record.state = undefined
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
  private readonly park = Effect.fnUntraced({ self: this }, function* (this: GoalRegistry, record: GoalRecord) {
    const found = this.alive.get(keyOf(record))
    if (found === undefined || !this.alive.delete(keyOf(record))) return
    record.stand = found.goal.stand
    record.state = found.goal.state
    record.figures = figuresOf(found.goal.state)
    yield* this.options.nest.remove(found.goal.actor.id)
    yield* Scope.close(found.scope, Exit.void)
  })

  /** Those of a conversation that can still be written to. */
  private readonly revive = Effect.fnUntraced(
    { self: this },
    function* (this: GoalRegistry, conversation: string, goals: ReadonlyMap<string, GoalRecord>) {
      const open = [...goals.values()].filter(({ stand }) => !isFinal(stand.state))
      if (open.length === 0) return
      if (this.isSealed(conversation)) return
      for (const record of open) yield* this.animate(record)
    }
  )

  /** What a daemon before this one may not have come to any more when a goal ended: again it changes nothing. */
  private readonly finish = Effect.fnUntraced({ self: this }, function* (this: GoalRegistry, record: GoalRecord) {
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
    for (const [conversation, goals] of yield* recover(this.log)) this.records.set(conversation, goals)
    // until then it is not known which conversations are sealed
    yield* this.crew.recovered
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
