/**
 * Calls: the tool calls of one agent that have no result yet, each an actor.
 *
 * Guarantees: every call that was told of gets its one result, whatever becomes of
 * its run: closing a turn's calls waits for all of them. A question outlives the
 * daemon: answered late, the answer holds for the same call when it is made again.
 */
import { Deferred, Duration, Effect, type Scope } from "effect"
import type { DeadLetters } from "../event-actor/DeadLetters.ts"
import type { Kind } from "../event-actor/MachineActor.ts"
import * as DynamicSupervisor from "../supervision/DynamicSupervisor.ts"
import type { Decision, Run, RunEvent } from "../backends/Backend.ts"
import type { AgentConfig } from "../config/AgentConfig.ts"
import { type CallInfo, type Caller, CommandRefused, type Done } from "../domain/Messages.ts"
import * as ToolMachine from "./ToolMachine.ts"
import { type EventLog, StorageError } from "../event-log/EventLog.ts"
import * as Approval from "./Approval.ts"
import { answersOf, callRow, tooLate } from "./CallRow.ts"
import { excerpt, text as excerptText } from "./Excerpt.ts"
import { OpenCalls } from "./OpenCalls.ts"
import { type Answer, type Grant, type OpenCall, type Recovered, type Summary, waits } from "./OpenCall.ts"
import { toResult } from "./ToolResult.ts"
import * as ToolActor from "./ToolActor.ts"

type Event<T extends RunEvent["_tag"]> = Extract<RunEvent, { _tag: T }>

export interface Surroundings {
  readonly conversation: string
  readonly project: () => string
  readonly agent: string
  readonly log: EventLog["Service"]
  readonly deadLetters: DeadLetters["Service"]
  readonly config: () => AgentConfig
  /** All calls that were open have their results. */
  readonly finished: (turnId: string, results: ReadonlyArray<Summary>) => Effect.Effect<void>
}

/** Bytes. */
const MAX_ARGUMENTS = 128 * 1024
const MAX_NAME = 200
const MAX_CHUNK = 128 * 1024
/** Results that are told with the end of a turn's calls; the log has them all. */
const MAX_TOLD = 1_000
/** Calls whose end is remembered, for those who answer too late. */
const MAX_ENDED = 200

export class Calls {
  readonly nest: DynamicSupervisor.DynamicSupervisor
  private readonly around: Surroundings
  private readonly scope: Scope.Scope
  private kind!: Kind<ToolMachine.State, ToolMachine.Event, ToolMachine.Data>
  private readonly open = new OpenCalls()
  private readonly results: Array<Summary> = []
  private readonly ended = new Map<string, string>()
  private readonly grants: Map<string, Grant>
  private count = 0

  private constructor(around: Surroundings, grants: ReadonlyMap<string, Grant>, scope: Scope.Scope) {
    this.around = around
    this.grants = new Map(grants)
    this.scope = scope
    this.nest = DynamicSupervisor.make({ name: "calls", strategy: "one_for_one", intensity: 10, period: "30 seconds" })
  }

  /** `grants`: answers that came when their run was over, by the call's key. */
  static readonly make = Effect.fnUntraced(function* (around: Surroundings, grants: ReadonlyMap<string, Grant>) {
    const calls = new Calls(around, grants, yield* Effect.scope)
    calls.kind = yield* ToolActor.kind(around.log, around.deadLetters, {
      answer: (callId, decision) => calls.pass(callId, decision),
      stop: (callId) =>
        Effect.suspend(() => {
          const origin = calls.open.get(callId)?.origin
          return origin === undefined ? Effect.void : origin.run.cancelCall(origin.id)
        }),
      ended: (callId, status) => calls.settle(callId, status)
    })
    return calls
  })

