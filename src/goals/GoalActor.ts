/**
 * GoalActor: one goal, alive: its machine animated, its book kept beside it,
 * and what each of its states does.
 *
 * Guarantees: every move is a rune before the book knows of it, and the book is the
 * fold of the runes at all times; moves come one after the other; what a state does is
 * found again after a crash by the keys of its messages, so no question is posed and
 * no task given out twice.
 */
import { Clock, Effect, Fiber, Latch, type Schedule, type Scope, Semaphore, Stream } from "effect"
import { ActorStopped } from "../event-actor/ActorRef.ts"
import type * as MachineActor from "../event-actor/MachineActor.ts"
import { Refused } from "../event-actor/Refused.ts"
import type { ProcessTree } from "../backends/process/ProcessTree.ts"
import type { Reaper } from "../backends/process/Reaper.ts"
import type { Environment } from "../backends/process/RunProcess.ts"
import type { Address, AgentPort, AgentReport, Member, TurnOutcome } from "../domain/AgentPort.ts"
import type { GoalOptions, Task } from "../domain/GoalMessages.ts"
import type { Report } from "../domain/Messages.ts"
import * as GoalMachine from "./GoalMachine.ts"
import type { EventLog } from "../event-log/EventLog.ts"
import { actorOf, GoalState, onward, type Stand, startOf, type Told } from "./GoalState.ts"
import { DEFAULTS, isWorker } from "./Request.ts"
import type { Worker } from "./Scheduler.ts"

export interface Project {
  readonly name: string
  /** Absolute: where its config lies. */
  readonly root: string
}

/** What a goal needs of its surroundings. */
export interface Surroundings {
  readonly conversation: string
  readonly crew: AgentPort["Service"]
  readonly log: EventLog["Service"]
  readonly project: Effect.Effect<Project | undefined>
  /** Whether its conversation takes work; else a goal waits. */
  readonly takesWork: () => boolean
  /** The goal's own: it ends when it is no longer carried on. */
  readonly scope: Scope.Scope
  /** A folder of agentd's own: checkouts for checks are made in it. */
  readonly scratch: string
  readonly store: string
  readonly environment: Environment
  /** How an ask is repeated while its actor is only just being started. */
  readonly settles: Schedule.Schedule<unknown>
}

export type Animated = MachineActor.MachineActor<GoalMachine.State, GoalMachine.Event, GoalMachine.Data>
export type Needs = ProcessTree | Reaper

/** Nothing that is told may be missed for longer. */
const LOOK_AGAIN = 30_000
/** JSON of one piece of a plan: a rune holds it twice. */
const PIECE_BYTES = 300_000
/** Reports of one turn that are kept. */
const MAX_REPORTS = 16
/** The newest ends of turns among which one is looked for. */
const MAX_ENDS = 256
/** Whoever gives the word where no person does. */
export const OURSELVES = "agentd"

/** What it says while its conversation takes no work. */
export const RESTS = "the conversation takes no work: it goes on when that is resumed"

/** In a folder of agentd's own, the one in which a goal's checks are made. */
export const scratchOf = (folder: string, conversation: string, goalId: string): string =>
  `${folder}/${conversation}/${goalId}`

export const isFinal = (state: GoalMachine.State): boolean => GoalMachine.Autonomy.final.includes(state)

/** As many as a rune holds. */
export const pieces = (tasks: ReadonlyArray<Task>): ReadonlyArray<ReadonlyArray<Task>> => {
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
  }
  return all
}

export class GoalActor {
  readonly goalId: string
  readonly around: Surroundings
  actor!: Animated
  book: GoalState
  /** What it does or waits for, in plain words. */
  detail = ""
  /** A question that is open. */
  asking: { readonly agent: string; readonly messageId: string } | undefined = undefined
  /** Told once it has ended. */
  over: () => void = () => {}
  /** A plan is being entered, piece by piece. */
  entering = false
  private readonly lock = Semaphore.makeUnsafe(1)
  private readonly cancelling = Semaphore.makeUnsafe(1)
  private readonly latch = Latch.makeUnsafe(false)
  /** What agents said of the turn that they are in. */
  private readonly reports = new Map<string, { readonly turnId: string; readonly said: ReadonlyArray<Report> }>()

