/**
 * GoalActor: one goal as an event-sourced actor, with its in-memory data.
 *
 * The actor's state is the goal's state. The state machine's table decides each state change, and the work of each
 * state is an activity. Data that need no rune are only in memory: the message that says what the goal waits for, and
 * agents' reports on their current turns.
 *
 * Guarantees: after a crash an activity finds its messages again by their keys. So no question is asked twice, and no
 * task is assigned twice.
 */
import { Clock, Effect, Fiber, type FileSystem, Latch, type Scope, Semaphore, Stream } from "effect"
import type { GoalConfig } from "../config/GoalConfig.ts"
import type { Committed, ActorHandle, AskError } from "../core/event-actor/ActorHandle.ts"
import { actor, type EventSourcedActor, Refuse } from "../core/event-actor/EventSourcedActor.ts"
import { Refused, refused } from "../core/event-actor/Refused.ts"
import type { ProcessTree } from "../runs/process/ProcessTree.ts"
import type { Reaper } from "../runs/process/Reaper.ts"
import type { Environment } from "../runs/process/ChildProcess.ts"
import type { Address, AgentPort, AgentReport, Member, TurnOutcome } from "../domain/AgentPort.ts"
import type { GoalOptions, Task } from "../domain/GoalMessages.ts"
import { inTurns, type Steps } from "../domain/TimeSlices.ts"
import { refuse, type Report } from "../domain/Messages.ts"
import { readWork } from "../domain/WorkKinds.ts"
import type { EventLog, StorageError } from "../core/event-log/EventLog.ts"
import type { Rune } from "../core/event-log/Rune.ts"
import * as GoalMachine from "./GoalMachine.ts"
import { actorOf, apply, eventOf, type GoalState, initial, isFinal, table } from "./GoalState.ts"
import { DEFAULTS, isWorker } from "./GoalDefaults.ts"
import type { Worker } from "./Scheduler.ts"

export interface Project {
  readonly name: string
  /** Absolute path of the folder with the config. */
  readonly root: string
}

export type ConfiguredProject = Project & { readonly goals: GoalConfig }

export interface Surroundings {
  readonly conversation: string
  readonly agents: AgentPort["Service"]
  readonly log: EventLog["Service"]
  readonly project: Effect.Effect<ConfiguredProject | undefined>
  /** Whether the conversation accepts work. If it does not, the goal waits. */
  readonly takesWork: () => boolean
  /** Scope in which a plan is entered completely, even if the caller is interrupted. */
  readonly scope: Scope.Scope
  /** Path of agentd's own folder for the checkouts in which checks run. */
  readonly scratch: string
  /** The folder of the daemon's own git repositories. */
  readonly stores: string
  readonly store: string
  readonly environment: Environment
  /** An agent's lock: goals assign one task at a time, so that each starts from the commit of the previous one. */
  readonly giving: (agent: string) => Semaphore.Semaphore
  /** Whether an agent has a task in progress from another goal, according to that goal's state. */
  readonly worksForAnother: (agent: string) => boolean
  readonly wakeAll: () => void
}

export type Handle = ActorHandle<GoalState, GoalMachine.Event, never>
/** The actions in the state machine's table, and `Retire`, which is done when the goal ends. */
export type Action = GoalMachine.Action | { readonly _tag: "Retire" }
export type Needs = FileSystem.FileSystem | ProcessTree | Reaper
export type Doing = Exclude<(typeof GoalMachine.Autonomy)["states"][GoalMachine.State]["enter"], undefined>

/** Interval at which a waiting activity checks again even without a report, ms. */
const LOOK_AGAIN = 30_000
/** Maximum size of a piece of a plan, in bytes of JSON. A larger task is one piece. Runes contain each piece twice. */
const PIECE_BYTES = 60_000
/** Number of bytes whose processing counts as one step (see TimeSlices). */
const COUNTED = 10_000
const MAX_REPORTS = 16
/** Maximum number of recent turn-end runes that are searched for the end of a turn. */
const MAX_ENDS = 256
/** Author of the state changes that agentd makes by itself. */
export const OURSELVES = "agentd"

export const RESTS = "the conversation accepts no work: the goal continues when it is resumed"

/** The folder in which a goal's checks run. */
export const scratchOf = (folder: string, conversation: string, goalId: string): string =>
  `${folder}/${conversation}/${goalId}`

/** Events after which other goals can assign a task to the agent. */
const frees: ReadonlySet<GoalMachine.Event["_tag"]> = new Set([
  "task_completed",
  "task_failed",
  "task_retried",
  "budget_exhausted",
  "user_cancel"
])

/** Splits tasks into pieces that fit into a rune. */
export const pieces = function* (tasks: ReadonlyArray<Task>): Steps<ReadonlyArray<ReadonlyArray<Task>>> {
  const all: Array<Array<Task>> = [[]]
  let bytes = 0
  for (const task of tasks) {
    const size = Buffer.byteLength(JSON.stringify(task))
    const piece = all.at(-1)!
    if (piece.length > 0 && (piece.length >= GoalMachine.FIRST_TASKS || bytes + size > PIECE_BYTES)) {
      all.push([task])
      bytes = size
    } else {
      piece.push(task)
      bytes += size
    }
    yield 0.1 + size / COUNTED
  }
  return all
}

