/**
 * GoalRegistry: manages every goal of the log. At startup it recovers the goals and starts those that have not ended.
 * It passes on agents' reports and status changes of conversations.
 *
 * Guarantees: a goal that fails affects no other. A goal that cannot be rebuilt from its runes (a log of a newer
 * agentd, an archived conversation) is reported and left out. An ended goal stays in the list.
 */
import { Clock, type Context, type Deferred, Effect, HashMap, Option, type Scope, Semaphore, Stream } from "effect"
import type { System } from "../core/event-actor/ActorSystem.ts"
import { CommitScope } from "../core/event-actor/CommitScope.ts"
import type * as DynamicSupervisor from "../core/supervision/DynamicSupervisor.ts"
import type { Environment } from "../runs/process/ChildProcess.ts"
import type { AgentPort } from "../domain/AgentPort.ts"
import type { Conversations, Standing } from "../domain/Conversations.ts"
import type { Caller, CommandRefused } from "../domain/Messages.ts"
import type { EventLog, StorageError } from "../core/event-log/EventLog.ts"
import type { Rune } from "../core/event-log/Rune.ts"
import type { StreamFold } from "../core/event-log/StreamFold.ts"
import * as ConversationId from "../domain/ConversationId.ts"
import * as GoalMachine from "./GoalMachine.ts"
import * as GoalActivities from "./GoalActivities.ts"
import {
  definition,
  GoalActor,
  type Needs,
  OURSELVES,
  type ConfiguredProject,
  scratchOf,
  takeBack
} from "./GoalActor.ts"
import {
  actorOf,
  apply as applyTo,
  eventOf,
  fromPlain,
  type GoalState,
  initial,
  isFinal,
  type PlainGoal,
  type Stand,
  toPlain
} from "./GoalState.ts"
import * as Kept from "./Kept.ts"
import * as ReviewGate from "./ReviewGate.ts"
import { type Figures, figuresOf } from "./GoalView.ts"

/** Access to the projects' settings, which this layer cannot read itself. */
export interface Projects {
  readonly ofCaller: (caller: Caller) => Effect.Effect<string, CommandRefused>
  /** The config of a conversation's project; undefined if it cannot be read. */
  readonly config: (conversation: string) => Effect.Effect<ConfiguredProject | undefined>
}

export interface Options {
  readonly supervisor: DynamicSupervisor.DynamicSupervisor
  readonly projects: Projects
  /** Path of agentd's own folder for the checkouts in which checks run. */
  readonly scratch: string
  /** The folder of the daemon's own git repositories. */
  readonly stores: string
  /** Identifies the processes of this store's checks. */
  readonly store: string
  /** The daemon's environment, from which the environment of checks is derived. */
  readonly environment: Environment
}

/** A goal of the log, whether it is running or has ended. */
export interface GoalRecord {
  readonly conversation: string
  readonly goalId: string
  readonly stand: Stand
  /** `eventId` of the goal's newest rune. */
  readonly upTo: number
  /** The goal's current state; undefined if the goal has ended. */
  readonly state: GoalState | undefined
  readonly figures: Figures
  /** The tasks that were in progress when the goal was stopped. */
  readonly left: ReadonlyArray<{ readonly agent: string; readonly messageId: string }>
}

const recordOf = (conversation: string, goalId: string, state: GoalState): GoalRecord => {
  const { stand, upTo } = state
  const ended = isFinal(stand)
  const of = { conversation, goalId, stand, upTo, figures: figuresOf(state) }
  return { ...of, state: ended ? undefined : state, left: ended ? leftOf(state) : [] }
}

const leftOf = ({ plan, stand }: GoalState): GoalRecord["left"] =>
  Object.keys(stand.data.inFlight).flatMap((id) => {
    const node = plan.find(id)
    return node?.agent == null || node.messageId === null ? [] : [{ agent: node.agent, messageId: node.messageId }]
  })

/** The goals of one conversation, by name. `archived` or `broken` if a goal cannot be rebuilt from its runes. */
type Goals = HashMap.HashMap<string, GoalRecord | "archived" | "broken">

const PREFIX = actorOf("")
const kinds: ReadonlySet<string> = new Set(GoalMachine.kinds)