  constructor(goalId: string, around: Surroundings, book: GoalState) {
    this.goalId = goalId
    this.around = around
    this.book = book
  }

  /** Where its checks are made. */
  get scratch(): string {
    return scratchOf(this.around.scratch, this.around.conversation, this.goalId)
  }

  get stand(): Stand {
    return this.actor.snapshot
  }

  get options(): GoalOptions {
    return this.book.options ?? DEFAULTS
  }

  /** Something that it may wait for has changed. */
  wake(): void {
    this.latch.openUnsafe()
  }

  /** Until something has changed, or so many ms have passed; never long. */
  news(atMost = LOOK_AGAIN): Effect.Effect<void> {
    return Effect.andThen(
      Effect.timeoutOption(this.latch.await, Math.max(0, Math.min(atMost, LOOK_AGAIN))),
      Effect.sync(() => void this.latch.closeUnsafe())
    )
  }

  /** A fact about an agent of its conversation. */
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

  /** How a turn ended that did not come to its end: as its last rune has it. */
  readonly howEnded = (turnId: string, outcome: TurnOutcome, after: number) =>
    Effect.map(
      this.around.log.tail(
        { stream: this.around.conversation, kinds: ["turn.error", "turn.interrupted"], after },
        MAX_ENDS
      ),
      (runes) => {
        const end = runes.findLast(({ payload }) => payload["turn_id"] === turnId)?.payload
        const why = end?.["message"] ?? end?.["reason"]
        const how = outcome === "error" ? "its turn ended with an error" : `its turn was ${outcome}`
        return typeof why === "string" && why !== "" ? `${how}: ${why}` : how
      }
    )

  /**
   * One move: durable, and in the book, when it answers. Whoever waits may go away meanwhile, as an
   * activity does whose state is left by it, or whose actor ends: the move itself goes on.
   */
  readonly move = (event: GoalMachine.Event) =>
    Effect.flatMap(Effect.forkIn(this.moving(event), this.around.scope, { startImmediately: true }), (fiber) =>
      Fiber.join(fiber)
    )

  /** Returns when every move that was begun is in the book. */
  readonly settled = Effect.suspend(() => this.lock.withPermit(Effect.void))

  private readonly moving = (event: GoalMachine.Event) =>
    this.lock.withPermit(
      Effect.retry(Effect.uninterruptible(this.commit(event)), {
        schedule: this.around.settles,
        while: (error) =>
          error instanceof ActorStopped && (error.reason === "unstarted" || error.reason === "restarting")
      })
    )

  private readonly commit = Effect.fnUntraced({ self: this }, function* (this: GoalActor, event: GoalMachine.Event) {
    const { log } = this.around
    const committed = yield* this.actor.ask(event).pipe(
      // it may have been written before the actor ended
      Effect.tapError((error) => (error instanceof ActorStopped ? this.refold : Effect.void))
    )
    // as the log has it: without the secrets that it keeps to itself
    const rune = yield* log.get(committed.eventId)
    if (rune !== undefined) {
      const told = {
        eventId: rune.eventId,
        seq: rune.seq,
        at: rune.at,
        event: rune.payload["event"] as GoalMachine.Event
      }
      this.book.apply(told)
    }
    this.wake()
    if (isFinal(committed.snapshot.state)) this.over()
    return committed
  })

  /** The book anew from the log. */
  private readonly refold = Effect.suspend(() =>
    Effect.asVoid(
      Effect.map(readGoal(this.around.log, this.around.conversation, this.goalId), ({ book }) => {
        this.book = book
      })
    )
  )

  /** As `move`; one that came too late is no failure. */
  readonly moveIfStill = (event: GoalMachine.Event) =>
    Effect.catchIf(
      Effect.asVoid(this.move(event)),
      (error): error is Refused => error instanceof Refused,
      (error) => Effect.logDebug(error.message)
    )

