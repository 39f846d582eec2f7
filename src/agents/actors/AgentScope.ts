/**
 * AgentScope: one agent. It holds the agent's actors (in one commit scope) and run, and the commands that users, the
 * conversation and other agents give to the agent.
 *
 * Guarantees: A decision of one actor and the resulting changes in the agent's other actors are one append. Commands on
 * one agent run one after another. Everything that a reply reports is durable. After `stop`, all processes of the agent
 * have ended. The run survives crashes of the actors.
 */
import { Clock, Duration, Effect, Semaphore } from "effect"
import * as ActorSystem from "../../core/event-actor/ActorSystem.ts"
import type { ActorHandle, AskError } from "../../core/event-actor/ActorHandle.ts"
import { CommitScope } from "../../core/event-actor/CommitScope.ts"
import type { RuleSubject } from "../../approvals/Rule.ts"
import type { AgentConfig } from "../../config/AgentConfig.ts"
import type { AgentMessage, Fate, Member as AgentMember } from "../../domain/AgentPort.ts"
import * as Ids from "../../domain/Ids.ts"
import { severityOf } from "../../domain/Invariants.ts"
import {
  type AskedCall,
  type Caller,
  type CallInfo,
  CommandRefused,
  type Done,
  refusedBy
} from "../../domain/Messages.ts"
import { EventLog, StorageError } from "../../core/event-log/EventLog.ts"
import { Redact } from "../../core/event-log/Redact.ts"
import type { RuneDraft } from "../../core/event-log/Rune.ts"
import * as AgentActor from "./AgentActor.ts"
import type { AgentRecord } from "./AgentRecovery.ts"
import type * as Messages from "../machines/AgentMessages.ts"
import { AgentEnvironment } from "./AgentEnvironment.ts"
import * as AgentView from "../run/AgentView.ts"
import {
  endedWith,
  inboxName,
  type InboxState,
  isActive,
  disconnection,
  lifeName,
  type LifeState,
  toolsName,
  turnName,
  type TurnState,
  workerName,
  type WorkerSnapshot,
  type WorkerState
} from "../machines/AgentStates.ts"
import * as Budget from "../machines/Budget.ts"
import { type Answer, callRow } from "../machines/CallRow.ts"
import type { AgentControl } from "./ConversationPort.ts"
import { sizeOf } from "../run/LogExcerpt.ts"
import type { InboxMessage, VoiceOf } from "./AgentVoice.ts"
import { AgentLatch } from "./AgentLatch.ts"
import * as Inbox from "../machines/Inbox.ts"
import * as InboxActor from "./InboxActor.ts"
import * as Interrupting from "./Interrupting.ts"
import { LiveRun } from "../run/LiveRun.ts"
import { isDue, spacingOf } from "./NextTurn.ts"
import { MAX_PROMPT_BYTES } from "../prompt/Prompt.ts"
import * as WaitingCalls from "../run/WaitingCalls.ts"
import { RunEvents } from "../run/RunEvents.ts"
import * as CurrentRun from "./CurrentRun.ts"
import * as RunSupervisor from "../run/RunSupervisor.ts"
import * as ToolCalls from "./ToolCalls.ts"
import * as ToolsState from "../machines/ToolsState.ts"
import * as TurnActor from "./TurnActor.ts"
import * as TurnMachine from "../machines/TurnMachine.ts"
import * as WorkerActor from "./WorkerActor.ts"
import * as ProjectStop from "../machines/ProjectStop.ts"

type Command<A = Done> = Effect.Effect<A, CommandRefused | StorageError>

export type How = "queue" | "steer" | "urgent"

interface Actors {
  readonly inbox: ActorHandle<InboxState, Messages.InboxMessage, CommandRefused>
  readonly turn: ActorHandle<TurnState, Messages.TurnMessage, never>
  readonly life: ActorHandle<LifeState, Messages.LifeMessage, never>
  readonly worker: ActorHandle<WorkerState, Messages.WorkerMessage, never>
  readonly tools: ActorHandle<ToolsState.ToolsState, Messages.ToolsMessage, CommandRefused>
}

interface Parts {
  readonly setting: AgentEnvironment["Service"]
  readonly log: EventLog["Service"]
  readonly record: AgentRecord
  readonly scope: CommitScope
  readonly place: CurrentRun.CurrentRun["Service"]
  readonly actors: Actors
  readonly announce: (state: LifeState) => Effect.Effect<void>
}

