/**
 * AgentSupervisor: one agent's machines as actors, tied to each other: inbox, life, turn,
 * calls, worker, and the slot of its run, with the supervisor over them.
 *
 * Guarantees: one incarnation at a time; what the log says of an incarnation comes
 * to be, whoever asked for it; the run slot outlives the actors' crashes.
 */
import { Clock, Duration, Effect, Exit, Latch, Scope } from "effect"
import type { DeadLetters } from "../event-actor/DeadLetters.ts"
import * as MachineActor from "../event-actor/MachineActor.ts"
import * as DynamicSupervisor from "../supervision/DynamicSupervisor.ts"
import type { Backend, RunSpec } from "../backends/Backend.ts"
import type { AgentConfig } from "../config/AgentConfig.ts"
import type { Project } from "../config/ConfigFile.ts"
import type { AgentReport } from "../domain/AgentPort.ts"
import type { Caller } from "../domain/Messages.ts"
import type * as AgentMachine from "./AgentMachine.ts"
import * as WorkerMachine from "./WorkerMachine.ts"
import type { EventLog } from "../event-log/EventLog.ts"
import * as AgentActor from "./AgentActor.ts"
import { type AgentRecord, apply, begun, inboxAddress, note, workerAddress } from "./AgentRecovery.ts"
import { Calls, type Surroundings as CallsSurroundings } from "./Calls.ts"
import type { ConversationPort } from "./ConversationPort.ts"
import * as Inbox from "./Inbox.ts"
import { LiveRun } from "./LiveRun.ts"
import { UsageMeter, type Surroundings as MeterSurroundings } from "./UsageMeter.ts"
import { RunEvents, type Surroundings as RouterSurroundings, type Watched } from "./RunEvents.ts"
import * as RunSupervisor from "./RunSupervisor.ts"
import * as TurnActor from "./TurnActor.ts"
import * as WorkerActor from "./WorkerActor.ts"
import type { WorktreeError } from "./Worktree.ts"
import { refOf, type RuneRef } from "../event-log/Rune.ts"

/** What the file of an open conversation says now. */
export interface ConfigNews {
  readonly conversation: string
  readonly config: Project
}

/** Who is told of agents from outside, and what of agentd their runs are given. */
export interface Outside {
  readonly report: (report: AgentReport) => Effect.Effect<void>
  readonly watched: (of: { readonly agent: string; readonly runId: string }, event: Watched) => Effect.Effect<void>
  /** What a conversation's file says, from the start and after each change. */
  readonly configured: (news: ConfigNews) => Effect.Effect<void>
  /** Servers of agentd's own for a run, by name. */
  readonly mcp: (runId: string, config: AgentConfig) => RunSpec["mcp"]
}

/** What an agent needs of its surroundings. */
export interface Surroundings {
  readonly conversation: string
  readonly project: () => string
  /** The agent that it is a sub-agent of. */
  readonly parent: string | null
  /** Whether it was asked for and waits for a place: it has not begun. */
  readonly queued: () => boolean
  readonly log: EventLog["Service"]
  readonly deadLetters: DeadLetters["Service"]
  /** As the file says now. */
  readonly config: () => AgentConfig
  readonly backend: Effect.Effect<Backend>
  readonly place: Effect.Effect<{ readonly cwd: string; readonly branch: string | undefined }, WorktreeError>
  /** The end of the log when this daemon took it over. */
  readonly recoveredTo: number
  readonly home: ConversationPort
  readonly outside: Outside
}

export class AgentSupervisor {
  readonly nest: DynamicSupervisor.DynamicSupervisor
  readonly around: Surroundings
  readonly record: AgentRecord
  readonly live = new LiveRun()
  worker: WorkerActor.WorkerActor | undefined = undefined
  life: AgentActor.AgentActor | undefined = undefined
  inbox!: WorkerActor.InboxActor
  turn!: TurnActor.TurnActor
  slot!: RunSupervisor.RunSupervisor
  calls!: Calls
  meter!: UsageMeter
  /** Open while it has no life, or one that has ended and whose end is told. */
  private readonly over = Latch.makeUnsafe(true)
  private readonly scope: Scope.Scope
  private incarnation: Scope.Closeable | undefined = undefined