  private readonly add = Effect.fnUntraced(
    { self: this },
    function* (this: Calls, of: Omit<OpenCall, "actor" | "ended">, snapshot: ToolActor.Snapshot) {
      const { agent, conversation } = this.around
      const name = ToolActor.addressOf(agent, of.callId)
      const place = { address: `${conversation}/${name}`, actor: name, stream: conversation, snapshot }
      const call: OpenCall = { ...of, actor: yield* this.kind.make(place), ended: Deferred.makeUnsafe() }
      this.open.add(call)
      yield* this.nest.add(call.actor)
      return call
    }
  )

  /** The calls of one answer, in order; answers with their ids. */
  readonly begin = Effect.fnUntraced(
    { self: this },
    function* (this: Calls, run: Run, turnId: string, events: ReadonlyArray<Event<"ToolCall">>, ours: boolean) {
      const { approvals, maxToolTimeout, toolTimeout } = this.around.config()
      const made: Array<OpenCall> = []
      for (const event of events) {
        const input = excerpt(event.arguments, MAX_ARGUMENTS)
        const tool = excerptText(event.tool, MAX_NAME)
        const key = Approval.keyOf(event.tool, event.arguments)
        const callId = `${run.runId.slice(-8)}-${++this.count}`
        const call = yield* this.add(
          {
            callId,
            turnId,
            tool,
            arguments: JSON.stringify(input) ?? "null",
            readOnly: event.readOnly,
            key,
            origin: { run, id: event.callId },
            asks: false,
            reason: null,
            questions: [],
            answered: false,
            grant: undefined
          },
          ToolActor.fresh
        )
        made.push(call)
        yield* call.actor.tell({
          _tag: "call_requested",
          callId,
          turnId,
          toolName: tool,
          arguments: input,
          digest: key,
          timeout: Duration.toMillis(ours ? toolTimeout : maxToolTimeout),
          approvalTimeout: Duration.toMillis(approvals.timeout)
        })
      }
      return made.map(({ callId }) => callId)
    }
  )

  /** It asks: the policy answers, or a person will. */
  readonly asked = Effect.fnUntraced(
    { self: this },
    function* (this: Calls, run: Run, { always, callId: id, questions = [], reason }: Event<"ApprovalRequested">) {
      const call = this.open.of(run, id)
      if (call === undefined) return yield* run.answer(id, { behavior: "deny", message: "no turn has such a call" })
      if (call.asks) return
      call.asks = true
      const { actor, callId } = call
      const granted = this.grants.get(call.key)
      const verdict = Approval.decide(this.around.config().approvals, {
        ...call,
        asksAlways: always === true,
        asksToChoose: questions.length > 0
      })
      this.grants.delete(call.key)
      if (granted !== undefined && verdict._tag === "Ask") {
        const policyReason = `approved before by ${granted.by}`
        return yield* actor.tell({ _tag: "auto_approved", callId, policyReason, answers: granted.answers ?? undefined })
      }
      if (verdict._tag === "Run") {
        return yield* actor.tell({ _tag: "auto_approved", callId, policyReason: verdict.reason })
      }
      call.reason = reason === "" ? verdict.reason : reason
      call.questions = questions
      for (const other of [...this.open.left].filter(({ key }) => key === call.key)) {
        // the same question from before the restart: one is enough, and whoever reads along sees it go first
        yield* other.actor.tell({ _tag: "cancelled", callId: other.callId, reason: `asked again as ${callId}` })
        yield* Deferred.await(other.ended)
      }
      const asks = questions.length === 0 ? {} : { questions }
      yield* actor.tell({ _tag: "requires_approval", callId, policyReason: call.reason, ...asks })
      if (verdict._tag === "Deny") {
        yield* actor.tell({ _tag: "denied", callId, approver: "approvals.mode", reason: verdict.reason })
      }
    }
  )

  /** It runs; one that was never asked about is so by its own policy. */
  private started(call: OpenCall): Effect.Effect<void> {
    if (call.asks) return Effect.void
    call.asks = true
    return call.actor.tell({ _tag: "no_approval_needed", callId: call.callId })
  }