export const refuse = (error: AskError | CommandRefused): Effect.Effect<never, CommandRefused | StorageError> =>
  Effect.fail(error instanceof StorageError || error instanceof CommandRefused ? error : refusedBy(error))

/** How long a run may continue after its agent's budget was exceeded, in addition to the grace period, ms. */
const PATIENCE = 60_000

export class AgentScope {
  readonly setting: AgentEnvironment["Service"]
  readonly child: CommitScope
  readonly actors: Actors
  readonly slot: RunSupervisor.RunSupervisor
  readonly live: LiveRun
  private readonly log: EventLog["Service"]
  private readonly record: AgentRecord
  private readonly place: CurrentRun.CurrentRun["Service"]
  private readonly tell: Parts["announce"]
  private readonly lock = Semaphore.makeUnsafe(1)

  private constructor({ actors, announce, log, place, record, scope, setting }: Parts) {
    this.setting = setting
    this.child = scope
    this.actors = actors
    this.slot = place.slot
    this.live = place.live
    this.log = log
    this.record = record
    this.place = place
    this.tell = announce
  }

  /** Creates the agent's actors. When the Effect scope closes, the agent's run ends. */
  static readonly make = Effect.fnUntraced(function* (record: AgentRecord) {
    const setting = yield* AgentEnvironment
    const log = yield* EventLog
    const system = yield* ActorSystem.ActorSystem
    const { agent, conversation } = setting
    const scope = new CommitScope(system, { id: agent, stream: conversation })
    yield* Effect.addFinalizer(() => Effect.sync(() => scope.close()))
    const live = new LiveRun()
    const actor = <S, M>(name: string): ActorHandle<S, M> => scope.member(name)
    const redact = yield* Redact
    const adopted = new AgentLatch(false)
    const actors = () => ({
      life: actor<LifeState, Messages.LifeMessage>(lifeName(agent)),
      tools: actor<ToolsState.ToolsState, Messages.ToolsMessage>(toolsName(agent)),
      turn: actor<TurnState, Messages.TurnMessage>(turnName(agent)),
      worker: actor<WorkerState, Messages.WorkerMessage>(workerName(agent))
    })
    const isBroken = record.broken !== undefined
    const life = isBroken ? AgentActor.fresh : record.life
    const isOver = life.state === "[*]" || life.state === "terminated" || life.state === "failed"
    const place: CurrentRun.CurrentRun["Service"] = {
      live,
      slot: yield* RunSupervisor.make(() => new RunEvents({ setting, log, redact, adopted }, live, actors)),
      newId: yield* CurrentRun.ids,
      look: () => {
        const worker = actor<WorkerState, Messages.WorkerMessage>(workerName(agent))
        if (worker.state.now?.state === "BuildingPrompt") worker.tellNow({ _tag: "Look" })
        else actor<TurnState, Messages.TurnMessage>(turnName(agent)).tellNow({ _tag: "Look" })
      },
      interrupt: Interrupting.make({ live, log, setting, tools: () => actors().tools.state }),
      over: new AgentLatch(isOver),
      idle: new AgentLatch(true),
      adopted,
      now: () => ({
        inbox: actor<InboxState, unknown>(inboxName(agent)).state,
        life: actor<LifeState, unknown>(lifeName(agent)).state,
        tools: actor<ToolsState.ToolsState, unknown>(toolsName(agent)).state,
        turn: actor<TurnState, unknown>(turnName(agent)).state,
        worker: actor<WorkerState, unknown>(workerName(agent)).state
      })
    }
    return yield* Effect.gen(function* () {
      const { announce, definition } = yield* AgentActor.make
      const worker = isBroken ? { ...record.worker, now: undefined } : record.worker
      const actors: Actors = {
        inbox: scope.add(inboxName(agent), yield* InboxActor.make, record.inbox),
        life: scope.add(lifeName(agent), definition, life),
        turn: scope.add(turnName(agent), yield* TurnActor.make, record.turn),
        tools: scope.add(toolsName(agent), yield* ToolCalls.make, record.tools),
        worker: scope.add(workerName(agent), yield* WorkerActor.make, worker)
      }
      return new AgentScope({ setting, log, record, scope, place, actors, announce })
    }).pipe(Effect.provideService(CurrentRun.CurrentRun, place))
  })

