/**
 * AgentCommands: what a person, its conversation and its siblings can do to an agent.
 *
 * Guarantees: commands on one agent are carried out one after the other; what a
 * reply reports is durable; after `stop` no process of the agent is left.
 */
import { Clock, Duration, Effect, Result, Semaphore } from "effect"
import type { ChildSpec } from "../supervision/Child.ts"
import type { AgentConfig } from "../config/AgentConfig.ts"
import type { AgentMessage, Fate, Member } from "../domain/AgentPort.ts"
import * as Ids from "../domain/Ids.ts"
import { type CallInfo, type Caller, CommandRefused, type Done } from "../domain/Messages.ts"
import type * as TurnMachine from "./TurnMachine.ts"
import type * as WorkerMachine from "./WorkerMachine.ts"
import { StorageError } from "../event-log/EventLog.ts"
import type { AgentRecord } from "./AgentRecovery.ts"
import { sizeOf } from "./Excerpt.ts"
import { fateOf, memberOf, nowOf } from "./MessageStatus.ts"
import type { InboxMessage, VoiceOf } from "./Fleet.ts"
import type { Tenant } from "./ConversationPort.ts"
import * as Inbox from "./Inbox.ts"
import { AgentSupervisor, type Surroundings } from "./AgentSupervisor.ts"
import type { Answer } from "./OpenCall.ts"
import { MAX_PROMPT_BYTES, said } from "./Prompt.ts"
import { sweep } from "./Sweep.ts"
import type { TurnActor } from "./TurnActor.ts"
import type { InboxActor, WorkerActor } from "./WorkerActor.ts"
import type { Cause } from "../event-log/Rune.ts"

type Command<A = Done> = Effect.Effect<A, CommandRefused | StorageError>

export type How = "queue" | "steer" | "urgent"

export interface AgentCommands {
  readonly name: string
  readonly config: () => AgentConfig
  /** The committed state of its machines: plain reads. */
  readonly worker: () => WorkerActor["snapshot"] | undefined
  readonly inbox: () => InboxActor["snapshot"]
  readonly turn: () => TurnActor["snapshot"]
  /** For the conversation's supervisor. */
  readonly child: ChildSpec
  readonly tenant: Tenant
  readonly start: (caller: Caller) => Command
  /** It has a place now: it begins, unless it was ended while it waited. */
  readonly admit: (caller: Caller) => Command<void>
  readonly stop: (caller: Caller, reason?: string) => Command
  readonly send: (text: string, how: How, caller: Caller) => Command
  readonly interrupt: (caller: Caller) => Command
  readonly calls: () => ReadonlyArray<CallInfo>
  /** Whether the call is one of its, open or ended lately. */
  readonly knows: (callId: string) => boolean
  readonly answer: (callId: string, decision: Answer, caller: Caller) => Command
  /** Undefined: the run is not its live one. */
  readonly voice: (runId: string) => VoiceOf | undefined
  readonly messages: () => ReadonlyArray<InboxMessage>
  /** Takes what agentd itself has to say, also while its conversation takes no messages. The same id again changes nothing. */
  readonly hear: (message: Pick<AgentMessage, "messageId" | "from" | "text">) => Command<void>
  // What its siblings may do: see domain/Crew.
  readonly post: (message: AgentMessage) => Command<{ readonly eventId: number }>
  readonly withdraw: (messageId: string) => Command<boolean>
  readonly fate: (messageId: string) => Command<Fate>
  readonly interruptMessage: (messageId: string, reason: string) => Command<void>
  readonly steer: (message: AgentMessage) => Command<void>
  readonly member: () => Member
  /** Looks for what has been left undone, at this time (ms since the epoch). */
  readonly sweep: (now: number) => Effect.Effect<void>
}

type Failure = { readonly _tag: string; readonly message: string; readonly remedy?: string }

/** A person's command meets an actor's refusal: the words change, nothing else. */
const refuse = (error: StorageError | Failure): Effect.Effect<never, CommandRefused | StorageError> =>
  Effect.fail(
    error instanceof StorageError
      ? error
      : new CommandRefused({
          message: error.message,
          remedy: error.remedy ?? "See `agentd log` for what led to it."
        })
  )

const isActive = (state: TurnMachine.State): boolean => state === "streaming" || state === "tool_executing"

class Commands {
  private readonly agent: AgentSupervisor
  private readonly lock = Semaphore.makeUnsafe(1)

  constructor(agent: AgentSupervisor) {
    this.agent = agent
  }

