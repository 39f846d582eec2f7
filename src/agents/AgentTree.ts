/**
 * AgentTree: one agent with all that belongs to it: inbox, worker, run slot, and
 * the supervisor over them; and what a person can do to it.
 *
 * Guarantees: commands on one agent are carried out one after the other; what a
 * reply reports is durable; after `stop` no process of the agent is left.
 */
import { Clock, Duration, Effect, Exit, Scope, Semaphore } from "effect"
import type { DeadLetters } from "../actors/DeadLetters.ts"
import type { ChildSpec } from "../actors/Child.ts"
import * as MachineActor from "../actors/MachineActor.ts"
import * as Nest from "../actors/Nest.ts"
import type { Backend } from "../backends/Backend.ts"
import type { AgentConfig } from "../domain/Config.ts"
import * as Ids from "../domain/Ids.ts"
import { CommandRefused, type Caller, type Done } from "../domain/Messages.ts"
import * as Worker from "../machines/Worker.ts"
import { type RuneLog, StorageError } from "../runes/RuneLog.ts"
import * as Inbox from "./Inbox.ts"
import { Output } from "./Output.ts"
import { type AgentRecord, begun, inboxAddress, workerAddress } from "./Recovery.ts"
import * as RunSlot from "./RunSlot.ts"
import * as WorkerActor from "./WorkerActor.ts"
import type { WorktreeError } from "./Worktree.ts"

/** What an agent needs of its surroundings. */
export interface Surroundings {
  readonly conversation: string
  /** `project/agent`, for a person. */
  readonly fullName: () => string
  readonly log: RuneLog["Service"]
  readonly deadLetters: DeadLetters["Service"]
  /** As the file says now. */
  readonly config: () => AgentConfig
  readonly backend: Effect.Effect<Backend>
  readonly place: Effect.Effect<{ readonly cwd: string; readonly branch: string | undefined }, WorktreeError>
  /** The end of the log when this daemon took it over. */
  readonly recoveredTo: number
}

type Command = Effect.Effect<Done, CommandRefused | StorageError>

export interface AgentTree {
  readonly name: string
  readonly config: () => AgentConfig
  /** The committed state of its machines: plain reads. */
  readonly worker: () => WorkerActor.WorkerActor["snapshot"] | undefined
  readonly inbox: () => WorkerActor.InboxActor["snapshot"]
  /** For the conversation's supervisor. */
  readonly child: ChildSpec
  readonly start: (caller: Caller) => Command
  readonly stop: (caller: Caller, reason?: string) => Command
  readonly restart: (caller: Caller) => Command
  readonly send: (text: string, urgent: boolean, caller: Caller) => Command
  readonly interrupt: (caller: Caller) => Command
}

/** The limits that a new incarnation takes from the config; they are part of its first rune. */
const initialData = (config: AgentConfig, before: Worker.Data | undefined): Worker.Data => ({
  ...Worker.initial({
    mode: config.mode,
    limits: { maxConsecutiveErrors: config.maxConsecutiveErrors, maxTotalErrors: config.maxTotalErrors },
    backoff: {
      base: Duration.toMillis(config.backoff.base),
      cap: Duration.toMillis(config.backoff.cap),
      factor: 2,
      jitter: config.backoff.jitter
    },
    graceMillis: Duration.toMillis(config.interruptGrace),
    maxRunsPerHour: config.maxRunsPerHour ?? null
  }),
  ...(before === undefined
    ? {}
    : {
        sessionSeq: before.sessionSeq,
        messageIds: before.messageIds,
        delivered: before.delivered,
        cutShort: before.cutShort,
        lastRunAt: before.lastRunAt,
        recentRuns: before.recentRuns
      })
})

/** A person's command meets an actor's refusal: the words change, nothing else. */
const refuse = (
  error: StorageError | { readonly _tag: string; readonly message: string; readonly remedy?: string }
): Effect.Effect<never, CommandRefused | StorageError> =>
  error instanceof StorageError
    ? Effect.fail(error)
    : Effect.fail(
        new CommandRefused({ message: error.message, remedy: error.remedy ?? "See `agentd log` for what led to it." })
      )