  get name(): string {
    return this.setting.agent
  }

  get fullName(): string {
    return `${this.setting.project()}/${this.name}`
  }

  config(): AgentConfig {
    return this.setting.config()
  }

  worker(): WorkerSnapshot | undefined {
    return this.actors.worker.state.now
  }
  /** Event id of the first rune of the newest incarnation; 0 before the first start. */
  began(): number {
    return this.actors.worker.state.began
  }
  inbox(): InboxState {
    return this.actors.inbox.state
  }
  turn(): TurnState {
    return this.actors.turn.state
  }
  life(): LifeState {
    return this.actors.life.state
  }

  private begin({ by }: Caller): Command<number> {
    return Effect.suspend(() => {
      this.record.broken = undefined
      return this.actors.worker.ask<{ readonly eventId: number }>({ _tag: "Start", by }).pipe(
        Effect.map(({ eventId }) => eventId),
        Effect.catch(refuse)
      )
    })
  }

  /** Starts a new incarnation, unless one is running. */
  start(caller: Caller): Command {
    return this.lock.withPermit(
      Effect.gen({ self: this }, function* () {
        const before = this.worker()
        if (before !== undefined && before.state !== "Stopped") {
          return { eventId: before.entered, message: `${this.fullName} runs already (${before.state}).` }
        }
        yield* this.gone
        return { eventId: yield* this.begin(caller), message: `${this.fullName} is started.` }
      }).pipe(Effect.uninterruptible)
    )
  }

  /** Starts an agent that waited for a free slot, unless it was stopped in the meantime. */
  admit(caller: Caller): Command<void> {
    return this.lock.withPermit(
      Effect.suspend(() => (this.setting.queued() ? Effect.asVoid(this.begin(caller)) : Effect.void))
    )
  }

  /** Cancels the start of an agent that still waits for a free slot, and logs this. */
  private forgo(by: string, reason: string) {
    return Effect.gen({ self: this }, function* () {
      const spawn = WorkerActor.spawnRequested(this.setting)
      const { eventId } = yield* Effect.catch(
        this.actors.life.ask<{ readonly eventId: number }>({ _tag: "Forgo", by, reason, spawn }),
        refuse
      )
      return { eventId, message: `${this.fullName} is stopped: it was waiting for a free slot and never started.` }
    }).pipe(Effect.uninterruptible)
  }

  /** Returns when all processes of the agent have ended. */
  stop(caller: Caller, reason?: string): Command {
    return this.lock.withPermit(
      Effect.gen({ self: this }, function* () {
        const { fullName } = this
        if (this.setting.queued()) return yield* this.forgo(caller.by, reason ?? "stopped")
        const before = this.worker()
        if (before === undefined || before.state === "Stopped") {
          // the agent's run or the agent itself may still be ending
          yield* this.gone
          return { eventId: before?.entered ?? 0, message: `${fullName} is stopped already.` }
        }
        const { by } = caller
        const eventId = yield* this.actors.worker
          .ask({ _tag: "OperatorStop", by, ...(reason === undefined ? {} : { reason }) })
          .pipe(
            Effect.map(({ state }) => state.now!.entered),
            // the worker may have stopped by itself just before
            Effect.catch((error) =>
              this.worker()?.state === "Stopped" ? Effect.succeed(this.worker()!.entered) : refuse(error)
            )
          )
        yield* this.gone
        return { eventId, message: `${fullName} is stopped; no process of it is left.` }
      })
    )
  }

  /** Waits until the agent's run has ended and then the agent itself. Also stops a run that started during the stop. */
  private get gone(): Effect.Effect<void> {
    return Effect.suspend(() => {
      const { dead, slot } = this
      const left = slot.current()
      if (left === undefined) return Effect.andThen(slot.gone, dead)
      return slot
        .stop(left)
        .pipe(
          Effect.andThen(Effect.timeoutOption(slot.gone, this.config().interruptGrace)),
          Effect.andThen(slot.end(left)),
          Effect.andThen(slot.gone),
          Effect.andThen(dead)
        )
    })
  }

