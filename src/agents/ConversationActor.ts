/**
 * ConversationActor: the Conversation machine of one conversation, animated, and
 * the home of its agents.
 *
 * Guarantees: no turn starts unless it is active and its budget is not spent; a
 * spent budget suspends it at once and interrupts the turns in flight, which are
 * offered again; a turn, a failure and a usage count once, whoever tells of them
 * again; closing ends every agent in order, whatever crashes meanwhile, and then
 * seals the stream.
 */
import { Deferred, Duration, Effect, Exit, Fiber, type Scope } from "effect"
import type { ActorStopped, MailboxFull } from "../event-actor/ActorRef.ts"
import type { DeadLetters } from "../event-actor/DeadLetters.ts"
import * as MachineActor from "../event-actor/MachineActor.ts"
import type { ConversationConfig } from "../config/Config.ts"
import * as ConversationMachine from "./ConversationMachine.ts"
import { evolve, step } from "../event-actor/StateMachine.ts"
import { type EventLog, StorageError } from "../event-log/EventLog.ts"
import * as Budget from "./Budget.ts"
import { conversationAddress, type Life } from "./ConversationRecovery.ts"
import { standing } from "./ConversationRow.ts"
import type { ConversationPort, Tenant } from "./ConversationPort.ts"
import * as Backoff from "../supervision/Backoff.ts"
import type { Cause as RuneCause, RuneRef } from "../event-log/Rune.ts"

type Machine = MachineActor.MachineActor<ConversationMachine.State, ConversationMachine.Event, ConversationMachine.Data>
type Act = MachineActor.Context<ConversationMachine.State, ConversationMachine.Event, ConversationMachine.Data>

/** An agent, as it lives here. */
export interface Resident {
  readonly name: string
  readonly tenant: Tenant
  /** How long it may take to end by itself. */
  readonly grace: Duration.Duration
  /** When it has ended for good: what it leaves behind. */
  readonly clear: Effect.Effect<void>
}

export interface Around {
  readonly conversation: string
  readonly log: EventLog["Service"]
  readonly deadLetters: DeadLetters["Service"]
  /** As the file says now. */
  readonly config: () => ConversationConfig
  /** Those that are alive: a plain read. */
  readonly residents: () => ReadonlyArray<Resident>
  /** In the order in which they are to end; waits for whoever comes or goes just now. */
  readonly leaving: Effect.Effect<ReadonlyArray<Resident>>
  /** An agent has ended: its sub-agents follow. */
  readonly ended: (agent: string) => Effect.Effect<void>
  /** The end of the log when this daemon took it over: what is older is in the life already. */
  readonly recoveredTo: number
}

/** An end that takes longer is abandoned: the agent's scope ends what is left. */
const ABANDONED_AFTER = "60 seconds"
/** Usages whose runes may be newer than a reset that is being carried out. */
const RECENT = 64
const AGAIN = Backoff.constant("100 millis")

/** The actor is there again in a moment, or has room again. */
const passes = (error: MachineActor.AskError | ActorStopped | MailboxFull): boolean =>
  error._tag === "MailboxFull" ||
  (error._tag === "ActorStopped" && (error.reason === "restarting" || error.reason === "unstarted"))

/** What a rune says of the limits in force. */
const limitsOf = (config: ConversationConfig) => ({
  limits: { maxFatalStops: config.maxFatalStops, maxTurnErrors: config.maxTurnErrors ?? null },
  budget: Budget.limitsShown(config.budget)
})

/** Writes `session.created`: its first rune, before anything of it lives. */
export const create = Effect.fnUntraced(function* (
  log: EventLog["Service"],
  conversation: string,
  life: Life,
  project: { readonly name: string; readonly agents: ReadonlyArray<string>; readonly config: ConversationConfig }
) {
  const { snapshot } = life
  const event: ConversationMachine.Event = {
    _tag: "create_requested",
    conversationId: conversation,
    rootAgentId: project.agents[0] ?? "",
    config: { name: project.name, agents: project.agents, ...limitsOf(project.config) }
  }
  const moved = step(ConversationMachine.Conversation, snapshot.state, snapshot.data, event)
  if (moved._tag === "Refused") return
  const [rune] = yield* log
    .append([
      {
        stream: conversation,
        kind: moved.kind,
        actor: conversationAddress(conversation),
        from: snapshot.state,
        to: moved.state,
        trigger: event._tag,
        payload: moved.payload
      }
    ])
    .pipe(Effect.catchTag("RuneRefused", Effect.die))
  life.snapshot = evolve(ConversationMachine.Conversation, snapshot, rune!)
  life.limits = Budget.limitsShown(project.config.budget)
})