  readonly start = (caller: Caller): Command =>
    this.lock.withPermit(
      Effect.gen({ self: this }, function* () {
        const { fullName, worker } = this.agent
        const before = worker?.snapshot
        if (before !== undefined && before.state !== "Stopped") {
          return { eventId: before.entered, message: `${fullName} runs already (${before.state}).` }
        }
        yield* this.gone
        const eventId = yield* Effect.catch(this.agent.begin(caller), refuse)
        return { eventId, message: `${fullName} is started.` }
      })
    )

  readonly admit = (caller: Caller): Command<void> =>
    this.lock.withPermit(
      Effect.suspend(() =>
        this.agent.around.queued() ? Effect.asVoid(Effect.catch(this.agent.begin(caller), refuse)) : Effect.void
      )
    )

  readonly stop = (caller: Caller, reason?: string): Command =>
    this.lock.withPermit(
      Effect.gen({ self: this }, function* () {
        const { around, fullName, worker } = this.agent
        if (around.queued()) {
          const eventId = yield* Effect.catch(this.agent.forgo(caller.by, reason ?? "stopped"), refuse)
          return { eventId, message: `${fullName} is stopped: it waited for a place and never began.` }
        }
        if (worker === undefined || worker.snapshot.state === "Stopped") {
          // its run and its life may still be on their way out
          yield* this.gone
          return { eventId: worker?.snapshot.entered ?? 0, message: `${fullName} is stopped already.` }
        }
        const event: WorkerMachine.Event = {
          _tag: "OperatorStop",
          by: caller.by,
          ...(reason === undefined ? {} : { reason })
        }
        const eventId = yield* worker.ask(event).pipe(
          Effect.map((committed) => committed.eventId),
          // it may have stopped by itself just before
          Effect.catch((error) =>
            worker.snapshot.state === "Stopped" ? Effect.succeed(worker.snapshot.entered) : refuse(error)
          )
        )
        yield* this.gone
        return { eventId, message: `${fullName} is stopped; no process of it is left.` }
      })
    )

  /** Waits for the end of its run, then of its life. A run that came to be in the very moment of the stop was not there to be cancelled. */
  private readonly gone: Effect.Effect<void> = Effect.suspend(() => {
    const { around, dead, slot } = this.agent
    const left = slot.current()
    if (left === undefined) return Effect.andThen(slot.gone, dead)
    return slot
      .stop(left)
      .pipe(
        Effect.andThen(Effect.timeoutOption(slot.gone, around.config().interruptGrace)),
        Effect.andThen(slot.end(left)),
        Effect.andThen(slot.gone),
        Effect.andThen(dead)
      )
  })

  /** Why no message is taken now. */
  private readonly takes: Effect.Effect<void, CommandRefused> = Effect.suspend(() => {
    const { around, fullName, inbox } = this.agent
    const barred = around.home.barred()
    if (barred !== undefined) {
      return new CommandRefused({
        message: `${fullName} takes no messages: ${barred}.`,
        remedy: "See what to do about it: agentd conversation show"
      })
    }
    return inbox.snapshot.data.waiting.length < Inbox.MAX_WAITING
      ? Effect.void
      : new CommandRefused({
          message: `${fullName} has ${Inbox.MAX_WAITING} messages waiting already.`,
          remedy: `See what keeps it: agentd why ${fullName}`
        })
  })

  /** Into the inbox, durable, and whoever it may wake is told. The same id again changes nothing. */
  private readonly receive = Effect.fnUntraced(
    { self: this },
    function* (this: Commands, message: Inbox.Message) {
      const { around, inbox, live, record, worker } = this.agent
      const { messageId, text } = message
      const size = sizeOf(text)
      if (size > MAX_PROMPT_BYTES) {
        return yield* new CommandRefused({
          message: `The text takes ${size} bytes in the log, and may take ${MAX_PROMPT_BYTES}: a control character takes six.`,
          remedy: "Put it in a file that the agent can read, and send its path."
        })
      }
      const done = record.ended.get(messageId)
      if (done !== undefined) return { eventId: done.eventId, cause: undefined }
      const received = yield* Effect.result(inbox.ask({ _tag: "Received", message }))
      if (Result.isFailure(received)) {
        const error = received.failure
        if (error._tag === "Refused" && error.why === "stale") return { eventId: 0, cause: undefined }
        return yield* refuse(error)
      }
      const { cause, eventId } = received.success
      yield* around.home.firstMessage(messageId, cause)
      yield* worker?.tell({ _tag: "WorkArrived", messageId }, cause) ?? Effect.void
      // what is urgent ends the run, and is the next one's to carry
      if (!message.urgent) yield* live.wake
      return { eventId, cause }
      // what is in the inbox wakes its agent, even if the sender goes away meanwhile
    },
    Effect.uninterruptible
  )