  /** Waits until the agent itself has ended, after its worker and turn. Forces the end if that takes too long. */
  private get dead(): Effect.Effect<void> {
    return Effect.suspend(() => {
      const reason = "it did not end within its grace period"
      return Effect.timeoutOrElse(this.place.over.await, {
        duration: Duration.sum(this.config().interruptGrace, Duration.seconds(1)),
        orElse: () => Effect.ignore(this.actors.life.ask({ _tag: "kill_forced", by: "agentd", reason }))
      })
    })
  }

  private readonly terminate: AgentControl["terminate"] = ({ by, force, reason }) =>
    Effect.gen({ self: this }, function* () {
      const { actors, place, slot } = this
      const grace = Duration.sum(this.config().interruptGrace, Duration.seconds(1))
      const run = slot.current()
      if (force && run !== undefined) yield* slot.kill(run)
      if (!force && isActive(this.turn())) yield* Effect.timeoutOption(place.idle.await, grace)
      yield* Effect.catchTag(this.stop({ by, config: null }, reason), "CommandRefused", (error) =>
        Effect.logWarning(`${this.fullName}: ${error.message}`)
      )
      yield* Effect.timeoutOption(place.idle.await, grace)
      yield* Effect.ignore(actors.tools.ask({ _tag: "Abandon", reason }))
      yield* Effect.ignore(actors.life.ask({ _tag: "kill_forced", by, reason }))
    })

  /** Applies a changed config: recalculates the wait before the next run, which may already be over. */
  get look(): Effect.Effect<void> {
    return Effect.flatMap(Clock.currentTimeMillis, (now) => {
      const worker = this.worker()
      if (worker?.state !== "BuildingPrompt") return Effect.void
      const isOver = isDue(worker.data, spacingOf(this.config()), now)
      return this.actors.worker.tell({ _tag: isOver ? "Look" : "WorkArrived" })
    })
  }

  get control(): AgentControl {
    const { actors } = this
    return {
      announce: Effect.suspend(() => this.tell(this.life())),
      wake: Effect.suspend(() =>
        this.worker()?.state === "BuildingPrompt"
          ? actors.worker.tell({ _tag: "WorkArrived" })
          : actors.turn.tell({ _tag: "Look" })
      ),
      turnId: () => (isActive(this.turn()) ? (this.turn().data.turnId ?? undefined) : undefined),
      interruptTurn: (by, reason, keep) =>
        Effect.suspend(() => {
          const { data } = this.turn()
          return isActive(this.turn())
            ? actors.turn.tell({ _tag: "interrupt", turnId: data.turnId!, by, reason, keep, ...this.live.partial })
            : Effect.void
        }),
      terminate: this.terminate
    }
  }

  /** Fails if the agent accepts no messages now. */
  private get takes(): Effect.Effect<void, CommandRefused> {
    return Effect.suspend(() => {
      const { fullName } = this
      const barred = this.setting.home.barred()
      return barred === undefined
        ? Effect.void
        : new CommandRefused({
            code: this.setting.home.isOver() ? "closed" : "paused",
            message: `${fullName} accepts no messages: ${barred}.`,
            remedy: "See what to do about it: agentd project show"
          })
    })
  }

  /**
   * Adds a message to the inbox. On return, the message and all resulting changes are durable. A known id changes
   * nothing.
   */
  private receive(
    of: Pick<Inbox.Message, "messageId" | "from" | "text" | "alone" | "hops" | "files">,
    how: How
  ): Command<InboxActor.Received> {
    return Effect.gen({ self: this }, function* () {
      const size = sizeOf(of.text)
      if (size > MAX_PROMPT_BYTES) {
        return yield* new CommandRefused({
          code: "too_large",
          message: `The text takes ${size} bytes in the log, and the maximum is ${MAX_PROMPT_BYTES}: a control character takes six.`,
          remedy: "Put it in a file that the agent can read, and send its path."
        })
      }
      const at = yield* Clock.currentTimeMillis
      const message = { ...of, urgent: how === "urgent", at }
      return yield* this.actors.inbox
        .ask<InboxActor.Received>({ _tag: "Receive", message, how })
        .pipe(Effect.catch(refuse))
      // uninterruptible: an accepted message is processed even if its sender disconnects
    }).pipe(Effect.uninterruptible)
  }