export class ConversationActor {
  /** The conversation, as its agents see it. */
  readonly home: ConversationPort
  private readonly around: Around
  private readonly life: Life
  private readonly scope: Scope.Scope
  actor!: Machine
  private readonly recent: Array<{ readonly cause: RuneRef; readonly spent: Partial<Budget.Spent> }> = []
  private readonly force = Deferred.makeUnsafe<void>()
  /** Agents that are being ended. */
  private readonly endings = new Map<string, Fiber.Fiber<void, StorageError>>()
  /** Completed when its stream is sealed. */
  readonly closed = Deferred.makeUnsafe<void>()

  constructor(around: Around, life: Life, scope: Scope.Scope) {
    this.around = around
    this.life = life
    this.scope = scope
    this.home = {
      barred: () => this.barred(),
      newTurn: this.newTurn,
      turnEnded: this.turnEnded,
      firstMessage: (messageId, cause) => this.begin({ _tag: "first_message", messageId }, cause),
      agentReady: (agentId, cause) => this.begin({ _tag: "agent_ready", agentId }, cause),
      agentFailed: this.agentFailed,
      agentEnded: this.agentEnded,
      used: this.used
    }
  }

  get snapshot() {
    return this.actor.snapshot
  }

  get spent(): Budget.Spent {
    return this.life.spent
  }

  private exhausted(): Budget.Exhausted | undefined {
    return Budget.exhausted(this.around.config().budget, this.life.spent)
  }

  private barred(): string | undefined {
    if (this.life.broken !== undefined) return `the conversation's log does not fold: ${this.life.broken}`
    const { state } = this.snapshot
    if (state !== "created" && state !== "active") return `the conversation ${standing(this.snapshot)}`
    const exhausted = this.exhausted()
    return exhausted === undefined ? undefined : `the conversation's budget of ${exhausted.resource} is spent`
  }

  /** Answers what the event led to, or undefined where it is refused; waits while the actor is being restarted. */
  readonly ask = (
    event: ConversationMachine.Event,
    cause?: RuneCause
  ): Effect.Effect<
    MachineActor.Committed<ConversationMachine.State, ConversationMachine.Data> | undefined,
    StorageError
  > =>
    this.life.broken !== undefined
      ? Effect.succeed(undefined)
      : this.actor.ask(event, cause).pipe(
          Effect.retry({ while: passes, schedule: Backoff.waits(AGAIN), times: 100 }),
          Effect.catch((error) =>
            error instanceof StorageError
              ? Effect.fail(error)
              : // stale, illegal, or its stream is sealed: somebody else was first
                Effect.as(Effect.logDebug(error.message), undefined)
          )
        )

  /** One whose log does not fold is moved by nobody. */
  private tell(event: ConversationMachine.Event, cause?: RuneCause): Effect.Effect<void> {
    return this.life.broken === undefined ? this.actor.tell(event, cause) : Effect.void
  }

  /** The first sign of life; any later one changes nothing. */
  private begin(event: ConversationMachine.Event, cause: RuneRef): Effect.Effect<void> {
    return Effect.suspend(() => (this.snapshot.state === "created" ? this.tell(event, cause) : Effect.void))
  }

  private readonly newTurn: ConversationPort["newTurn"] = Effect.fnUntraced(
    { self: this },
    function* (this: ConversationActor, agentId, turnId, cause) {
      if (this.barred() !== undefined) {
        yield* this.enforce
        return false
      }
      if (this.snapshot.state === "created") yield* this.ask({ _tag: "agent_ready", agentId }, cause)
      // before its rune: an interruption that comes just then must find the turn
      this.life.turns.set(turnId, { agent: agentId, begun: true, outcome: undefined })
      const begun = yield* this.ask({ _tag: "new_turn", turnId, agentId }, cause)
      if (begun === undefined && !this.snapshot.data.turnIds.includes(turnId)) this.life.turns.delete(turnId)
      return begun !== undefined
    }
  )