  /** Into the turn in progress, where there is one that takes it. */
  private readonly redirect = Effect.fnUntraced(
    { self: this },
    function* (this: Commands, message: Inbox.Message, cause: Cause | undefined) {
      const { live, name, turn } = this.agent
      if (!live.turns || !isActive(turn.snapshot.state)) return false
      yield* turn.tell(
        {
          _tag: "steer",
          turnId: yield* Ids.turnId,
          agentId: name,
          input: `${said(message)}\n`,
          messageIds: [message.messageId],
          ...live.partial,
          graceMillis: Duration.toMillis(this.agent.around.config().interruptGrace),
          at: message.at
        },
        cause
      )
      return true
    }
  )

  readonly send = Effect.fnUntraced(
    { self: this },
    function* (this: Commands, text: string, how: How, caller: Caller) {
      const { fullName, worker } = this.agent
      yield* this.takes
      const messageId = yield* Ids.messageId
      const at = yield* Clock.currentTimeMillis
      const message = { messageId, from: caller.by, text, urgent: how === "urgent", at }
      const { cause, eventId } = yield* this.receive(message)
      if (worker === undefined || worker.snapshot.state === "Stopped") {
        return { eventId, message: `Kept for ${fullName}, which is stopped. Start it: agentd start ${fullName}` }
      }
      if (how === "urgent") {
        yield* worker.tell({ _tag: "UrgentMessage", messageId }, cause)
        return { eventId, message: `${fullName} is told now.` }
      }
      if (how === "steer" && (yield* this.redirect(message, cause))) {
        return {
          eventId,
          message: `${fullName} is steered: its turn ends at the next safe boundary, then it hears this.`
        }
      }
      return { eventId, message: `In the inbox of ${fullName}.` }
    },
    Effect.uninterruptible
  )

  readonly interrupt = Effect.fnUntraced({ self: this }, function* (this: Commands, { by }: Caller) {
    const { fullName, live, turn, worker } = this.agent
    if (isActive(turn.snapshot.state)) {
      const reason = `interrupted by ${by}`
      const event: TurnMachine.Event = {
        _tag: "interrupt",
        turnId: turn.snapshot.data.turnId!,
        by,
        reason,
        ...live.partial
      }
      const { eventId } = yield* Effect.catch(turn.ask(event), (error) =>
        error._tag === "Refused"
          ? new CommandRefused({
              message: `${fullName} has nothing to interrupt: its turn has just ended.`,
              remedy: `See what it does: agentd why ${fullName}`
            })
          : refuse(error)
      )
      const what = live.turns ? "turn" : "run"
      return { eventId, message: `The ${what} of ${fullName} is being ended; its work is dropped.` }
    }
    const state = worker?.snapshot.state ?? "Stopped"
    if (worker === undefined || (state !== "Running" && state !== "Spawning") || live.turns) {
      return yield* new CommandRefused({
        message: `${fullName} has nothing to interrupt: it is ${live.turns ? "idle" : state}.`,
        remedy: `See what it does: agentd why ${fullName}`
      })
    }
    const { eventId } = yield* Effect.catch(worker.ask({ _tag: "UrgentMessage", messageId: null }), refuse)
    return { eventId, message: `The run of ${fullName} is being ended; its work is dropped.` }
  })

  readonly hear: AgentCommands["hear"] = (message) =>
    Effect.flatMap(Clock.currentTimeMillis, (at) => Effect.asVoid(this.receive({ ...message, urgent: false, at })))

  readonly post = Effect.fnUntraced({ self: this }, function* (this: Commands, message: AgentMessage) {
    yield* this.takes
    const { eventId } = yield* this.receive({ ...message, urgent: false, at: yield* Clock.currentTimeMillis })
    return { eventId }
  })

  readonly withdraw = (messageId: string): Command<boolean> =>
    Effect.suspend(() => {
      const { inbox } = this.agent
      if (nowOf(this.agent, messageId)?._tag !== "Waiting") return Effect.succeed(false)
      return inbox.ask({ _tag: "Withdrawn", messageId }).pipe(
        Effect.as(true),
        Effect.catch((error) => (error._tag === "Refused" ? Effect.succeed(false) : refuse(error)))
      )
    })

