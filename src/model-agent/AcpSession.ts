/**
 * AcpSession: one conversation of the model agent with its client: a run of the engine whose events become the
 * protocol's messages.
 *
 * Guarantees: messages are sent in the order of the engine's events. Each prompt is answered once, after every message
 * of its turn. The usage of the last request comes with the answer, so that a budget does not interrupt finished work.
 */
import type {
  AgentContext,
  PromptRequest,
  PromptResponse,
  RequestPermissionRequest,
  RequestPermissionResponse,
  SessionUpdate
} from "@agentclientprotocol/sdk"
import { RequestError } from "@agentclientprotocol/sdk"
import { Clock, Deferred, Effect, Exit, Schema, type Scope, Stream } from "effect"
import type { BackendError, Decision, RunEvent } from "../runs/Backend.ts"
import { Denial, type Fault, GOES_ON, KEY } from "../runs/acp/AgentdMeta.ts"
import * as Messages from "./AcpMessages.ts"
import type { ModelRun } from "./ModelEngine.ts"

export interface Options {
  readonly run: ModelRun
  readonly client: AgentContext
}

type Ask = Extract<RunEvent, { readonly _tag: "ApprovalRequested" }>
type Call = Extract<RunEvent, { readonly _tag: "ToolCall" }>

/** While a turn is active, the client hears from the agent at least this often. */
const LIVES = "30 seconds"
const ENDS: ReadonlySet<RunEvent["_tag"]> = new Set(["TurnCompleted", "TurnInterrupted", "TurnError"])
const INTERNAL = -32603
const INVALID = -32600
const AUTH = -32000

const decodeDenial = Schema.decodeUnknownOption(Schema.Struct({ _meta: Schema.Struct({ [KEY]: Denial }) }))

/** A request that failed, with its class. */
export const failure = (error: Fault, more: object = {}): RequestError =>
  new RequestError(error.class === "auth" ? AUTH : INTERNAL, error.message, {
    _meta: { [KEY]: { ...more, error } }
  })

/** The conversation or its tools cannot be opened, or an input is refused. */
export const refusal = ({ fatal, message, remedy }: BackendError): RequestError => {
  const detail = `${message}; ${remedy}`
  return failure({
    class: "start",
    message: fatal ? message : detail,
    retry: true,
    goesOn: false,
    outcome: fatal ? { _tag: "Fatal", detail: message, remedy } : { _tag: "Error", detail }
  })
}

export class AcpSession {
  readonly id: string
  private readonly run: ModelRun
  private readonly client: AgentContext
  private turns = 0
  /** Number of the current answer of the model: its text is one message. */
  private message = 0
  private readonly gone = Deferred.makeUnsafe<void>()
  private answer: Deferred.Deferred<PromptResponse, RequestError> | undefined

  constructor({ client, run }: Options) {
    this.id = run.session.id
    this.run = run
    this.client = client
  }

  /**
   * Sends the engine's events to the client until the run has ended. If a signal ends the program, the open prompt stays
   * unanswered: the client then knows that the process has ended in its turn.
   */
  get follow(): Effect.Effect<void, never, Scope.Scope> {
    return Stream.runForEachArray(this.run.events, (events) => this.batch(events)).pipe(
      Effect.onExit((exit) =>
        this.answer === undefined || Exit.hasInterrupts(exit)
          ? Effect.void
          : Deferred.fail(this.answer, new RequestError(INTERNAL, "the conversation has ended"))
      ),
      Effect.ensuring(Deferred.succeed(this.gone, undefined))
    )
  }

  /** Shows the conversation from its beginning. */
  get replay(): Effect.Effect<void> {
    return Effect.forEach(Messages.replayOf(this.run.session.history()), (update) => this.send(update), {
      discard: true
    }).pipe(Effect.andThen(this.send({ sessionUpdate: "available_commands_update", availableCommands: [] })))
  }

  readonly prompt = Effect.fnUntraced({ self: this }, function* (this: AcpSession, { prompt }: PromptRequest) {
    const answer = yield* Deferred.make<PromptResponse, RequestError>()
    const turnId = `turn-${++this.turns}`
    this.message += 1
    yield* Effect.mapError(
      this.run.send(Messages.inputOf(turnId, prompt)),
      ({ message, remedy }) => new RequestError(INVALID, `${message}; ${remedy}`)
    )
    this.answer = answer
    const lives = Effect.forever(
      Effect.andThen(Effect.sleep(LIVES), this.send({ sessionUpdate: "session_info_update" }))
    )
    return yield* Effect.raceFirst(Deferred.await(answer), lives)
  })