export class GoalActor {
  readonly goalId: string
  readonly around: Surroundings
  readonly self: Handle
  /** The goal's current activity, or the reason for its wait, in plain words. */
  detail = ""
  /** For each agent whose repository git cannot read: since when, ms since the epoch. */
  readonly unreadSince = new Map<string, number>()
  /** True if an agent's repository has been unreadable for a minute: the user must fix it. */
  isStuck = false
  asking: { readonly agent: string; readonly messageId: string } | undefined = undefined
  /** True while a plan is being entered, piece by piece. */
  entering = false
  private readonly cancelling = Semaphore.makeUnsafe(1)
  private readonly latch = Latch.makeUnsafe(false)
  private readonly reports = new Map<string, { readonly turnId: string; readonly said: ReadonlyArray<Report> }>()

  constructor(goalId: string, around: Surroundings, join: (goal: GoalActor) => Handle) {
    this.goalId = goalId
    this.around = around
    this.self = join(this)
  }

  get scratch(): string {
    return scratchOf(this.around.scratch, this.around.conversation, this.goalId)
  }

  get state(): GoalState {
    return this.self.state
  }

  get options(): GoalOptions {
    return this.state.options ?? DEFAULTS
  }

  /** Wakes the activity that waits in `news`. */
  wake(): void {
    this.latch.openUnsafe()
  }

  /** Waits until something has changed, but at most `atMost` ms, and at most `LOOK_AGAIN` ms. */
  news(atMost = LOOK_AGAIN): Effect.Effect<void> {
    return Effect.andThen(
      Effect.timeoutOption(this.latch.await, Math.max(0, Math.min(atMost, LOOK_AGAIN))),
      Effect.sync(() => void this.latch.closeUnsafe())
    )
  }

  heard(report: AgentReport): void {
    if (report._tag === "Active") return
    if (report._tag === "Reported" && report.turnId !== null) {
      const { agent, evidence, status, summary, turnId } = report
      const before = this.reports.get(agent)
      const said = before?.turnId === turnId ? before.said : []
      this.reports.set(agent, { turnId, said: [...said, { status, summary, evidence }].slice(-MAX_REPORTS) })
    }
    this.wake()
  }

  said(agent: string, turnId: string): ReadonlyArray<Report> {
    const found = this.reports.get(agent)
    return found?.turnId === turnId ? found.said : []
  }

  /** Describes how an interrupted or failed turn ended, from the turn's last rune. */
  readonly howEnded = (turnId: string, outcome: TurnOutcome, after: number) =>
    Effect.map(
      this.around.log.tail(
        { stream: this.around.conversation, kinds: ["turn.error", "turn.interrupted"], after },
        MAX_ENDS
      ),
      (runes) => {
        const end = runes.flatMap((rune) => readWork(rune) ?? []).findLast(({ payload }) => payload.turn_id === turnId)
        const why =
          end?.kind === "turn.error"
            ? end.payload.message
            : end?.kind === "turn.interrupted"
              ? end.payload.reason
              : undefined
        const how = outcome === "error" ? "its turn ended with an error" : `its turn was ${outcome}`
        return why !== null && why !== undefined && why !== "" ? `${how}: ${why}` : how
      }
    )

  /** Sends an event. When this returns, the event's rune is durable, and `state` includes it. */
  move(event: GoalMachine.Event): Effect.Effect<Committed<GoalState>, AskError> {
    return Effect.tap(this.self.ask(event), () =>
      Effect.sync(() => (frees.has(event._tag) ? this.around.wakeAll() : this.wake()))
    )
  }

  /** Sends an event. If the goal's state no longer allows the event, it is ignored without an error. */
  readonly moveIfStill = (event: GoalMachine.Event) =>
    Effect.catchIf(
      Effect.asVoid(this.move(event)),
      (error): error is Refused => error instanceof Refused,
      (error) => Effect.logDebug(error.message)
    )

  /** Enters a whole plan in pieces; the first piece ends the decomposition. */
  readonly enterPlan = (tasks: ReadonlyArray<Task>) =>
    this.enter(tasks, (piece, index) =>
      index === 0
        ? { _tag: "decompose_goal", tasks: piece, total: tasks.length }
        : { _tag: "plan_updated", added: piece, cancelled: [], total: tasks.length }
    )

  readonly enterRevision = (tasks: ReadonlyArray<Task>) => {
    const total = this.state.plan.size + tasks.length
    return this.enter(tasks, (added) => ({ _tag: "plan_updated", added, cancelled: [], total }))
  }