  send(text: string, how: How, { by }: Caller, hops?: number, files: NonNullable<Inbox.Message["files"]> = []) {
    return Effect.gen({ self: this }, function* () {
      const { fullName } = this
      yield* this.takes
      const more = { ...(hops === undefined ? {} : { hops }), ...(files.length === 0 ? {} : { files }) }
      const of = { messageId: yield* Ids.messageId, from: by, text, ...more }
      const { eventId, heard } = yield* this.receive(of, how)
      if (heard === "rests") {
        const message = `${fullName} does not get your message now: agents have sent each other too many messages without a message from a person. Your message is kept until a person lets it through. End your turn.`
        return { eventId, message }
      }
      if ((this.worker()?.state ?? "Stopped") === "Stopped") {
        return {
          eventId,
          message: `The message is stored for ${fullName}, which is stopped. Start it: ${ProjectStop.startOf(fullName, this.worker()?.data.stoppedBy)}`
        }
      }
      if (how === "urgent") return { eventId, message: `${fullName} gets the message now.` }
      if (heard === "steered") {
        const message = `${fullName} is steered: its turn ends at the next safe boundary, then it gets this message.`
        return { eventId, message }
      }
      return { eventId, message: `In the inbox of ${fullName}.` }
    })
  }

  /** Accepts a message from agentd itself, even while the conversation accepts no messages. */
  hear(message: Pick<Inbox.Message, "messageId" | "from" | "text" | "hops">): Command<void> {
    return Effect.asVoid(this.receive(message, "queue"))
  }

  post(message: AgentMessage): Command<{ readonly eventId: number }> {
    return Effect.andThen(
      this.takes,
      Effect.map(this.receive(message, "queue"), ({ eventId }) => ({ eventId }))
    )
  }

  steer(message: AgentMessage): Command<void> {
    return Effect.andThen(this.takes, Effect.asVoid(this.receive(message, "steer")))
  }

  tellInbox(message: Messages.InboxMessage): Command<InboxActor.Settled> {
    return Effect.catch(this.actors.inbox.ask<InboxActor.Settled>(message), refuse)
  }

  withdraw(messageIds: ReadonlyArray<string>): Command<boolean> {
    return Effect.catch(this.actors.inbox.ask<boolean>({ _tag: "Withdraw", messageIds }), refuse)
  }

  private standing(messageId: string) {
    const { inbox, turn, worker } = this.actors
    return InboxActor.standing(messageId, { inbox: inbox.state, turn: turn.state, worker: worker.state })
  }

  fate(messageId: string): Command<Fate> {
    return Effect.suspend(() => {
      const found = this.standing(messageId)
      if (found !== undefined) return Effect.succeed<Fate>(found)
      const ended = endedWith(this.turn(), messageId)
      if (ended === undefined) {
        const isDropped = Inbox.isWithdrawn(this.inbox().data, messageId)
        return Effect.succeed<Fate>(isDropped ? { _tag: "Dropped" } : { _tag: "Unknown" })
      }
      const { eventId, outcome, turnId } = ended
      return Effect.map(this.log.get(eventId), (rune): Fate => ({
        _tag: "Ended",
        turnId,
        outcome,
        output: TurnActor.outputOf(rune),
        died: TurnActor.hasDied(rune)
      }))
    })
  }

  /**
   * Interrupts the current turn. `drops`: ids of the messages to drop; if omitted, all messages of the turn are
   * dropped.
   */
  private interruptTurn(by: string, reason: string, drops?: ReadonlyArray<string>) {
    const turnId = this.turn().data.turnId!
    const some = drops === undefined ? {} : { drops }
    return this.actors.turn.ask({ _tag: "interrupt", turnId, by, reason, ...some, ...this.live.partial })
  }