class Live {
  worker: WorkerActor.WorkerActor | undefined = undefined
  private workerScope: Scope.Closeable | undefined = undefined
  readonly nest: Nest.Nest
  private readonly lock = Semaphore.makeUnsafe(1)
  private output: Output | undefined = undefined
  private readonly scope: Scope.Scope
  readonly around: Surroundings
  readonly record: AgentRecord
  inbox!: WorkerActor.InboxActor
  slot!: RunSlot.RunSlot

  constructor(around: Surroundings, record: AgentRecord, scope: Scope.Scope) {
    this.around = around
    this.record = record
    this.scope = scope
    this.nest = Nest.make({
      name: record.name,
      strategy: "rest_for_one",
      intensity: 10,
      period: "30 seconds"
    })
  }

  readonly sink: RunSlot.RunSink = {
    started: (runId, { pid, sessionId }) =>
      this.tell({
        _tag: "SessionStarted",
        runId,
        seq: Math.max(1, this.worker?.snapshot.data.sessionSeq ?? 1),
        pid,
        sessionId
      }),
    output: (runId, deltas) =>
      Effect.suspend(() => {
        const { conversation, config } = this.around
        this.output ??= new Output(conversation, workerAddress(this.record.name), runId, config().output)
        return this.around.log.appendLazy(this.output.take(deltas))
      }),
    exited: (runId, outcome) =>
      Effect.suspend(() => {
        const rest = this.output?.end() ?? []
        this.output = undefined
        const tell = this.tell({ _tag: "SessionExited", runId, outcome })
        return rest.length === 0 ? tell : Effect.andThen(this.around.log.appendLazy(rest), tell)
      })
  }

  private tell(event: Worker.Event) {
    return Effect.suspend(() => this.worker?.tell(event) ?? Effect.void)
  }

  /** The worker from a snapshot on: a new actor in the place of the old one. */
  readonly install = Effect.fnUntraced(
    { self: this },
    function* (this: Live, snapshot: WorkerActor.WorkerActor["snapshot"]) {
      const scope = yield* Scope.fork(this.scope)
      const worker = yield* WorkerActor.make(
        {
          agent: this.record.name,
          conversation: this.around.conversation,
          log: this.around.log,
          deadLetters: this.around.deadLetters,
          config: this.around.config,
          backend: this.around.backend,
          inbox: this.inbox,
          slot: this.slot,
          place: this.around.place,
          recoveredTo: this.around.recoveredTo
        },
        snapshot
      ).pipe(Scope.provide(scope))
      if (this.worker !== undefined) yield* this.nest.remove(this.worker.id)
      if (this.workerScope !== undefined) yield* Scope.close(this.workerScope, Exit.void)
      this.worker = worker
      this.workerScope = scope
      yield* this.nest.add(worker)
    }
  )

  readonly start = (caller: Caller): Command =>
    this.lock.withPermit(
      Effect.gen({ self: this }, function* () {
        const fullName = this.around.fullName()
        const before = this.worker?.snapshot
        if (before !== undefined && before.state !== "Stopped") {
          return { eventId: before.entered, message: `${fullName} runs already (${before.state}).` }
        }
        yield* this.slot.gone
        return yield* Effect.uninterruptible(this.begin(caller, fullName, before))
      })
    )

  /** What its first rune says has to come to be, even if the caller goes away meanwhile. */
  private readonly begin = Effect.fnUntraced(
    { self: this },
    function* (this: Live, caller: Caller, fullName: string, before: WorkerActor.WorkerActor["snapshot"] | undefined) {
      const { conversation, log } = this.around
      const incarnation = this.record.incarnation + 1
      const initial = initialData(this.around.config(), before?.data)
      const [rune] = yield* Effect.catch(
        log.append([
          {
            stream: conversation,
            kind: "worker.started",
            actor: workerAddress(this.record.name),
            to: Worker.Worker.initial,
            trigger: "start",
            payload: { by: caller.by, incarnation, initial }
          }
        ]),
        refuse
      )
      this.record.incarnation = incarnation
      this.record.broken = undefined
      yield* this.install(begun(rune!))
      return { eventId: rune!.eventId, message: `${fullName} is started.` }
    }
  )

