/**
 * RunEvents: what a run tells, handed to whom it concerns: worker, turn, calls,
 * meter, the log's lazy kinds, and whoever watches.
 *
 * Guarantees: a turn ends only when each of its calls has its result; the worker
 * hears of a run's end only when its turn has ended; where a backend knows no
 * turns, its whole run is one.
 */
import { Clock, Duration, Effect } from "effect"
import type { Run, RunEvent } from "../backends/Backend.ts"
import type { AgentConfig } from "../config/AgentConfig.ts"
import type { AgentReport } from "../domain/AgentPort.ts"
import type { Outcome } from "../backends/Outcome.ts"
import type * as TurnMachine from "./TurnMachine.ts"
import type { EventLog } from "../event-log/EventLog.ts"
import type { Calls } from "./Calls.ts"
import { NOT_ITS_FAULT } from "./ConversationRecovery.ts"
import * as Excerpt from "./Excerpt.ts"
import { known } from "./Inbox.ts"
import type { LiveRun } from "./LiveRun.ts"
import type { UsageMeter } from "./UsageMeter.ts"
import { Output } from "./Output.ts"
import { workerAddress } from "./AgentRecovery.ts"
import type { RunRequest, RunSink } from "./RunSupervisor.ts"
import type { TurnActor } from "./TurnActor.ts"
import type { InboxActor, WorkerActor } from "./WorkerActor.ts"

type Event<T extends RunEvent["_tag"]> = Extract<RunEvent, { _tag: T }>

/** Whoever watches runs from outside: the board. */
export type Watched =
  | RunEvent
  | {
      readonly _tag: "Begun"
      readonly cwd: string
      readonly turns: boolean
      readonly pid?: number | undefined
      readonly sessionId?: string | undefined
    }

export interface Surroundings {
  readonly agent: string
  readonly conversation: string
  readonly log: EventLog["Service"]
  readonly config: () => AgentConfig
  readonly live: LiveRun
  readonly calls: Calls
  readonly meter: UsageMeter
  readonly turn: () => TurnActor
  readonly inbox: () => InboxActor
  readonly worker: () => WorkerActor | undefined
  readonly report: (report: AgentReport) => Effect.Effect<void>
  readonly watched: (runId: string, event: Watched) => Effect.Effect<void>
}

/** Longest answer of a turn that is kept, bytes. */
const MAX_ANSWER = 256 * 1024
const MAX_LINES = 128 * 1024
/** A sign of life is passed on at most this often, ms. */
const SIGN = 1_000

const WHY: { readonly [tag in Outcome["_tag"]]: string } = {
  Success: "",
  Error: "exit",
  Timeout: "timeout",
  Uncounted: "uncounted",
  Fatal: "fatal"
}

const wordsOf = (outcome: Outcome): string => {
  switch (outcome._tag) {
    case "Success":
      return "the run ended in the midst of the turn"
    case "Timeout":
      return "the run took longer than its time limit"
    case "Uncounted":
      return `the run ended: ${outcome.reason}`
    default:
      return outcome.detail
  }
}

/** What a run says that it spent; what is no amount counts for nothing. */
const amount = (said: number): number => (Number.isFinite(said) && said > 0 ? said : 0)

interface Usage {
  readonly inputTokens: number
  readonly outputTokens: number
  readonly usd: number
}
const NONE: Usage = { inputTokens: 0, outputTokens: 0, usd: 0 }

export class RunEvents implements RunSink {
  private readonly around: Surroundings
  private output: Output | undefined = undefined
  /** The lines of a command, from the first: its answer. */
  private lines = ""
  private usage = NONE
  private signedAt = Number.NEGATIVE_INFINITY

  constructor(around: Surroundings) {
    this.around = around
  }

  private tellTurn(event: TurnMachine.Event): Effect.Effect<void> {
    return Effect.suspend(() => this.around.turn().tell(event))
  }

  readonly events = Effect.fnUntraced(
    { self: this },
    function* (this: RunEvents, run: Run, request: RunRequest, events: ReadonlyArray<RunEvent>) {
      let deltas: Array<Event<"Delta">> = []
      let made: Array<Event<"ToolCall">> = []
      for (const event of events) {
        if (event._tag !== "Delta" && deltas.length > 0) yield* this.write(run, deltas.splice(0))
        if (event._tag !== "ToolCall" && made.length > 0) yield* this.called(run, request, made.splice(0))
        if (event._tag === "Delta") deltas.push(event)
        else if (event._tag === "ToolCall") made.push(event)
        else yield* this.take(run, request, event)
        if (event._tag !== "Delta") yield* this.around.watched(run.runId, event)
      }
      if (deltas.length > 0) yield* this.write(run, deltas)
      if (made.length > 0) yield* this.called(run, request, made)
      yield* this.sign
    }
  )