  /** Ends the current turn. If the run has no turns, ends the run. */
  interrupt({ by }: Caller) {
    return Effect.gen({ self: this }, function* () {
      const { fullName, live } = this
      if (isActive(this.turn())) {
        const { eventId } = yield* Effect.catch(this.interruptTurn(by, `interrupted by ${by}`), (error) =>
          error._tag === "Refused"
            ? new CommandRefused({
                code: "conflict",
                message: `${fullName} has nothing to interrupt: its turn has just ended.`,
                remedy: `See what it does: agentd why ${fullName}`
              })
            : refuse(error)
        )
        const what = live.turns ? "turn" : "run"
        return { eventId, message: `The ${what} of ${fullName} is being ended; its work is dropped.` }
      }
      const worker = this.worker()
      const state = worker?.state ?? "Stopped"
      if (worker === undefined || (state !== "Running" && state !== "Spawning") || live.turns) {
        return yield* new CommandRefused({
          code: "conflict",
          message: `${fullName} has nothing to interrupt: no turn and no run is in progress.`,
          remedy: `See what it does: agentd why ${fullName}`
        })
      }
      const runId = worker.data.runId!
      const { eventId } = yield* Effect.catch(
        this.actors.worker.ask({ _tag: "UrgentMessage", messageId: null, runId }),
        refuse
      )
      return { eventId, message: `The run of ${fullName} is being ended; its work is dropped.` }
    })
  }

  /** Ends the turn that carries the message, and drops only this message. Does nothing if the turn has ended. */
  interruptMessage(messageId: string, reason: string) {
    return Effect.gen({ self: this }, function* () {
      const turn = this.turn()
      if (isActive(turn) && turn.data.messageIds.includes(messageId)) {
        return yield* Effect.catch(Effect.asVoid(this.interruptTurn("agentd", reason, [messageId])), (error) =>
          // the turn has ended by itself; if its run was lost, its message is queued again
          error._tag === "Refused" ? Effect.asVoid(this.withdraw([messageId])) : refuse(error)
        )
      }
      yield* this.withdraw([messageId])
      const now = this.worker()
      if (now?.state === "Spawning" && now.data.messageIds.includes(messageId)) {
        // the run's other messages are queued for the next run
        const isAlone = now.data.messageIds.length === 1
        const urgent = { _tag: "UrgentMessage", messageId: isAlone ? null : messageId, runId: now.data.runId! } as const
        yield* this.actors.worker.tell(urgent)
      }
    })
  }

  calls(): ReadonlyArray<CallInfo> {
    const { conversation, project } = this.setting
    const of = { agent: this.name, conversation, project: project() }
    return ToolsState.openCalls(this.actors.tools.state).flatMap((call) => {
      const { toolName, turnId } = call.snapshot.data
      const whole = this.setting.waiting.get(call.callId)
      const input = whole === undefined ? call.arguments : this.setting.waiting.shown(whole)
      const shown = { ...call, arguments: input, tool: toolName ?? "", turnId: turnId ?? "" }
      return callRow(of, shown, call.snapshot) ?? []
    })
  }

  /** A call that waits for the user's approval or answer, with its complete input. */
  asked(callId: string): AskedCall | CommandRefused {
    return WaitingCalls.asked(this.setting, this.live, this.actors.tools.state, callId)
  }

  /** The rules of each offer for a waiting call, in the order of `asked`. */
  offered(callId: string): ReadonlyArray<ReadonlyArray<RuleSubject>> {
    return WaitingCalls.offered(this.setting, this.live, this.actors.tools.state, callId)
  }

  /** Whether this agent made the call (open or recently finished). */
  knows(callId: string): boolean {
    return ToolsState.knows(this.actors.tools.state, callId)
  }

  /** Approves or denies a tool call. The decision is durable on return. */
  answer(callId: string, said: Answer, { by }: Caller) {
    return Effect.gen({ self: this }, function* () {
      const { answers, eventId, late, tool } = yield* Effect.catch(
        this.actors.tools.ask<ToolCalls.Answered>({ _tag: "Answer", callId, said, by }),
        refuse
      )
      const what =
        said.behavior === "deny" ? "denied" : answers === undefined ? "approved" : `answered: ${answers.join("; ")}`
      const held =
        late && said.behavior === "allow"
          ? " Its run had already ended: the approval applies when the agent repeats the call."
          : ""
      const done: Done = { eventId, message: `${tool} is ${what}.${held}` }
      return done
    })
  }

  /** Runs the waiting calls that rules allow now. */
  readonly weigh = Effect.suspend(() => this.actors.tools.tell({ _tag: "Weigh" }))