  readonly interruptMessage = Effect.fnUntraced(
    { self: this },
    function* (this: Commands, messageId: string, reason: string) {
      const { live, turn, worker } = this.agent
      const { data, state } = turn.snapshot
      if (isActive(state) && data.messageIds.includes(messageId)) {
        const event: TurnMachine.Event = {
          _tag: "interrupt",
          turnId: data.turnId!,
          by: "agentd",
          reason,
          ...live.partial
        }
        return yield* Effect.catch(Effect.asVoid(turn.ask(event)), (error) =>
          // over by itself; where it was lost, the message waits again
          error._tag === "Refused" ? Effect.asVoid(this.withdraw(messageId)) : refuse(error)
        )
      }
      yield* this.withdraw(messageId)
      const now = worker?.snapshot
      if (now?.state === "Spawning" && now.data.messageIds.includes(messageId)) {
        yield* worker!.tell({ _tag: "UrgentMessage", messageId: null })
      }
    }
  )

  readonly steer = Effect.fnUntraced({ self: this }, function* (this: Commands, of: AgentMessage) {
    yield* this.takes
    const message: Inbox.Message = { ...of, urgent: false, at: yield* Clock.currentTimeMillis }
    const { cause } = yield* this.receive(message)
    if (cause !== undefined) yield* this.redirect(message, cause)
  })

  readonly terminate: Tenant["terminate"] = ({ by, force, reason }) =>
    Effect.gen({ self: this }, function* () {
      const { around, calls, life, live, slot, turn } = this.agent
      const grace = Duration.sum(around.config().interruptGrace, Duration.seconds(1))
      const run = slot.current()
      if (force && run !== undefined) yield* slot.kill(run)
      if (!force && isActive(turn.snapshot.state)) yield* Effect.timeoutOption(live.settled, grace)
      yield* Effect.catchTag(this.stop({ by, config: null }, reason), "CommandRefused", (error) =>
        Effect.logWarning(`${this.agent.fullName}: ${error.message}`)
      )
      yield* Effect.timeoutOption(live.settled, grace)
      yield* calls.abandon(reason)
      yield* Effect.ignore(life?.ask({ _tag: "kill_forced", by, reason }) ?? Effect.void)
    })
}

/** An agent as its record says it stands. It lives until the scope closes, which ends its run. */
export const make = (around: Surroundings, record: AgentRecord) => Effect.map(AgentSupervisor.make(around, record), of)

export const of = (agent: AgentSupervisor): AgentCommands => {
  const commands = new Commands(agent)
  const { around } = agent
  const { conversation, log } = around
  const tenant: Tenant = {
    announce: Effect.suspend(() => agent.announce(agent.standing)),
    wake: Effect.suspend(() =>
      Effect.andThen(agent.worker?.tell({ _tag: "WorkArrived" }) ?? Effect.void, agent.live.wake)
    ),
    interruptTurn: (by, reason, keep) =>
      Effect.suspend(() =>
        isActive(agent.turn.snapshot.state)
          ? agent.turn.tell({ _tag: "interrupt", by, reason, keep, ...agent.live.partial })
          : Effect.void
      ),
    terminate: commands.terminate
  }
  return {
    name: agent.name,
    config: around.config,
    worker: () => agent.worker?.snapshot,
    inbox: () => agent.inbox.snapshot,
    turn: () => agent.turn.snapshot,
    child: agent.nest.child,
    tenant,
    start: commands.start,
    admit: commands.admit,
    stop: commands.stop,
    send: commands.send,
    interrupt: commands.interrupt,
    calls: () => agent.calls.list(),
    knows: (callId) => agent.calls.has(callId),
    answer: (callId, decision, caller) => agent.calls.answer(callId, decision, caller),
    voice: (runId) =>
      agent.slot.current() === runId
        ? { conversation, agent: agent.name, turnId: agent.live.turnId ?? null, may: around.config().may }
        : undefined,
    messages: () => {
      const { carried, waiting } = agent.inbox.snapshot.data
      const isCarried = isActive(agent.turn.snapshot.state)
      return [
        ...(isCarried ? carried.map((message) => ({ ...message, carried: true })) : []),
        ...waiting.map((message) => ({ ...message, carried: false }))
      ]
    },
    hear: commands.hear,
    post: commands.post,
    withdraw: commands.withdraw,
    fate: (messageId) => fateOf(agent, log, messageId),
    interruptMessage: commands.interruptMessage,
    steer: commands.steer,
    member: () => memberOf(agent),
    sweep: (now) => sweep(agent, now)
  }
}