const apply = (goals: Goals, rune: Rune): Goals => {
  if (!rune.actor.startsWith(PREFIX) || !kinds.has(rune.kind)) return goals
  const goalId = rune.actor.slice(PREFIX.length)
  const known = Option.getOrUndefined(HashMap.get(goals, goalId))
  if (typeof known === "string") return goals
  try {
    if (known !== undefined && known.state === undefined) throw new Error(`${goalId} has ended`)
    return HashMap.set(goals, goalId, recordOf(rune.stream, goalId, applyTo(known?.state ?? initial, rune)))
  } catch {
    // archiving removes the payloads of runes
    return HashMap.set(goals, goalId, eventOf(rune) === undefined ? "archived" : "broken")
  }
}

type PlainRecord = Omit<GoalRecord, "state"> & { readonly state: PlainGoal | null }

export const fold: StreamFold<Goals> = {
  name: "goals",
  version: 1,
  initial: HashMap.empty(),
  of: ConversationId.mayBe,
  apply,
  toPlain: (goals) =>
    Array.from(goals, ([goalId, record]) => [
      goalId,
      typeof record === "string"
        ? record
        : { ...record, state: record.state === undefined ? null : toPlain(record.state) }
    ]),
  fromPlain: (plain) =>
    HashMap.fromIterable(
      (plain as ReadonlyArray<[string, PlainRecord | "archived" | "broken"]>).map(([goalId, record]) => [
        goalId,
        typeof record === "string"
          ? record
          : { ...record, state: record.state === null ? undefined : fromPlain(record.state) }
      ])
    )
}

/** Reads the goals of each conversation separately. A conversation that cannot be read is reported and left out. */
export const recover = Effect.fnUntraced(function* (log: EventLog["Service"], conversations: ReadonlyArray<string>) {
  const found = new Map<string, Goals>()
  for (const conversation of conversations) {
    const recovered = yield* Effect.result(log.recover(conversation, { goals: fold }))
    if (recovered._tag === "Failure") {
      yield* log.setAside({ stream: conversation, part: "all goals", message: recovered.failure.message })
      continue
    }
    const { state } = recovered.success.goals
    found.set(conversation, state)
    for (const [goalId, record] of state) {
      if (record !== "broken") continue
      const message = "its runes do not fold (a log of a newer agentd, or a damaged one)"
      yield* log.setAside({ stream: conversation, part: `the goal ${goalId}`, message })
    }
  }
  return found as ReadonlyMap<string, Goals>
})

/** The goals that could be rebuilt from their runes, by name. */
export const recordsOf = (goals: Goals): ReadonlyMap<string, GoalRecord> =>
  new Map([...goals].flatMap(([goalId, record]) => (typeof record === "string" ? [] : [[goalId, record] as const])))

interface Alive {
  readonly goal: GoalActor
  readonly scope: CommitScope
}

/** Time after a goal's stop, in ms, from which its tasks need not be withdrawn: they were withdrawn or have ended. */
const STALE = 86_400_000

export interface Parts {
  readonly options: Options
  readonly log: EventLog["Service"]
  readonly system: System
  readonly agents: AgentPort["Service"]
  readonly conversations: Conversations["Service"]
  readonly ready: Deferred.Deferred<void, StorageError>
  readonly context: Context.Context<Needs>
  readonly scope: Scope.Scope
}

export class GoalRegistry {
  readonly records: Map<string, Map<string, GoalRecord>> = new Map()
  /** All goals found at startup, by conversation, including those that cannot be rebuilt: their names are in use. */
  private found: ReadonlyMap<string, Goals> = new Map()
  private readonly unread = new Set<string>()
  private readonly alive = new Map<string, Alive>()
  /** Status by conversation. Contains only conversations whose status has changed since startup. */
  private readonly standings = new Map<string, Standing>()
  readonly parts: Parts
  private readonly giving = new Map<string, Semaphore.Semaphore>()

  constructor(parts: Parts) {
    this.parts = parts
  }

  /** The goal's actor; undefined if the goal has ended or is parked. */
  find(record: Named): GoalActor | undefined {
    return this.alive.get(keyOf(record))?.goal
  }

