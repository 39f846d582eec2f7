/**
 * ConversationActor: the actor for the life of one conversation (see ConversationMachine), and the interface that the
 * conversation's agents use.
 *
 * Guarantees: A turn starts only while the conversation is active and within its budget. When the budget is exceeded,
 * the conversation is suspended at once, its running turns are interrupted, and their messages are queued again. If a
 * turn, a failure or usage is reported twice, it is counted once. Closing ends every agent in an orderly way, even
 * after crashes, and then seals the stream.
 */
import { putRight } from "../domain/ErrorLimit.ts"
import { Deferred, Duration, Effect, Exit, Fiber, type Scope } from "effect"
import type { Committed, ActorHandle } from "../core/event-actor/ActorHandle.ts"
import type { System } from "../core/event-actor/ActorSystem.ts"
import { CommitScope } from "../core/event-actor/CommitScope.ts"
import type { Acting } from "../core/event-actor/EventSourcedActor.ts"
import { stateMachineActor } from "../core/event-actor/StateMachineActor.ts"
import type { ConversationConfig } from "../config/Config.ts"
import * as ConversationMachine from "../agents/machines/ConversationMachine.ts"
import { StorageError } from "../core/event-log/EventLog.ts"
import * as Budget from "../agents/machines/Budget.ts"
import { type ConversationSnapshot, conversationAddress, type Life, type NewestTurn } from "./ConversationRecovery.ts"
import { standing } from "./ConversationRow.ts"
import type { ConversationPort, AgentControl } from "../agents/actors/ConversationPort.ts"
import { type Cause, causeOf, type RuneRef } from "../core/event-log/Rune.ts"

type Act = Acting<ConversationSnapshot, ConversationMachine.Event>

export interface LivingAgent {
  readonly name: string
  readonly control: AgentControl
  /** How long the agent has to end by itself before it is forced to end. */
  readonly grace: Duration.Duration
  /** Removes what an agent leaves behind, such as its worktree, when the agent has ended permanently. */
  readonly clear: Effect.Effect<void>
}

/** The permanent stop of an agent. `cause`: the rune that records the stop. */
export interface Failure {
  readonly agent: string
  readonly error: string
  readonly cause: RuneRef
}

export interface Around {
  readonly conversation: string
  readonly system: System
  readonly config: () => ConversationConfig
  /** Reads memory only, without waiting. */
  readonly livingAgents: () => ReadonlyArray<LivingAgent>
  /** Agents in the order in which they must end. First waits until no agent is being added or removed. */
  readonly leaving: Effect.Effect<ReadonlyArray<LivingAgent>>
  /** Called after an agent has ended, to end its sub-agents too. */
  readonly ended: (agent: string) => Effect.Effect<void>
  /** Called with the rune that reset the budget. */
  readonly renewed: (ref: RuneRef) => Effect.Effect<void>
  /** Id of the last event in the log when this daemon started. Usage up to that event is already counted. */
  readonly recoveredTo: number
}

/**
 * Maximum time for the forced end of an agent. After that, agentd stops waiting, and the agent's remaining processes
 * end when its scope closes.
 */
const ABANDONED_AFTER = "60 seconds"
/** Number of recent usage reports that are kept, because they may be newer than a budget reset in progress. */
const RECENT = 64

/** The current limits, with the fields of the rune. */
const limitsOf = (config: ConversationConfig) => ({
  limits: { maxFatalStops: config.maxFatalStops, maxTurnErrors: config.maxTurnErrors ?? null },
  budget: Budget.limitsShown(config.budget)
})

export class ConversationActor {
  readonly home: ConversationPort
  readonly child: CommitScope
  private readonly actor: ActorHandle<ConversationSnapshot, ConversationMachine.Event, never>
  private readonly around: Around
  private readonly life: Life
  private readonly scope: Scope.Scope
  private readonly recent: Array<{ readonly cause: RuneRef; readonly spent: Budget.Expense }> = []
  private readonly force = Deferred.makeUnsafe<void>()
  private readonly endings = new Map<string, Fiber.Fiber<void, StorageError>>()
  /** Completed when the conversation's stream is sealed. */
  readonly closed = Deferred.makeUnsafe<void>()