  private constructor(around: Surroundings, record: AgentRecord, scope: Scope.Scope) {
    this.around = around
    this.record = record
    this.scope = scope
    this.nest = DynamicSupervisor.make({
      name: record.name,
      strategy: "rest_for_one",
      intensity: 10,
      period: "30 seconds"
    })
  }

  get name(): string {
    return this.record.name
  }

  get fullName(): string {
    return `${this.around.project()}/${this.name}`
  }

  private readonly report = (report: AgentReport): Effect.Effect<void> => {
    if (report._tag === "TurnEnded") {
      const { eventId, messageIds, outcome, turnId } = report
      note(this.record, messageIds, { turnId, outcome, eventId })
    }
    return this.around.outside.report(report)
  }

  /** As its record says it stands. It lives until the scope closes, which ends its run. */
  static readonly make = Effect.fnUntraced(function* (around: Surroundings, record: AgentRecord) {
    const agent = new AgentSupervisor(around, record, yield* Effect.scope)
    yield* agent.assemble
    if (record.worker !== undefined && record.broken === undefined) yield* agent.revive(record.worker)
    else agent.live.settle()
    return agent
  })

  /** What all incarnations share. */
  private readonly assemble = Effect.gen({ self: this }, function* () {
    const { around, record } = this
    const { conversation, deadLetters, log } = around
    this.calls = yield* Calls.make(this.callsOf, record.grants)
    this.meter = new UsageMeter(this.meterOf, record.spent, this.scope)
    this.slot = yield* RunSupervisor.make(new RunEvents(this.routerOf))
    const inboxes = yield* MachineActor.kind({
      machine: Inbox.Inbox,
      log,
      deadLetters,
      perform: () => Effect.void,
      activities: {}
    })
    const actor = inboxAddress(this.name)
    this.inbox = yield* inboxes.make({
      address: `${conversation}/${actor}`,
      actor,
      stream: conversation,
      snapshot: record.inbox
    })
    this.turn = yield* TurnActor.make(this.deskOf, record.turn)
    yield* this.nest.add(this.inbox)
    yield* this.nest.add(this.calls.nest.child)
    yield* this.calls.recover([...record.calls.values()])
    yield* this.nest.add(this.turn)
  })

  /** What each of its parts needs of the agent. */
  private get base() {
    const { config, conversation, deadLetters, log } = this.around
    return { agent: this.name, conversation, log, deadLetters, config }
  }

  private get callsOf(): CallsSurroundings {
    return {
      ...this.base,
      project: this.around.project,
      finished: (turnId, results) =>
        Effect.suspend(() => this.turn.tell({ _tag: "tools_finished", turnId, results, continue: true }))
    }
  }

  private get meterOf(): MeterSurroundings {
    const { config, home } = this.around
    return {
      ...this.base,
      limits: () => config().budget,
      used: (spent, cause) => home.used(this.name, spent, cause),
      exhausted: (what, cause) =>
        Effect.suspend(() => this.life?.tell({ _tag: "budget_exhausted", ...what }, cause) ?? Effect.void)
    }
  }

  private get routerOf(): RouterSurroundings {
    const { around, calls, live, meter, report } = this
    return {
      ...this.base,
      live,
      calls,
      meter,
      turn: () => this.turn,
      inbox: () => this.inbox,
      worker: () => this.worker,
      report,
      watched: (runId, event) => around.outside.watched({ agent: this.fullName, runId }, event)
    }
  }