  get cancel(): Effect.Effect<void> {
    return this.run.interruptTurn
  }

  readonly cancelCall = (callId: string): Effect.Effect<void> => this.run.cancelCall(callId)

  /** Completes when the run has ended and its last message has been sent. */
  get isOver(): Effect.Effect<void> {
    return Deferred.await(this.gone)
  }

  get end(): Effect.Effect<void> {
    return this.run.end
  }

  private send(update: SessionUpdate): Effect.Effect<void> {
    return Effect.ignore(Effect.tryPromise(() => this.client.notify("session/update", { sessionId: this.id, update })))
  }

  private batch(events: ReadonlyArray<RunEvent>): Effect.Effect<void, never, Scope.Scope> {
    const end = events.findIndex(({ _tag }) => ENDS.has(_tag))
    if (end < 0) return this.tell(events)
    const before = events.slice(0, end)
    const rest = before.findLastIndex(({ _tag }) => _tag !== "Usage") + 1
    return this.tell(before.slice(0, rest)).pipe(
      Effect.andThen(this.over(before.slice(rest))),
      Effect.andThen(Effect.suspend(() => this.batch(events.slice(end + 1))))
    )
  }

  private tell(events: ReadonlyArray<RunEvent>): Effect.Effect<void, never, Scope.Scope> {
    const asks = events.filter((event): event is Ask & RunEvent => event._tag === "ApprovalRequested")
    return Effect.forEach(
      events,
      (event): Effect.Effect<void, never, Scope.Scope> => {
        if (event._tag === "ToolCall") {
          this.message += 1
          return this.called(
            event,
            asks.find(({ callId }) => callId === event.callId)
          )
        }
        if (event._tag === "ApprovalRequested") return this.asks(event)
        if (event._tag === "GoesOn") return this.goesOn(event.go)
        // an answer that starts over is another message, and so is one that follows a compaction
        if (event._tag === "Notice") this.message += 1
        const update = Messages.updateOf(event, this.message)
        return update === undefined ? Effect.void : this.send(update)
      },
      { discard: true }
    )
  }

  private called(call: Call, asks: Ask | undefined): Effect.Effect<void> {
    return this.send(Messages.toolCall(call, asks))
  }

  /** Asks for an approval, and passes the decision on when it comes. */
  private asks({ callId }: Ask): Effect.Effect<void, never, Scope.Scope> {
    const request: RequestPermissionRequest = {
      sessionId: this.id,
      toolCall: { toolCallId: callId },
      options: [
        { optionId: "allow", name: "Allow", kind: "allow_once" },
        { optionId: "deny", name: "Deny", kind: "reject_once" }
      ]
    }
    return Effect.tryPromise(() => this.client.request("session/request_permission", request)).pipe(
      Effect.matchEffect({
        onFailure: () => this.run.answer(callId, { behavior: "deny", message: "the client could not be asked" }),
        onSuccess: (response) => this.decided(callId, response)
      }),
      // at once, so that the question is sent before the next event
      Effect.forkScoped({ startImmediately: true }),
      Effect.asVoid
    )
  }

  /** Asks whether the turn goes on. A client that does not know the question lets it. */
  private goesOn(go: Effect.Effect<void>): Effect.Effect<void, never, Scope.Scope> {
    return Effect.tryPromise(() => this.client.request(GOES_ON, { sessionId: this.id })).pipe(
      Effect.ignore,
      Effect.andThen(go),
      Effect.forkScoped({ startImmediately: true }),
      Effect.asVoid
    )
  }

  private decided(callId: string, response: RequestPermissionResponse): Effect.Effect<void> {
    const { outcome } = response
    if (outcome.outcome === "cancelled") return this.run.cancelCall(callId)
    if (outcome.optionId === "allow") return this.run.answer(callId, { behavior: "allow" })
    const denial = decodeDenial(response)
    const { interrupt = false, message } =
      denial._tag === "Some" ? denial.value._meta[KEY] : { message: "the user denied it" }
    const decision: Decision = { behavior: "deny", message, ...(interrupt ? { interrupt } : {}) }
    return this.run.answer(callId, decision)
  }

  /** Answers the prompt: its turn has ended. */
  private over(owed: ReadonlyArray<RunEvent>): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      const { answer } = this
      const end = this.run.ended()
      this.answer = undefined
      if (answer === undefined || end === undefined) return
      const now = yield* Clock.currentTimeMillis
      yield* end._tag === "Failed"
        ? Deferred.fail(answer, failure(Messages.faultOf(end, now), Messages.usageOf(owed)))
        : Deferred.succeed(answer, Messages.answerOf(end, owed))
    })
  }
}