  /** Restores the conversation from `life`, its record in the log. Its fibers run in the scope. */
  constructor(around: Around, life: Life, scope: Scope.Scope) {
    this.around = around
    this.life = life
    this.scope = scope
    const name = conversationAddress(around.conversation)
    this.child = new CommitScope(around.system, { id: name, stream: around.conversation })
    this.actor = this.child.add(name, this.definition, life.snapshot)
    this.home = {
      barred: () => this.barred(),
      isOver: () => !["created", "active", "paused", "suspended"].includes(this.snapshot.state),
      newTurn: this.newTurn,
      turnEnded: this.turnEnded,
      firstMessage: (messageId, cause) => this.begin({ _tag: "first_message", messageId }, cause),
      agentReady: (agentId, cause) => this.begin({ _tag: "agent_ready", agentId }, cause),
      agentFailed: this.agentFailed,
      agentEnded: this.agentEnded,
      used: this.used
    }
  }

  private get definition() {
    return stateMachineActor<
      ConversationMachine.State,
      ConversationMachine.Event,
      ConversationMachine.Data,
      ConversationMachine.Action
    >({
      machine: ConversationMachine.Conversation,
      data: ConversationMachine.initial(),
      perform: (action, acting) => this.perform(action, acting),
      run: ({ name }, acting) => this.run(name, acting)
    })
  }

  get snapshot(): ConversationSnapshot {
    return this.actor.state
  }

  get spent(): Budget.Spent {
    return this.life.spent
  }

  private exhausted(): Budget.Exhausted | undefined {
    return Budget.exhausted(this.around.config().budget, this.life.spent)
  }

  private barred(): string | undefined {
    const { state } = this.snapshot
    if (state !== "created" && state !== "active") return `the conversation ${standing(this.snapshot)}`
    const exhausted = this.exhausted()
    return exhausted === undefined ? undefined : `the conversation's budget of ${exhausted.resource} is spent`
  }

  /** Sends an event to the conversation. Returns undefined if the event is rejected. */
  readonly ask = (
    event: ConversationMachine.Event,
    cause: Cause | null = null
  ): Effect.Effect<Committed<ConversationSnapshot> | undefined, StorageError> =>
    this.actor.ask(event, cause).pipe(
      Effect.catch((error) =>
        error instanceof StorageError
          ? Effect.fail(error)
          : // the event is stale or illegal, or the stream is sealed, because another event came first
            Effect.as(Effect.logDebug(error.message), undefined)
      )
    )

  /** Starts the conversation at the first event of an agent. Later events change nothing. */
  private begin(event: ConversationMachine.Event, cause: RuneRef): Effect.Effect<void> {
    return Effect.suspend(() =>
      this.snapshot.state === "created" ? this.actor.tell(event, causeOf(cause)) : Effect.void
    )
  }

  /** Writes the first rune of the conversation, unless it exists. */
  readonly create = (project: { readonly name: string; readonly agents: ReadonlyArray<string> }) =>
    Effect.suspend(() => {
      if (this.snapshot.state !== "[*]") return Effect.void
      const limits = limitsOf(this.around.config())
      this.life.limits = limits.budget
      return Effect.asVoid(
        this.ask({
          _tag: "create_requested",
          conversationId: this.around.conversation,
          rootAgentId: project.agents[0] ?? "",
          config: { ...project, ...limits }
        })
      )
    })

  private readonly newTurn: ConversationPort["newTurn"] = Effect.fnUntraced(
    { self: this },
    function* (this: ConversationActor, agentId, turnId, cause) {
      if (this.barred() !== undefined) {
        yield* this.enforce
        return false
      }
      if (this.snapshot.state === "created") yield* this.ask({ _tag: "agent_ready", agentId }, causeOf(cause))
      return (yield* this.ask({ _tag: "new_turn", turnId, agentId }, causeOf(cause))) !== undefined
    }
  )

  private readonly turnEnded: ConversationPort["turnEnded"] = (agentId, turnId, outcome, cause) =>
    Effect.asVoid(this.ask({ _tag: "turn_completed", turnId, agentId, outcome }, causeOf(cause)))

  private readonly agentFailed: ConversationPort["agentFailed"] = (agentId, error, cause) =>
    Effect.suspend(() => {
      if ((this.life.failures.get(agentId) ?? -1) >= cause.seq) return Effect.void
      this.life.failures.set(agentId, cause.seq)
      const shared = ConversationMachine.causeOf(agentId, error)
      return this.actor.tell({ _tag: "agent_failed", agentId, error, cause: shared }, causeOf(cause))
    })

  private readonly agentEnded: ConversationPort["agentEnded"] = (agent, cause) =>
    Effect.suspend(() => {
      const { ended, spawned } = this.life
      // if a new sub-agent has the name of an ended one, the end of the old one is reported first
      const known = Math.max(ended.get(agent) ?? 0, spawned.get(agent)?.eventId ?? 0)
      if (known >= cause.eventId) return Effect.void
      ended.set(agent, cause.eventId)
      return this.around.ended(agent)
    })