  readonly progress = (run: Run, event: Event<"ToolProgress"> | Event<"ToolStarted">): Effect.Effect<void> =>
    Effect.suspend(() => {
      const call = this.open.of(run, event.callId)
      if (call === undefined) return Effect.void
      if (event._tag === "ToolStarted") return this.started(call)
      const { stream } = event
      const chunk = excerptText(event.chunk, MAX_CHUNK)
      const actor = ToolActor.addressOf(this.around.agent, call.callId)
      const payload = {
        call_id: call.callId,
        stream,
        chunk,
        event: { _tag: "progress_update", callId: call.callId, stream, chunk }
      }
      return Effect.andThen(
        this.started(call),
        this.around.log.appendLazy([
          {
            stream: this.around.conversation,
            kind: "tool.progress",
            actor,
            from: "executing",
            to: "executing",
            trigger: "progress_update",
            payload
          }
        ])
      )
    })

  readonly result = (run: Run, { callId: id, output, status }: Event<"ToolResult">): Effect.Effect<void> =>
    Effect.suspend(() => {
      const call = this.open.of(run, id)
      return call === undefined ? Effect.void : this.end(call, status, output)
    })

  private end(call: OpenCall, status: ToolMachine.Status, output: unknown): Effect.Effect<void> {
    const events = toResult({ ...call, waits: waits(call) }, status, output)
    call.asks = true
    return Effect.forEach(events, (event) => call.actor.tell(event), { discard: true })
  }

  /** Ends what is left of a turn's calls and waits until each has its result. */
  readonly close = Effect.fnUntraced(
    { self: this },
    function* (this: Calls, turnId: string, how: "cancelled" | "unknown", reason: string) {
      const left = this.open.values().filter((call) => call.turnId === turnId && call.origin !== undefined)
      yield* Effect.forEach(left, (call) => this.end(call, how, reason), { discard: true })
      yield* Effect.forEach(left, (call) => Deferred.await(call.ended), { discard: true })
    }
  )

  /** Questions of a turn that is being interrupted ask no more. */
  readonly withdraw = (turnId: string): Effect.Effect<void> =>
    Effect.forEach(
      this.open
        .values()
        .filter(({ actor, turnId: of }) => of === turnId && actor.snapshot.state === "awaiting_approval"),
      ({ actor, callId }) => actor.tell({ _tag: "cancelled", callId, reason: "its turn was interrupted" }),
      { discard: true }
    )

  /** Waits for the results of what an earlier daemon left running; questions go on. */
  readonly orphans = (turnId: string): Effect.Effect<void> =>
    Effect.forEach(
      this.open
        .values()
        .filter(
          ({ actor, origin, turnId: of }) =>
            of === turnId && origin === undefined && actor.snapshot.state !== "awaiting_approval"
        ),
      ({ ended }) => Deferred.await(ended),
      { discard: true }
    )

  /** The agent ends: nobody will take an answer any more. */
  readonly abandon = (reason: string): Effect.Effect<void> =>
    Effect.suspend(() => {
      const left = this.open.values()
      return Effect.andThen(
        Effect.forEach(left, ({ actor, callId }) => actor.tell({ _tag: "cancelled", callId, reason }), {
          discard: true
        }),
        Effect.forEach(left, ({ ended }) => Deferred.await(ended), { discard: true })
      )
    })