  private readonly turnEnded: ConversationPort["turnEnded"] = Effect.fnUntraced(
    { self: this },
    function* (this: ConversationActor, agentId, turnId, outcome, cause) {
      yield* this.ask({ _tag: "turn_completed", turnId, agentId, outcome }, cause)
      this.life.turns.delete(turnId)
    }
  )

  private readonly agentFailed: ConversationPort["agentFailed"] = (agentId, error, cause) =>
    Effect.suspend(() => {
      if ((this.life.failures.get(agentId) ?? -1) >= cause.seq) return Effect.void
      this.life.failures.set(agentId, cause.seq)
      return this.tell({ _tag: "agent_failed", agentId, error }, cause)
    })

  private readonly agentEnded: ConversationPort["agentEnded"] = (agent, cause) =>
    Effect.suspend(() => {
      const { ended } = this.life
      if ((ended.get(agent) ?? 0) >= cause.eventId) return Effect.void
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

  /** Suspends it where its budget is spent, or errors reach what the file allows now: after each usage, after a resume, and when the file has changed. */
  readonly enforce: Effect.Effect<void> = Effect.suspend(() => {
    const { data, state } = this.snapshot
    if (state !== "active") return Effect.void
    const exhausted = this.exhausted()
    if (exhausted !== undefined) return this.tell({ _tag: "budget_exhausted", ...exhausted })
    const reason = ConversationMachine.erringBy(data, limitsOf(this.around.config()).limits)
    return reason === undefined ? Effect.void : this.tell({ _tag: "error_threshold", reason })
  })

  /** Of the turns that are given: those whose agent is alive. What was asked is offered again. */
  readonly interrupt = (turnIds: ReadonlyArray<string>): Effect.Effect<void> =>
    Effect.suspend(() => {
      const { because, suspension } = this.snapshot.data
      const agents = new Set(turnIds.map((turnId) => this.life.turns.get(turnId)?.agent))
      const reason = `the conversation ${standing(this.snapshot)}`
      const by = suspension === null ? (because?.by ?? "agentd") : "agentd"
      return Effect.forEach(
        this.around.residents().filter(({ name }) => agents.has(name)),
        ({ tenant }) => Effect.forkIn(tenant.interruptTurn(by, reason, true), this.scope),
        { discard: true }
      )
    })

  /** In their own fibers: what they do comes back as mail. */
  readonly announce: Effect.Effect<void> = Effect.suspend(() =>
    Effect.forEach(this.around.residents(), ({ tenant }) => tenant.announce, { discard: true })
  )

  private readonly wake: Effect.Effect<void> = Effect.suspend(() =>
    Effect.forEach(this.around.residents(), ({ tenant }) => Effect.forkIn(tenant.wake, this.scope), { discard: true })
  )

  readonly perform = (action: ConversationMachine.Action, { cause }: Act): Effect.Effect<void> => {
    switch (action._tag) {
      case "InterruptTurns":
        return this.interrupt(action.turnIds)
      case "ResetBudget":
        return Effect.sync(() => {
          // a usage that became durable after the reset counts already
          const later = this.recent.filter((usage) => usage.cause.eventId > cause.eventId)
          this.life.spent = later.reduce((sum, { spent }) => Budget.add(sum, spent), Budget.nothing)
        })
      case "DrainQueues":
        return Effect.andThen(Effect.forkIn(this.enforce, this.scope), this.wake)
    }
  }

  /** What the log does not say: a turn that was never begun, or whose end nobody told; a budget that is spent. */
  readonly settleAccounts: Effect.Effect<void> = Effect.suspend(() => {
    const alive = new Set(this.around.residents().map(({ name }) => name))
    const lost = [...this.life.turns].filter(
      ([, { agent, begun, outcome }]) => !begun || outcome !== undefined || !alive.has(agent)
    )
    const endings = lost.map(([turnId, { agent, outcome = "interrupted" }]) => {
      this.life.turns.delete(turnId)
      return this.tell({ _tag: "turn_completed", turnId, agentId: agent, outcome })
    })
    return Effect.andThen(Effect.all(endings, { discard: true }), this.enforce)
  })

  /** Resumes it: from a suspension with fresh counters, a fresh budget, and the limits that the file names now. */
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

  /** Agents that are being ended wait no longer for their turns. */
  readonly hurry: Effect.Effect<void> = Effect.suspend(() => Effect.asVoid(Deferred.succeed(this.force, undefined)))

  /**
   * Ends one agent: in order, after its grace by force, at last by giving up on it.
   * Whoever asked for it may go away meanwhile; who asks, too, waits for the same end.
   */
  readonly end = (resident: Resident, by: string, reason: string): Effect.Effect<void, StorageError> =>
    Effect.suspend(() => {
      const { name } = resident
      const before = this.endings.get(name)
      if (before !== undefined) return Fiber.join(before)
      const ending = Effect.ensuring(
        Effect.interruptible(this.ending(resident, by, reason)),
        Effect.sync(() => void this.endings.delete(name))
      )
      return Effect.flatMap(Effect.forkIn(ending, this.scope), (fiber) => {
        if (fiber.pollUnsafe() === undefined) this.endings.set(name, fiber)
        return Fiber.join(fiber)
      })
    })

  private readonly ending = Effect.fnUntraced(
    { self: this },
    function* (this: ConversationActor, resident: Resident, by: string, reason: string) {
      const { grace, name, tenant } = resident
      const begin = (force: boolean) =>
        Effect.forkIn(contained(name, tenant.terminate({ by, reason, force })), this.scope)
      const gently = yield* begin(Deferred.isDoneUnsafe(this.force))
      yield* Effect.raceAllFirst([Fiber.await(gently), Effect.sleep(grace), Deferred.await(this.force)])
      const last = gently.pollUnsafe() === undefined ? yield* begin(true) : gently
      const ended = yield* Effect.timeoutOption(Fiber.await(last), ABANDONED_AFTER)
      if (ended._tag === "None") return yield* Effect.logError(`${name} does not end: it is abandoned`)
      if (Exit.isFailure(ended.value)) return yield* ended.value
      yield* resident.clear
    }
  )

  /** One after the other, then the sum. Run again after a crash, it meets agents that have ended already. */
  readonly stopAgents = Effect.fnUntraced({ self: this }, function* (this: ConversationActor, { self, snapshot }: Act) {
    const { by, reason } = snapshot.data.because ?? { by: "agentd", reason: "" }
    const leaving = yield* this.around.leaving
    for (const resident of leaving) {
      yield* this.end(resident, by, `the conversation is closed${reason === "" ? "" : `: ${reason}`}`)
    }
    const { fatalStops, turnErrors, turns } = this.snapshot.data
    const stats = { agents: leaving.length, turns, turnErrors, fatalStops, spent: this.life.spent }
    yield* self.tell({ _tag: "cleanup_complete", stats })
  })
}

/** One agent's bug keeps no conversation open. */
const contained = (name: string, ending: Effect.Effect<void, StorageError>) =>
  Effect.catchDefect(ending, (defect) => Effect.logError(`${name} could not be ended`, defect))

/** From where its life says it stands; give `actor` to the supervisor. */
export const make = Effect.fnUntraced(function* (around: Around, life: Life) {
  const conversation = new ConversationActor(around, life, yield* Effect.scope)
  const kind = yield* MachineActor.kind({
    machine: ConversationMachine.Conversation,
    log: around.log,
    deadLetters: around.deadLetters,
    perform: conversation.perform,
    activities: {
      // the project starts them, here and whenever its file names more
      StartAgents: () => Effect.void,
      // whoever counts on them hears that they take turns, or take none
      AnnounceAgents: () => conversation.announce,
      StopAgents: conversation.stopAgents,
      // the log sealed it with the rune that led here
      SealStream: () => Deferred.succeed(conversation.closed, undefined),
      ArchiveStream: () => Effect.void
    }
  })
  const actor = conversationAddress(around.conversation)
  conversation.actor = yield* kind.make({
    address: `${around.conversation}/${actor}`,
    actor,
    stream: around.conversation,
    snapshot: life.snapshot
  })
  return conversation
})