  private readonly used: ConversationPort["used"] = (_agent, spent, cause) =>
    Effect.suspend(() => {
      if (cause.eventId <= this.around.recoveredTo) return Effect.void
      this.life.spent = Budget.add(this.life.spent, spent)
      this.recent.push({ cause, spent })
      if (this.recent.length > RECENT) this.recent.shift()
      return this.enforce
    })

  /**
   * Suspends the conversation if its budget is exceeded or its errors reach the current limits. Called after each
   * usage, after a resume, and after a change of the config.
   */
  readonly enforce: Effect.Effect<void> = Effect.suspend(() => {
    const { data, state } = this.snapshot
    if (state !== "active") return Effect.void
    const exhausted = this.exhausted()
    if (exhausted !== undefined) return this.actor.tell({ _tag: "budget_exhausted", ...exhausted })
    const reason = ConversationMachine.erringBy(data, limitsOf(this.around.config()).limits)
    return reason === undefined ? Effect.void : this.actor.tell({ _tag: "error_threshold", reason: putRight(reason) })
  })

  /** Interrupts the given turns if they are running. Their messages are queued again. */
  readonly interrupt = (turnIds: ReadonlyArray<string>): Effect.Effect<void> =>
    Effect.suspend(() => {
      const { because, suspension } = this.snapshot.data
      const reason = `the conversation ${standing(this.snapshot)}`
      const by = suspension === null ? (because?.by ?? "agentd") : "agentd"
      return Effect.forEach(
        this.around.livingAgents().filter(({ control }) => turnIds.includes(control.turnId() ?? "")),
        ({ control }) => Effect.forkIn(control.interruptTurn(by, reason, true), this.scope),
        { discard: true }
      )
    })

  readonly announce: Effect.Effect<void> = Effect.suspend(() =>
    Effect.forEach(this.around.livingAgents(), ({ control }) => control.announce, { discard: true })
  )

  private readonly wake: Effect.Effect<void> = Effect.suspend(() =>
    Effect.forEach(this.around.livingAgents(), ({ control }) => Effect.forkIn(control.wake, this.scope), {
      discard: true
    })
  )

  private perform(action: ConversationMachine.Action, { cause }: Act): Effect.Effect<void> {
    switch (action._tag) {
      case "InterruptTurns":
        return this.interrupt(action.turnIds)
      case "ResetBudget": {
        const { entered, seq } = this.snapshot
        const ref = { stream: this.around.conversation, seq, eventId: entered }
        return Effect.andThen(
          this.around.renewed(ref),
          Effect.sync(() => {
            // usage that became durable after the reset counts against the new budget
            const later = this.recent.filter((usage) => usage.cause.seq > (cause?.seq ?? 0))
            this.life.spent = later.reduce((sum, { spent }) => Budget.add(sum, spent), Budget.nothing)
          })
        )
      }
      case "DrainQueues":
        return Effect.andThen(Effect.forkIn(this.enforce, this.scope), this.wake)
    }
  }

  private run(activity: string, acting: Act): Effect.Effect<void, StorageError> {
    switch (activity) {
      // tells the agents' watchers whether the agents accept turns
      case "AnnounceAgents":
        return this.announce
      case "StopAgents":
        return this.stopAgents(acting)
      // the rune that caused this state has sealed the stream
      case "SealStream":
        return Effect.asVoid(Deferred.succeed(this.closed, undefined))
      // nothing to do: the project starts its agents itself, and only closed conversations are archived
      default:
        return Effect.void
    }
  }

  /**
   * Completes what the previous daemon did not record: ended turns, turns that may still be running, interrupts and
   * failed agents. Then checks the budget. Repeated events are ignored as stale.
   */
  readonly tellAgain = (failures: ReadonlyArray<Failure>): Effect.Effect<void> =>
    Effect.suspend(() => {
      const alive = new Set(this.around.livingAgents().map(({ name }) => name))
      const lost = [...this.life.turns].filter(
        ([, { agent, begun, outcome }]) => !begun || outcome !== undefined || !alive.has(agent)
      )
      const endings = lost.map(([turnId, { agent, outcome = "interrupted" }]) => {
        this.life.turns.delete(turnId)
        return this.actor.tell({ _tag: "turn_completed", turnId, agentId: agent, outcome })
      })
      const unheard = [...this.life.newest].filter(
        ([agent, { outcome, turnId }]) => outcome === undefined && alive.has(agent) && !this.life.turns.has(turnId)
      )
      const failed = failures.map(({ agent, cause, error }) => this.agentFailed(agent, error, cause))
      return Effect.all(
        [
          ...endings,
          ...unheard.map(([agent, turn]) => this.begun(agent, turn)),
          Effect.suspend(() => (this.life.interrupts ? this.interrupt(this.snapshot.data.turnIds) : Effect.void)),
          ...failed,
          this.enforce
        ],
        { discard: true }
      )
    })