  /**
   * Enters a plan piece by piece; other events are handled in between. All pieces are entered even if the caller is
   * interrupted, because the first piece can end the activity that enters the plan.
   */
  private enter(tasks: ReadonlyArray<Task>, event: (piece: ReadonlyArray<Task>, index: number) => GoalMachine.Event) {
    const all = Effect.suspend(() => {
      this.entering = true
      return Effect.flatMap(inTurns(pieces(tasks)), (all) =>
        Effect.forEach(all, (piece, index) => Effect.andThen(this.move(event(piece, index)), Effect.yieldNow), {
          discard: true
        })
      )
    }).pipe(
      Effect.ensuring(
        Effect.sync(() => {
          this.entering = false
          this.wake()
        })
      )
    )
    return Effect.flatMap(Effect.forkIn(all, this.around.scope, { startImmediately: true }), (fiber) =>
      Fiber.join(fiber)
    )
  }

  get isComplete(): boolean {
    return !this.entering && this.state.plan.size >= this.state.total
  }

  /** The agents to which this goal can assign tasks. */
  get members(): Effect.Effect<ReadonlyArray<Member>> {
    return Effect.map(this.around.agents.members(this.around.conversation), (all) =>
      all.filter((member) => isWorker(this.options, member))
    )
  }

  workersOf(members: ReadonlyArray<Member>): ReadonlyArray<Worker> {
    const taken = new Set(this.state.plan.inFlight.map(({ agent }) => agent))
    return members.map(({ agent, busy, can, online, spent }) => ({
      name: agent,
      can,
      online,
      busy: busy || taken.has(agent) || this.around.worksForAnother(agent),
      spent,
      load: this.state.loads.get(agent) ?? 0
    }))
  }

  /** Withdraws the question that an agent has not answered yet, if there is one. */
  readonly silence = Effect.suspend(() => {
    const { asking } = this
    this.asking = undefined
    return asking === undefined ? Effect.void : this.takeBack(asking.agent, asking.messageId)
  })

  private takeBack(agent: string, messageId: string): Effect.Effect<void> {
    const { conversation, agents } = this.around
    return takeBack(agents, { conversation, agent }, messageId, this.goalId)
  }

  /**
   * Withdraws the messages of tasks that were in progress when the plan stopped. Calling this again changes nothing.
   */
  readonly cancelTasks = (taskIds: ReadonlyArray<string>): Effect.Effect<void> =>
    this.cancelling.withPermit(
      Effect.forEach(
        taskIds,
        (id) => {
          const node = this.state.plan.find(id)
          return node?.agent == null || node.messageId === null
            ? Effect.void
            : this.takeBack(node.agent, node.messageId)
        },
        { discard: true, concurrency: "unbounded" }
      )
    )

  get now(): Effect.Effect<number> {
    return Clock.currentTimeMillis
  }
}

/** Withdraws a message from the inbox, or interrupts the turn that is processing it. */
export const takeBack = (
  agents: AgentPort["Service"],
  to: Address,
  messageId: string,
  goalId: string
): Effect.Effect<void> =>
  agents.withdraw(to, [messageId]).pipe(
    Effect.flatMap((gone) => (gone ? Effect.void : agents.interrupt(to, messageId, `${goalId} does not need it`))),
    Effect.catch((error) => Effect.logDebug(`${to.agent}: ${error.message}`))
  )

export const definition = (of: {
  readonly perform: (action: Action) => Effect.Effect<void>
  readonly run: (activity: Doing, entered: GoalState) => Effect.Effect<void, StorageError>
}): EventSourcedActor<GoalState, GoalMachine.Event, Action, never> =>
  actor({
    initial,
    decide: ({ stand }, event, context) => {
      const decided = table.decide(stand, event, context)
      if (typeof decided === "string" || decided instanceof Refuse) return decided
      const { acts = [], runes, state } = decided
      // the goal's next state is computed by `apply` from the stored rune
      return { runes, acts: state !== undefined && isFinal(state) ? [...acts, { _tag: "Retire" }] : acts }
    },
    apply,
    comesBack: (before, after) => before.stand.state !== after.stand.state,
    refused: (name, { stand }, event, why) => refused(GoalMachine.Autonomy, name, stand.state, event._tag, why),
    activities: ({ stand: { entered, seq, state } }) => {
      const name = GoalMachine.Autonomy.states[state].enter
      return name === undefined ? [] : [{ name, key: entered, seq }]
    },
    perform: of.perform,
    run: ({ name }, { state }) => of.run(name as Doing, state)
  })

/** Rebuilds a goal from its runes, up to the first rune that `takes` rejects. Fails if the conversation is archived. */
export const readGoal = Effect.fnUntraced(function* (
  log: EventLog["Service"],
  conversation: string,
  goalId: string,
  takes: (rune: Rune) => boolean = () => true
) {
  let state = initial
  let isArchived = false
  const selection = { stream: conversation, actor: actorOf(goalId), kinds: [...GoalMachine.kinds] }
  yield* Stream.runForEachArray(log.read(selection), (runes) =>
    Effect.sync(() => {
      for (const rune of runes) {
        if (isArchived || !takes(rune)) return
        if (eventOf(rune) === undefined) isArchived = true
        else state = apply(state, rune)
      }
    })
  )
  if (!isArchived) return state
  return yield* refuse(
    "closed",
    `${goalId} is archived with its conversation: the log no longer contains it.`,
    `To find the archive: agentd project show ${conversation}`
  )
})