  private standing(conversation: string): Standing {
    return this.standings.get(conversation) ?? this.parts.conversations.standing(conversation)
  }

  isSealed(conversation: string): boolean {
    return this.standing(conversation) === "sealed"
  }

  private goalsOf(conversation: string): Map<string, GoalRecord> {
    const known = this.records.get(conversation)
    if (known !== undefined) return known
    const fresh = new Map<string, GoalRecord>()
    this.records.set(conversation, fresh)
    return fresh
  }

  readonly listen = Effect.suspend(() =>
    Stream.runForEach(this.parts.agents.reports, (report) =>
      Effect.sync(() => {
        for (const record of this.records.get(report.conversation)?.values() ?? []) this.find(record)?.heard(report)
      })
    )
  ).pipe(Effect.andThen(Effect.never))

  /** Goals of a resumed conversation continue; goals of a sealed one are parked. */
  readonly follow = Effect.suspend(() =>
    Stream.runForEach(this.parts.conversations.changes, ({ conversation, standing }) =>
      Effect.sync(() => {
        this.standings.set(conversation, standing)
        this.wake(conversation)
        if (standing !== "sealed") return
        for (const record of this.records.get(conversation)?.values() ?? [])
          Effect.runForkWith(this.parts.context)(this.park(record))
      })
    )
  ).pipe(Effect.andThen(Effect.never))

  private wake(conversation: string): void {
    for (const record of this.records.get(conversation)?.values() ?? []) this.find(record)?.wake()
  }

  /** Whether an agent has a task in progress from a goal other than `except`. */
  private worksFor(conversation: string, agent: string, except: string): boolean {
    return [...(this.records.get(conversation)?.values() ?? [])].some((record) => {
      const { plan, stand } = this.find(record)?.state ?? record.state ?? initial
      if (record.goalId === except || stand.state !== "executing") return false
      return Object.keys(stand.data.inFlight).some((id) => plan.find(id)?.agent === agent)
    })
  }

  private givingTo(agent: string): Semaphore.Semaphore {
    const lock = this.giving.get(agent) ?? Semaphore.makeUnsafe(1)
    this.giving.set(agent, lock)
    return lock
  }

  private around(conversation: string): Kept.Around {
    const { agents, log, options } = this.parts
    return { agents, conversation, log, stores: options.stores, project: options.projects.config(conversation) }
  }

  /** Names, separated by commas, of the git refs that keep the commits of a stopped goal. Empty for other goals. */
  keptOf({ conversation, goalId, stand }: GoalRecord): Effect.Effect<string> {
    return stand.state === "stopped"
      ? Effect.provideContext(Kept.namesOf(this.around(conversation), goalId), this.parts.context)
      : Effect.succeed("")
  }

  /** Creates a goal record with the next free goal id (`g1`, `g2`, …) of the conversation. */
  newRecord(conversation: string): GoalRecord {
    const goals = this.goalsOf(conversation)
    const names = [...goals.keys(), ...HashMap.keys(this.found.get(conversation) ?? fold.initial)]
    const numbers = names.map((goalId) => Number(goalId.slice(1)))
    const record = recordOf(conversation, `g${Math.max(0, ...numbers.filter(Number.isInteger)) + 1}`, initial)
    goals.set(record.goalId, record)
    return record
  }

  /** Starts the goal's actor from the record's state. */
  readonly animate = Effect.fnUntraced({ self: this }, function* (this: GoalRegistry, record: GoalRecord) {
    const { context, options, scope: around, system } = this.parts
    const { conversation, goalId, state } = record
    const name = actorOf(goalId)
    const scope = new CommitScope(system, { id: `${conversation}/${name}`, stream: conversation })
    const surroundings = {
      ...this.around(conversation),
      takesWork: () => this.standing(conversation) === "working",
      scope: around,
      scratch: options.scratch,
      store: options.store,
      environment: options.environment,
      giving: (agent: string) => this.givingTo(`${conversation}/${agent}`),
      worksForAnother: (agent: string) => this.worksFor(conversation, agent, goalId),
      wakeAll: () => this.wake(conversation)
    }
    const goal = new GoalActor(goalId, surroundings, (of) => {
      const activities = GoalActivities.of(of)
      const actor = definition({
        perform: (action) =>
          action._tag === "CancelTasks"
            ? of.cancelTasks(action.taskIds)
            : Effect.sync(() => void Effect.runForkWith(context)(this.retire(record))),
        run: (name, entered) => Effect.provideContext(activities[name](entered), context)
      })
      return scope.add(name, actor, state ?? initial)
    })
    this.alive.set(keyOf(record), { goal, scope })
    yield* options.supervisor.add(scope)
    return goal
  })