  /** Its result is durable: the last one of a turn lets the turn go on. */
  private settle(callId: string, status: ToolMachine.Status): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      const call = this.open.get(callId)
      if (call === undefined) return
      const { origin, turnId } = call
      // whoever asked waits no longer than the question is open
      if (origin !== undefined && waits(call)) {
        call.answered = true
        const message = status === "timeout" ? "nobody answered in time" : "the question was called off"
        yield* origin.run.answer(origin.id, { behavior: "deny", message })
      }
      // from here on nothing waits: whoever finds it gone finds its turn told, too
      const isLast = this.open.remove(call)
      this.ended.set(callId, `${call.tool} ended: ${status}`)
      if (this.ended.size > MAX_ENDED) this.ended.delete(this.ended.keys().next().value!)
      if (origin !== undefined) {
        if (this.results.length < MAX_TOLD) this.results.push({ call_id: callId, tool: call.tool, status })
        if (isLast) yield* this.around.finished(turnId, this.results.splice(0))
      }
      yield* Deferred.succeed(call.ended, undefined)
      // from outside: an actor cannot wait for its own end
      const gone = Effect.andThen(
        this.nest.remove(call.actor.id),
        Effect.sync(() => call.actor.close())
      )
      yield* Effect.forkIn(gone, this.scope)
    })
  }

  private pass(callId: string, decision: Decision): Effect.Effect<ToolActor.Taken> {
    return Effect.suspend((): Effect.Effect<ToolActor.Taken> => {
      const call = this.open.get(callId)
      if (call === undefined) return Effect.succeed({ over: true })
      const { grant, key, origin } = call
      if (origin === undefined) {
        if (grant === undefined) return Effect.succeed({ over: true })
        this.grants.set(key, grant)
        return Effect.succeed({ over: true, grant: grant.by })
      }
      call.answered = true
      return Effect.as(call.asks ? origin.run.answer(origin.id, decision) : Effect.void, { over: false })
    })
  }

  /** A person's answer; durable when it answers. */
  readonly answer = Effect.fnUntraced(
    { self: this },
    function* (this: Calls, callId: string, said: Answer, { by }: Caller) {
      const call = this.open.get(callId)
      if (call === undefined) return yield* this.tooLate(callId)
      const { behavior, reason } = said
      const answers = call.actor.snapshot.state === "awaiting_approval" ? answersOf(call, said) : undefined
      if (answers instanceof CommandRefused) return yield* answers
      if (behavior === "allow" && call.origin === undefined) call.grant ??= { by, answers: answers ?? null }
      const event: ToolMachine.Event =
        behavior === "allow"
          ? { _tag: "approved", callId, approver: by, ...(answers === undefined ? {} : { answers }) }
          : { _tag: "denied", callId, approver: by, reason: reason.trim() || `denied by ${by}` }
      const { eventId } = yield* Effect.catch(
        call.actor.ask(event),
        (error): Effect.Effect<never, StorageError | CommandRefused> =>
          Effect.fail(error instanceof StorageError ? error : this.tooLate(callId))
      )
      const what =
        behavior === "deny" ? "denied" : answers === undefined ? "approved" : `answered: ${answers.join("; ")}`
      const late =
        call.origin === undefined && behavior === "allow"
          ? " Its run was over already: the approval holds when the agent asks the same again."
          : ""
      const done: Done = { eventId, message: `${call.tool} is ${what}.${late}` }
      return done
    }
  )

  private tooLate(callId: string): CommandRefused {
    return tooLate(callId, this.ended.get(callId), this.open.get(callId)?.actor.snapshot.state)
  }

  /** What an earlier daemon left: what ran is unknown now, what asks goes on asking. */
  readonly recover = Effect.fnUntraced({ self: this }, function* (this: Calls, calls: ReadonlyArray<Recovered>) {
    for (const { arguments: input, callId, key, questions, reason, snapshot } of calls) {
      const { data, state } = snapshot
      const call = yield* this.add(
        {
          callId,
          turnId: data.turnId ?? "",
          tool: data.toolName ?? "",
          arguments: JSON.stringify(input) ?? "null",
          readOnly: false,
          key,
          origin: undefined,
          asks: state !== "pending_call",
          reason,
          questions,
          answered: false,
          grant: undefined
        },
        snapshot
      )
      if (state === "pending_call") yield* this.started(call)
    }
  })

  has(callId: string): boolean {
    return this.open.has(callId) || this.ended.has(callId)
  }

  list(): ReadonlyArray<CallInfo> {
    const { agent, conversation } = this.around
    const of = { agent, conversation, project: this.around.project() }
    return this.open.values().flatMap((call) => callRow(of, call, call.actor.snapshot) ?? [])
  }
}