  private get deskOf(): TurnActor.Desk {
    const { calls, inbox, live, meter, report, slot } = this
    const { home, recoveredTo } = this.around
    return {
      ...this.base,
      home,
      inbox,
      slot,
      live,
      calls,
      meter,
      life: () => this.life,
      worker: () => this.worker,
      report,
      recoveredTo
    }
  }

  /** The incarnation that the log tells of; what it did not get to write is written now. */
  private readonly revive = Effect.fnUntraced(
    { self: this },
    function* (this: AgentSupervisor, snapshot: WorkerActor.WorkerActor["snapshot"]) {
      const { life } = this.record
      // one that has ended in this incarnation does not rise again: its worker follows it
      const isNew = snapshot.state !== "Stopped" && (life === undefined || life.entered < this.record.began)
      if (isNew) this.meter.reset()
      yield* this.install(snapshot, isNew ? AgentActor.fresh : (life ?? AgentActor.fresh))
    }
  )

  private get spawnRequested(): AgentMachine.Event {
    const { config, parent } = this.around
    const { backend, role } = config()
    const model = "model" in backend ? (backend.model ?? null) : null
    return { _tag: "spawn_requested", agentId: this.name, role: role ?? "", model, parentId: parent }
  }

  /** An incarnation's own actors: new ones in the place of the old. A life begins before its worker can end it. */
  private readonly install = Effect.fnUntraced(
    { self: this },
    function* (this: AgentSupervisor, worker: WorkerActor.WorkerActor["snapshot"], life: AgentActor.Snapshot) {
      for (const old of [this.worker, this.life]) if (old !== undefined) yield* this.nest.remove(old.id)
      if (this.incarnation !== undefined) yield* Scope.close(this.incarnation, Exit.void)
      const scope = yield* Scope.fork(this.scope)
      this.incarnation = scope
      if (life.state !== "terminated" && life.state !== "failed") this.over.closeUnsafe()
      this.life = yield* AgentActor.make(this.lifeOf, life).pipe(Scope.provide(scope))
      this.worker = yield* WorkerActor.make(this.homeOf, worker).pipe(Scope.provide(scope))
      yield* this.nest.add(this.life)
      if (life === AgentActor.fresh) yield* this.life.tell(this.spawnRequested)
      yield* this.nest.add(this.worker)
    }
  )

  /** Waits for the end of its life: it ends after its worker, once its turn is over. By force where that takes too long. */
  readonly dead: Effect.Effect<void> = Effect.suspend(() => {
    const reason = "it did not end within its grace"
    return Effect.timeoutOrElse(this.over.await, {
      duration: Duration.sum(this.around.config().interruptGrace, Duration.seconds(1)),
      orElse: () => Effect.ignore(this.life?.ask({ _tag: "kill_forced", by: "agentd", reason }) ?? Effect.void)
    })
  })

  /** Ends one that waits for a place: it never begins, and its log says so. */
  readonly forgo = Effect.fnUntraced(
    { self: this },
    function* (this: AgentSupervisor, by: string, reason: string) {
      const { conversation, home, log } = this.around
      const drafts = AgentActor.unlived({ agent: this.name, conversation }, [
        this.spawnRequested,
        { _tag: "kill_forced", by, reason }
      ])
      const runes = yield* log.append(drafts)
      for (const rune of runes) apply(this.record, "agent", "", rune)
      const last = runes.at(-1)!
      yield* home.agentEnded(this.name, refOf(last))
      return last.eventId
    },
    Effect.uninterruptible
  )

  /** The rune that the agent stands on. */
  get standing(): RuneRef {
    const { entered = 0, seq = 0 } = this.life?.snapshot ?? {}
    return { stream: this.around.conversation, seq, eventId: entered }
  }