  /** A whole plan, in pieces; the first of them ends the decomposition. */
  readonly enterPlan = (tasks: ReadonlyArray<Task>) =>
    this.enter(tasks, (piece, index) =>
      index === 0
        ? { _tag: "decompose_goal", tasks: piece, total: tasks.length }
        : { _tag: "plan_updated", added: piece, cancelled: [], total: tasks.length }
    )

  /** What is added to a plan that is revised. */
  readonly enterRevision = (tasks: ReadonlyArray<Task>) => {
    const total = this.book.plan.size + tasks.length
    return this.enter(tasks, (added) => ({ _tag: "plan_updated", added, cancelled: [], total }))
  }

  /** To its last piece, whoever waits for it: the first one may end what began it. */
  private enter(tasks: ReadonlyArray<Task>, event: (piece: ReadonlyArray<Task>, index: number) => GoalMachine.Event) {
    const all = Effect.suspend(() => {
      this.entering = true
      return Effect.forEach(pieces(tasks), (piece, index) => this.moving(event(piece, index)), { discard: true })
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
    return !this.entering && this.book.plan.size >= this.book.total
  }

  /** Those that may be given tasks. */
  get members(): Effect.Effect<ReadonlyArray<Member>> {
    return Effect.map(this.around.crew.members(this.around.conversation), (all) =>
      all.filter((member) => isWorker(this.options, member))
    )
  }

  /** As the scheduler sees them. */
  workersOf(members: ReadonlyArray<Member>): ReadonlyArray<Worker> {
    const taken = new Set([...this.book.plan.inFlight.values()].map(({ agent }) => agent))
    return members.map(({ agent, busy, can, online, spent }) => ({
      name: agent,
      can,
      online,
      busy: busy || taken.has(agent),
      spent,
      load: this.book.loads.get(agent) ?? 0
    }))
  }

  /** Takes an open question back; a plan that has ended needs no answer. */
  readonly silence = Effect.suspend(() => {
    const { asking } = this
    this.asking = undefined
    return asking === undefined ? Effect.void : this.takeBack(asking.agent, asking.messageId)
  })

  /** A message that nobody waits for any more. */
  private takeBack(agent: string, messageId: string): Effect.Effect<void> {
    const { conversation, crew } = this.around
    return takeBack(crew, { conversation, agent }, messageId, this.goalId)
  }

  /** What was in flight when the plan stopped; again it changes nothing. */
  readonly cancelTasks = (taskIds: ReadonlyArray<string>): Effect.Effect<void> =>
    this.cancelling.withPermit(
      Effect.forEach(
        taskIds,
        (id) => {
          const node = this.book.plan.find(id)
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

/** Out of the inbox, or its turn ended. */
export const takeBack = (
  crew: AgentPort["Service"],
  to: Address,
  messageId: string,
  goalId: string
): Effect.Effect<void> =>
  crew.withdraw(to, messageId).pipe(
    Effect.flatMap((gone) => (gone ? Effect.void : crew.interrupt(to, messageId, `${goalId} does not need it`))),
    Effect.catch((error) => Effect.logDebug(`${to.agent}: ${error.message}`))
  )

/** One goal as its runes tell it; `takes` may leave out the last of them. */
export const readGoal = Effect.fnUntraced(function* (
  log: EventLog["Service"],
  conversation: string,
  goalId: string,
  takes: (told: Told) => boolean = () => true
) {
  const book = new GoalState()
  let stand = startOf()
  const selection = { stream: conversation, actor: actorOf(goalId), kinds: [...GoalMachine.kinds] }
  yield* Stream.runForEachArray(log.read(selection), (runes) =>
    Effect.sync(() => {
      for (const { at, eventId, payload, seq } of runes) {
        const told = { eventId, seq, at, event: payload["event"] as GoalMachine.Event }
        if (!takes(told)) return
        stand = onward(stand, told)
        book.apply(told)
      }
    })
  )
  return { book, stand }
})