  /** Ends the goal's actor; the record keeps the last state. */
  private readonly leave = Effect.fnUntraced(
    { self: this },
    function* (this: GoalRegistry, record: Named, before: (goal: GoalActor) => Effect.Effect<void>) {
      const { conversation, goalId } = record
      const found = this.alive.get(keyOf(record))
      if (found === undefined || !this.alive.delete(keyOf(record))) return
      const { goal, scope } = found
      const goals = this.goalsOf(conversation)
      const keep = () => {
        if (goals.has(goalId)) goals.set(goalId, recordOf(conversation, goalId, goal.state))
      }
      keep()
      yield* before(goal)
      yield* this.parts.options.supervisor.remove(scope.id)
      scope.close()
      // an event that was being logged while the conversation was sealed is durable by now
      keep()
    }
  )

  private retire(record: Named) {
    return this.leave(record, (goal) => Effect.provideContext(GoalActivities.tidy(goal), this.parts.context))
  }

  /** Ends the actor of a goal that cannot continue now. The goal's state does not change. */
  private park(record: Named) {
    return this.leave(record, () => Effect.void)
  }

  /** Removes a goal that could not be submitted. */
  readonly drop = (record: Named) =>
    Effect.suspend(() => {
      this.records.get(record.conversation)?.delete(record.goalId)
      return this.park(record)
    })

  /** Starts the open goals of a conversation that is not sealed. */
  private readonly revive = Effect.fnUntraced(
    { self: this },
    function* (this: GoalRegistry, conversation: string, goals: ReadonlyMap<string, GoalRecord>) {
      if (this.isSealed(conversation)) return
      for (const record of goals.values()) if (record.state !== undefined) yield* this.animate(record)
    }
  )

  /** Completes a cleanup that an earlier daemon may not have finished. Repeating it changes nothing. */
  private readonly finish = Effect.fnUntraced({ self: this }, function* (this: GoalRegistry, record: GoalRecord) {
    const { agents, options } = this.parts
    const { conversation, goalId, left, stand } = record
    if (!isFinal(stand)) return
    const scratch = scratchOf(options.scratch, conversation, goalId)
    if (yield* ReviewGate.exists(scratch)) {
      const project = yield* options.projects.config(conversation)
      if (project !== undefined) yield* ReviewGate.clear(options.stores, project.root, scratch)
    }
    if ((yield* Clock.currentTimeMillis) - stand.at > STALE) return
    for (const { agent, messageId } of left) yield* takeBack(agents, { conversation, agent }, messageId, goalId)
    yield* agents.recovered
    yield* Kept.keep(this.around(conversation), goalId)
  })

  readonly recover = Effect.gen({ self: this }, function* () {
    const known = yield* this.parts.conversations.known
    this.found = yield* recover(this.parts.log, known)
    for (const conversation of known) if (!this.found.has(conversation)) this.unread.add(conversation)
    for (const [conversation, goals] of this.found) this.records.set(conversation, new Map(recordsOf(goals)))
    for (const [conversation, goals] of this.records) yield* this.revive(conversation, goals)
  })

  /** True if the conversation's goals could not be read, so that the names in use are unknown. */
  isUnread(conversation: string): boolean {
    return this.unread.has(conversation)
  }

  /** Completes the cleanup of all goals that had ended before the daemon started. */
  readonly afterwards = Effect.suspend(() => {
    const ended = [...this.records.values()].flatMap((goals) => [...goals.values()])
    const all = Effect.forEach(ended, (record) => this.finish(record), { discard: true })
    return Effect.provideContext(all, this.parts.context)
  })

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

type Named = Pick<GoalRecord, "conversation" | "goalId">

const keyOf = ({ conversation, goalId }: Named): string => `${conversation}/${goalId}`