  private take(run: Run, request: RunRequest, event: RunEvent): Effect.Effect<void> {
    const { calls, meter } = this.around
    switch (event._tag) {
      case "Started":
        return this.started(run, request, event)
      case "ApprovalRequested":
        return calls.asked(run, event)
      case "ToolStarted":
      case "ToolProgress":
        return calls.progress(run, event)
      case "ToolResult":
        return calls.result(run, event)
      case "Usage": {
        const inputTokens = amount(event.inputTokens)
        const outputTokens = amount(event.outputTokens)
        const usd = amount(event.usd ?? 0)
        this.usage = {
          inputTokens: this.usage.inputTokens + inputTokens,
          outputTokens: this.usage.outputTokens + outputTokens,
          usd: this.usage.usd + usd
        }
        return meter.use(this.around.live.turnId ?? "", { tokens: inputTokens + outputTokens, usd })
      }
      case "Notice":
        return this.lazily("run.notice", { runId: run.runId, text: Excerpt.text(event.text, MAX_LINES) })
      case "TurnCompleted":
        return this.turnEnded(event.turnId, "unknown", (usage) => ({
          _tag: "response_done",
          turnId: event.turnId,
          finalOutput: Excerpt.text(event.output, MAX_ANSWER),
          usage
        }))
      case "TurnInterrupted":
        return this.turnEnded(event.turnId, "cancelled", () => ({
          _tag: "interrupt",
          turnId: event.turnId,
          by: "the agent",
          reason: "the agent ended the turn",
          partialOutput: Excerpt.text(event.output, MAX_ANSWER)
        }))
      case "TurnError":
        // its run is about to end for it
        if (this.around.live.turnId === event.turnId) this.around.live.ending = true
        return this.turnEnded(event.turnId, "unknown", () => ({
          _tag: "stream_error",
          turnId: event.turnId,
          errorType: event.errorType,
          message: event.message,
          retry: event.retry && this.isOffered(event.errorType)
        }))
      default: // the turn began when it was given to the run
        return Effect.void
    }
  }

  /** The first turn is durable before the worker counts the run as started. */
  private readonly started = Effect.fnUntraced(
    { self: this },
    function* (this: RunEvents, run: Run, { backend, spec }: RunRequest, { pid, sessionId }: Event<"Started">) {
      const { agent, live, watched } = this.around
      if (live.run === run) return
      const worker = this.around.worker()
      const data = worker?.snapshot.data
      live.run = run
      live.turns = backend.turns
      live.begin(spec.turnId)
      this.usage = NONE
      yield* watched(run.runId, { _tag: "Begun", cwd: spec.cwd, turns: backend.turns, pid, sessionId })
      const event: TurnMachine.Event = {
        _tag: "start_turn",
        turnId: spec.turnId,
        agentId: agent,
        input: spec.prompt,
        source: "queue",
        messageIds: data?.runId === run.runId ? data.messageIds : [],
        graceMillis: Duration.toMillis(this.around.config().interruptGrace),
        at: yield* Clock.currentTimeMillis
      }
      yield* this.around
        .turn()
        .ask(event)
        .pipe(
          Effect.catchTags({
            RuneRefused: ({ message }) =>
              worker?.tell({
                _tag: "FatalError",
                message: `the turn cannot be kept: ${message}`,
                remedy: "Shorten the agent's instructions or prompt in agentd.jsonc, then start it again."
              }) ?? Effect.void,
            Refused: () => Effect.void,
            // a log that takes nothing more ends the daemon by itself
            StorageError: () => Effect.void
          }),
          Effect.catch(() => this.tellTurn(event))
        )
      yield* (
        worker?.tell({
          _tag: "SessionStarted",
          runId: run.runId,
          seq: Math.max(1, data?.sessionSeq ?? 1),
          pid,
          sessionId
        }) ?? Effect.void
      )
    }
  )

  private readonly called = Effect.fnUntraced(
    { self: this },
    function* (this: RunEvents, run: Run, { backend }: RunRequest, events: ReadonlyArray<Event<"ToolCall">>) {
      const { calls, live, meter } = this.around
      const { turnId } = live
      if (turnId === undefined) return
      live.pause()
      const callIds = yield* calls.begin(run, turnId, events, backend.runsTools === true)
      yield* this.tellTurn({ _tag: "tool_calls_received", turnId, callIds })
      yield* meter.use(turnId, { toolCalls: callIds.length })
    }
  )