  /** The agent that calls agentd from this run; undefined if the run is not the agent's live run. */
  voice(runId: string): VoiceOf | undefined {
    const { conversation } = this.setting
    return this.slot.current() === runId
      ? { conversation, agent: this.name, turnId: this.live.turnId ?? null, may: this.config().may }
      : undefined
  }

  messages(): ReadonlyArray<InboxMessage> {
    const { carried, waiting } = this.inbox().data
    return [
      ...(isActive(this.turn()) ? carried.map((message) => ({ ...message, carried: true })) : []),
      ...waiting.map((message) => ({ ...message, carried: false }))
    ]
  }

  /** The agent's public state, which other agents see. */
  member(now: number): AgentMember {
    const { can, role, budget } = this.config()
    const { conversation, home, parent } = this.setting
    const life = this.life()
    const run = this.worker()
    const { reached } = this.setting.allowance.standing()
    return {
      conversation,
      agent: this.name,
      online: (life.state === "idle" || life.state === "running_turn") && home.barred() === undefined,
      disconnected: disconnection(this.place.now()),
      busy: this.turn().state !== "idle" || run?.state === "Spawning" || this.live.turnId !== undefined,
      spent: Budget.exhausted(budget, life.spent) !== undefined || reached?.until === null,
      restsUntil: reached?.until ?? AgentView.restsUntil({ config: this.config(), now, worker: run }),
      can,
      role: role ?? null,
      parent,
      cwd: run?.data.cwd ?? null,
      branch: run?.data.branch ?? null
    }
  }

  private violation(rule: string, kind: string, actor: string, message: string): RuneDraft {
    const stream = this.setting.conversation
    const payload = { rule, severity: severityOf(rule), kind, actor, stream, message }
    return { stream, kind: "invariant.violated", actor: "sweep", trigger: "sweep", payload }
  }

  /**
   * A run that continues although its agent's budget is exceeded. `since`: when this was first noticed, ms on the
   * monotonic clock.
   */
  private overspent: { readonly runId: string; readonly since: number } | undefined = undefined

  private overspends(elapsed: number): boolean {
    const runId = this.life().data.spent === null ? undefined : this.slot.current()
    if (runId === undefined) this.overspent = undefined
    else if (this.overspent?.runId !== runId) this.overspent = { runId, since: elapsed }
    if (this.overspent === undefined) return false
    return elapsed - this.overspent.since > this.turn().data.graceMillis + PATIENCE
  }

  /**
   * Id of an open turn that no run works on; undefined if there is none. Checked twice, because a slow disk may delay
   * the turn's end.
   */
  private lostTurn(now: number) {
    return Effect.gen({ self: this }, function* () {
      const lost = (): string | undefined => {
        const { data, state } = this.turn()
        const { turnId } = data
        return turnId !== null && TurnMachine.sweepable(state, data, now, this.live.turnId === turnId)
          ? turnId
          : undefined
      }
      const turnId = lost()
      if (turnId === undefined) return undefined
      // the actor replies when all its earlier decisions are durable
      yield* Effect.ignore(this.actors.turn.ask({ _tag: "Look" }))
      return lost() === turnId ? turnId : undefined
    })
  }

  /**
   * Finds two errors: a turn that no run works on, and a run that continues although its agent's budget is exceeded.
   * `now`: ms since the epoch. `elapsed`: ms on a monotonic clock.
   */
  sweep(now: number, elapsed: number = now) {
    return Effect.gen({ self: this }, function* () {
      const { name } = this
      const found: Array<RuneDraft> = []
      const turnId = yield* this.lostTurn(now)
      if (turnId !== undefined) {
        const message = `turn ${turnId} of ${name} has not ended, and no run works on it`
        found.push(this.violation("INV-TURN-TERMINAL", "turn.started", turnName(name), message))
      }
      if (this.overspends(elapsed)) {
        const message = `run ${this.slot.current()} of ${name} continues although its budget of ${this.life().data.spent} is exceeded`
        found.push(this.violation("INV-AGENT-BUDGET", "agent.budget_exhausted", lifeName(name), message))
      }
      if (found.length > 0) yield* Effect.catch(this.log.append(found), (error) => Effect.logWarning(error.message))
      if (turnId !== undefined)
        yield* this.actors.tools.tell({ _tag: "Lost", turnId, message: "no run was working on the turn" })
    })
  }
}

export const make = AgentScope.make