  /** Records a turn that an agent has started but the conversation has not recorded yet. */
  private begun(agent: string, { began, turnId }: NewestTurn): Effect.Effect<void> {
    this.life.newest.delete(agent)
    const cause = { stream: this.around.conversation, ...began }
    return this.newTurn(agent, turnId, cause).pipe(
      Effect.flatMap((isTaken) => (isTaken ? Effect.void : this.interrupt([turnId]))),
      Effect.catch(({ message }) => Effect.logWarning(message))
    )
  }

  /**
   * Resumes the conversation. After a suspension, the counters and the budget are reset and the current limits apply.
   */
  readonly resume = (by: string) =>
    Effect.suspend(() => {
      const { data, state } = this.snapshot
      if (state !== "suspended") return this.ask({ _tag: "resume_requested", by })
      const config = limitsOf(this.around.config())
      const limits = JSON.stringify(config) !== JSON.stringify({ limits: data.limits, budget: this.life.limits })
      if (data.suspension?.budgetInfo === null && !limits) return this.ask({ _tag: "reset", by })
      return Effect.tap(this.ask({ _tag: "budget_replenished", by, config }), (done) =>
        Effect.sync(() => {
          if (done !== undefined) this.life.limits = config.budget
        })
      )
    })

  /** Ends the grace period at once for all agents that are being ended. */
  readonly hurry: Effect.Effect<void> = Effect.suspend(() => Effect.asVoid(Deferred.succeed(this.force, undefined)))

  /**
   * Ends one agent: first in an orderly way, then by force after its grace period. If that fails too, the agent is
   * abandoned. Completes even if the caller disconnects. Concurrent callers wait for the same end.
   */
  readonly end = (livingAgent: LivingAgent, by: string, reason: string): Effect.Effect<void, StorageError> =>
    Effect.suspend(() => {
      const { name } = livingAgent
      const before = this.endings.get(name)
      if (before !== undefined) return Fiber.join(before)
      const ending = Effect.ensuring(
        Effect.interruptible(this.ending(livingAgent, by, reason)),
        Effect.sync(() => void this.endings.delete(name))
      )
      return Effect.flatMap(Effect.forkIn(ending, this.scope), (fiber) => {
        if (fiber.pollUnsafe() === undefined) this.endings.set(name, fiber)
        return Fiber.join(fiber)
      })
    })

  private readonly ending = Effect.fnUntraced(
    { self: this },
    function* (this: ConversationActor, livingAgent: LivingAgent, by: string, reason: string) {
      const { grace, name, control } = livingAgent
      const begin = (force: boolean) =>
        Effect.forkIn(contained(name, control.terminate({ by, reason, force })), this.scope)
      const gently = yield* begin(Deferred.isDoneUnsafe(this.force))
      yield* Effect.raceAllFirst([Fiber.await(gently), Effect.sleep(grace), Deferred.await(this.force)])
      const last = gently.pollUnsafe() === undefined ? yield* begin(true) : gently
      const ended = yield* Effect.timeoutOption(Fiber.await(last), ABANDONED_AFTER)
      if (ended._tag === "None") return yield* Effect.logError(`${name} does not end: it is abandoned`)
      if (Exit.isFailure(ended.value)) return yield* ended.value
      yield* livingAgent.clear
    }
  )

  /** Ends the agents one after another, then writes the statistics. Can be repeated after a crash. */
  private readonly stopAgents = Effect.fnUntraced(
    { self: this },
    function* (this: ConversationActor, { self, state }: Act) {
      const { by, reason } = state.data.because ?? { by: "agentd", reason: "" }
      const leaving = yield* this.around.leaving
      for (const livingAgent of leaving) {
        yield* this.end(livingAgent, by, `the conversation is closed${reason === "" ? "" : `: ${reason}`}`)
      }
      const { fatalStops, turnErrors, turns } = this.snapshot.data
      const stats = { agents: leaving.length, turns, turnErrors, fatalStops, spent: this.life.spent }
      yield* self.tell({ _tag: "cleanup_complete", stats })
    }
  )
}

/** If a bug prevents the end of one agent, logs it and continues, so that the conversation can still close. */
const contained = (name: string, ending: Effect.Effect<void, StorageError>) =>
  Effect.catchDefect(ending, (defect) => Effect.logError(`${name} could not be ended`, defect))