  readonly stop = (caller: Caller, reason?: string): Command =>
    this.lock.withPermit(
      Effect.gen({ self: this }, function* () {
        const { worker } = this
        const fullName = this.around.fullName()
        if (worker === undefined || worker.snapshot.state === "Stopped") {
          return { eventId: worker?.snapshot.entered ?? 0, message: `${fullName} is stopped already.` }
        }
        const event: Worker.Event = { _tag: "OperatorStop", by: caller.by, ...(reason === undefined ? {} : { reason }) }
        const eventId = yield* worker.ask(event).pipe(
          Effect.map((committed) => committed.eventId),
          // it may have stopped by itself just before
          Effect.catch((error) =>
            worker.snapshot.state === "Stopped" ? Effect.succeed(worker.snapshot.entered) : refuse(error)
          )
        )
        // one that came to be in the very moment of the stop was not there to be cancelled
        const left = this.slot.current()
        if (left !== undefined) {
          yield* this.slot.interrupt(left)
          yield* Effect.timeoutOption(this.slot.gone, this.around.config().interruptGrace)
          yield* this.slot.end(left)
        }
        yield* this.slot.gone
        return { eventId, message: `${fullName} is stopped; no process of it is left.` }
      })
    )

  readonly send = (text: string, urgent: boolean, caller: Caller): Command =>
    Effect.gen({ self: this }, function* () {
      const fullName = this.around.fullName()
      if (this.inbox.snapshot.data.waiting.length >= Inbox.MAX_WAITING) {
        return yield* new CommandRefused({
          message: `${fullName} has ${Inbox.MAX_WAITING} messages waiting already.`,
          remedy: `See what keeps it: agentd why ${fullName}`
        })
      }
      const messageId = yield* Ids.messageId
      const at = yield* Clock.currentTimeMillis
      const message = { messageId, from: caller.by, text, urgent, at }
      const { eventId } = yield* Effect.catch(this.inbox.ask({ _tag: "Received", message }), refuse)
      const { worker } = this
      if (worker === undefined || worker.snapshot.state === "Stopped") {
        return { eventId, message: `Kept for ${fullName}, which is stopped. Start it: agentd start ${fullName}` }
      }
      yield* worker.tell({ _tag: "WorkArrived", messageId }, eventId)
      if (urgent) yield* worker.tell({ _tag: "UrgentMessage", messageId }, eventId)
      return { eventId, message: urgent ? `${fullName} is told now.` : `In the inbox of ${fullName}.` }
      // what is in the inbox wakes its agent, even if the sender goes away meanwhile
    }).pipe(Effect.uninterruptible)

  readonly interrupt = (_caller: Caller): Command =>
    Effect.gen({ self: this }, function* () {
      const { worker } = this
      const fullName = this.around.fullName()
      const state = worker?.snapshot.state ?? "Stopped"
      if (worker === undefined || (state !== "Running" && state !== "Spawning")) {
        return yield* new CommandRefused({
          message: `${fullName} has no run to interrupt: it is ${state}.`,
          remedy: `See what it does: agentd why ${fullName}`
        })
      }
      const { eventId } = yield* Effect.catch(worker.ask({ _tag: "UrgentMessage", messageId: null }), refuse)
      return { eventId, message: `The run of ${fullName} is being ended; its work is dropped.` }
    })
}

/** An agent as its record says it stands. It lives until the scope closes, which ends its run. */
export const make = Effect.fnUntraced(function* (
  around: Surroundings,
  record: AgentRecord
): Effect.fn.Return<AgentTree, never, Scope.Scope> {
  const live = new Live(around, record, yield* Effect.scope)
  live.slot = yield* RunSlot.make(live.sink)
  const kind = yield* MachineActor.kind({
    machine: Inbox.Inbox,
    log: around.log,
    deadLetters: around.deadLetters,
    perform: () => Effect.void,
    activities: {}
  })
  live.inbox = yield* kind.make({
    address: `${around.conversation}/${inboxAddress(record.name)}`,
    actor: inboxAddress(record.name),
    stream: around.conversation,
    snapshot: record.inbox
  })
  yield* live.nest.add(live.inbox)
  if (record.worker !== undefined && record.broken === undefined) yield* live.install(record.worker)
  return {
    name: record.name,
    config: around.config,
    worker: () => live.worker?.snapshot,
    inbox: () => live.inbox.snapshot,
    child: live.nest.child,
    start: live.start,
    stop: live.stop,
    restart: (caller) => Effect.andThen(live.stop(caller, "restart"), live.start(caller)),
    send: live.send,
    interrupt: live.interrupt
  }
})