  /** Whether what an error ended is offered again by agentd: what a channel or a plan asked is theirs to ask again. */
  private isOffered(errorType: string): boolean {
    const { messageIds } = this.around.turn().snapshot.data
    const asked = known(this.around.inbox().snapshot.data).filter(({ messageId }) => messageIds.includes(messageId))
    return NOT_ITS_FAULT.has(errorType) || !asked.some(({ alone }) => alone === true)
  }

  /** The calls first, then the turn: no result comes after its end. */
  private readonly turnEnded = Effect.fnUntraced(
    { self: this },
    function* (
      this: RunEvents,
      turnId: string,
      calls: "cancelled" | "unknown",
      eventOf: (usage: Usage) => TurnMachine.Event
    ) {
      const { live } = this.around
      if (live.turnId !== turnId) return
      yield* this.around.calls.close(
        turnId,
        calls,
        calls === "cancelled" ? "its turn was interrupted" : "no result came"
      )
      yield* this.tellTurn(eventOf(this.usage))
      this.usage = NONE
      live.end()
    }
  )

  readonly exited = Effect.fnUntraced(
    { self: this },
    function* (this: RunEvents, { spec }: RunRequest, outcome: Outcome) {
      const { live, watched } = this.around
      const { turnId } = live
      const rest = this.output?.end() ?? []
      this.output = undefined
      if (rest.length > 0) yield* this.around.log.appendLazy(rest)
      if (turnId !== undefined) {
        const done = outcome._tag === "Success" && !live.turns
        yield* this.turnEnded(turnId, "unknown", (usage) =>
          done
            ? { _tag: "response_done", turnId, finalOutput: Excerpt.text(this.lines, MAX_ANSWER), usage }
            : {
                _tag: "stream_error",
                turnId,
                errorType: WHY[outcome._tag],
                message: wordsOf(outcome),
                retry: this.isOffered(WHY[outcome._tag])
              }
        )
      }
      // not where a run starts: what it says first comes before it counts as started
      this.lines = ""
      live.gone()
      yield* watched(spec.runId, { _tag: "Exited", outcome })
      yield* this.around.worker()?.tell({ _tag: "SessionExited", runId: spec.runId, outcome }) ?? Effect.void
    }
  )

  private write(run: Run, deltas: ReadonlyArray<Event<"Delta">>): Effect.Effect<void> {
    const { agent, config, conversation, live, log } = this.around
    const said = deltas.filter(({ stream }) => stream === "assistant")
    const lines = deltas.filter(({ stream }) => stream !== "assistant")
    if (!live.turns) {
      for (const { stream, text } of lines) if (stream === "stdout") this.lines += `${text}\n`
      if (this.lines.length > 2 * MAX_ANSWER) this.lines = Excerpt.text(this.lines, MAX_ANSWER)
    }
    const drafts = []
    if (lines.length > 0) {
      this.output ??= new Output(conversation, workerAddress(agent), run.runId, config().output)
      drafts.push(...this.output.take(lines))
    }
    if (said.length > 0 && live.turnId !== undefined) {
      const content = Excerpt.text(said.map(({ text }) => text).join(""), MAX_LINES)
      live.say(content)
      const { turnId } = live
      drafts.push({
        stream: conversation,
        kind: "turn.assistant_delta",
        actor: `turn/${agent}`,
        from: "streaming",
        to: "streaming",
        trigger: "assistant_delta",
        payload: { turn_id: turnId, content, event: { _tag: "assistant_delta", turnId, content } }
      })
    }
    return log.appendLazy(drafts)
  }

  private lazily(kind: string, payload: { readonly [key: string]: unknown }): Effect.Effect<void> {
    const { agent, conversation, log } = this.around
    return log.appendLazy([{ stream: conversation, kind, actor: workerAddress(agent), payload }])
  }

  /** At most one sign of life a second. */
  private readonly sign: Effect.Effect<void> = Effect.suspend(() => {
    const { agent, conversation, live, log, report } = this.around
    const { turnId } = live
    if (turnId === undefined) return Effect.void
    return Effect.flatMap(Clock.currentTimeMillis, (now) => {
      if (now - this.signedAt < SIGN) return Effect.void
      this.signedAt = now
      return Effect.flatMap(log.head, (eventId) =>
        report({ _tag: "Active", conversation, agent, eventId, cause: null, at: now, turnId })
      )
    })
  })
}