  /** Whether it is there for turns, and whether it has one. */
  announce(cause: RuneRef): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      const { conversation, home } = this.around
      const life = this.life?.snapshot
      if (life?.state !== "idle" && life?.state !== "running_turn") return
      const of = { conversation, agent: this.name, cause, eventId: cause.eventId, at: yield* Clock.currentTimeMillis }
      const reason = home.barred()
      if (reason !== undefined) return yield* this.report({ ...of, _tag: "Offline", reason, crashed: false })
      yield* this.report({ ...of, _tag: "Online" })
      if (life.state === "idle") yield* this.report({ ...of, _tag: "Idle" })
    })
  }

  private get lifeOf(): AgentActor.Life {
    const { around, live, slot } = this
    const { conversation, deadLetters, home, log } = around
    const { name } = this
    return {
      agent: name,
      conversation,
      log,
      deadLetters,
      idle: (cause) => Effect.andThen(home.agentReady(name, cause), this.announce(cause)),
      interruptTurn: (turnId, reason) =>
        this.turn.tell({ _tag: "interrupt", turnId, by: "agentd", reason, keep: true, ...live.partial }),
      forceStop: (turnId) =>
        Effect.andThen(
          this.turn.tell({ _tag: "interrupt", turnId, by: "agentd", reason: "the agent was killed", keep: true }),
          live.run === undefined ? Effect.void : slot.kill(live.run.runId)
        ),
      ended: (turnId) => {
        const { data, state } = this.turn.snapshot
        // a later one has begun: nobody knows any more
        if (data.turnId !== turnId) return { _tag: "turn_interrupted", turnId }
        // one that is still being finalized is told by that
        return state === "idle" ? TurnActor.endOf(data) : undefined
      },
      release: (data, failed, cause) =>
        Effect.gen({ self: this }, function* () {
          const reason = data.reason ?? "ended"
          const crashed = failed || this.worker?.snapshot.data.fatal != null
          yield* this.report({
            _tag: "Offline",
            conversation,
            agent: name,
            cause,
            eventId: cause.eventId,
            at: this.life!.snapshot.at,
            reason,
            crashed
          })
          yield* home.agentEnded(name, cause)
          this.over.openUnsafe()
          yield* (
            this.worker?.tell(
              data.spent === null
                ? { _tag: "OperatorStop", by: "agentd", reason }
                : {
                    _tag: "FatalError",
                    message: reason,
                    remedy: `Raise its budget in agentd.jsonc, or start it again with a fresh one: agentd start ${this.fullName}`
                  },
              cause
            ) ?? Effect.void
          )
        })
    }
  }

  private get homeOf(): WorkerActor.AgentHome {
    const { around, inbox, live, slot, turn } = this
    const { backend, config, conversation, deadLetters, home, log, outside, place, recoveredTo } = around
    return {
      agent: this.name,
      conversation,
      log,
      deadLetters,
      config,
      backend,
      inbox,
      slot,
      turn,
      live,
      life: () => this.life,
      exhausted: () => this.meter.exhausted,
      home,
      mcp: (runId) => outside.mcp(runId, config()),
      place,
      recoveredTo
    }
  }

  /** A new incarnation. What its first rune says has to come to be, even if the caller goes away meanwhile. */
  readonly begin = Effect.fnUntraced(
    { self: this },
    function* (this: AgentSupervisor, { by }: Caller) {
      const { config, conversation, log } = this.around
      const incarnation = this.record.incarnation + 1
      const initial = WorkerActor.initial(
        config(),
        this.worker?.snapshot.data,
        this.turn.snapshot.data.unfinished.length > 0
      )
      const [rune] = yield* log.append([
        {
          stream: conversation,
          kind: "worker.started",
          actor: workerAddress(this.name),
          to: WorkerMachine.Worker.initial,
          trigger: "start",
          payload: { by, incarnation, initial }
        }
      ])
      this.record.incarnation = incarnation
      this.record.began = rune!.eventId
      this.record.broken = undefined
      this.meter.reset()
      yield* this.install(begun(rune!), AgentActor.fresh)
      return rune!.eventId
    },
    Effect.uninterruptible
  )
}
