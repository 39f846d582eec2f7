/**
 * RunEvents: forwards a run's events to the agent's actors and to watchers, and writes the run's text and output to the
 * log after a short delay.
 *
 * Guarantees: All events go through the tool calls' actor, in order. The end of a turn ends its open calls; the end of
 * a run ends its turn. If a backend has no turns, each run is one turn.
 */
import { Clock, Duration, Effect } from "effect"
import * as Backoff from "../../core/supervision/Backoff.ts"
import { ActorStopped } from "../../core/event-actor/ActorError.ts"
import type { Place, Run, RunEvent } from "../../runs/Backend.ts"
import type { Outcome } from "../../runs/Outcome.ts"
import type { EventLog } from "../../core/event-log/EventLog.ts"
import type { Redact } from "../../core/event-log/Redact.ts"
import type { RuneDraft } from "../../core/event-log/Rune.ts"
import type { Decision } from "../../approvals/Decision.ts"
import type { Rule } from "../../approvals/Rule.ts"
import { limitIn } from "../../config/Span.ts"
import type { AgentEnvironment } from "../actors/AgentEnvironment.ts"
import { isActive, turnName, workerName } from "../machines/AgentStates.ts"
import * as Approval from "../actors/Approval.ts"
import * as Budget from "../machines/Budget.ts"
import * as LogExcerpt from "./LogExcerpt.ts"
import type { AgentLatch } from "../actors/AgentLatch.ts"
import { GatewayUsage, RENEWED } from "./GatewayUsage.ts"
import * as GoesOn from "./GoesOn.ts"
import type { KnownRun, LiveRun } from "./LiveRun.ts"
import { answerAgain, recall, type Recalling } from "./RunAdoption.ts"
import type { RunActors } from "./RunActors.ts"
import type { RunRequest, RunSink } from "./RunSupervisor.ts"
import { type KnownWords, MAX_ANSWER, MAX_LINES, RunTextLog } from "./RunTextLog.ts"
import { type KnownUsage, UsageMeter } from "./UsageMeter.ts"
import type * as Messages from "../machines/AgentMessages.ts"
import { hashOfInput, type Unhashed, type WaitingInput } from "./WaitingInputs.ts"
import * as NoAnswer from "./NoAnswer.ts"
import { MAX_INPUT } from "../../domain/CallHash.ts"
import type { News } from "../../domain/ProviderStatus.ts"
import * as ProviderOutcome from "../actors/ProviderOutcome.ts"
import * as Prompt from "../prompt/Prompt.ts"
import { rulesOf } from "../machines/ToolsState.ts"
import * as TruncatedAnswer from "../../domain/TruncatedAnswer.ts"
import { type Heard, join, read, ProcessedEvents } from "./ProcessedEvents.ts"
import { BY_ITSELF } from "../machines/UnansweredMessages.ts"

type Event<T extends RunEvent["_tag"]> = Extract<RunEvent, { _tag: T }>

/** A run's state at one point of its output. A later daemon restores it and reads the output from there. */
interface Known {
  readonly run: KnownRun
  readonly usage: KnownUsage
  readonly words: KnownWords
}

export interface Surroundings {
  readonly setting: AgentEnvironment["Service"]
  readonly log: EventLog["Service"]
  readonly redact: Redact["Service"]
  /** Opened when this daemon has read all events that an earlier daemon had read. */
  readonly adopted: AgentLatch
}

const MAX_ARGUMENTS = 128 * 1024
const MAX_NAME = 200
/** Maximum number of calls whose starts are written in one append. */
const AT_ONCE = 100
/** Delays between attempts to read the log, ms. */
const AGAIN: Backoff.Policy = { base: 100, factor: 2, cap: 10_000, jitter: 0 }
/** Events that report usage together with the end of the work, so that a budget does not interrupt finished work. */
const ENDS: ReadonlySet<RunEvent["_tag"]> = new Set([
  "TurnCompleted",
  "TurnInterrupted",
  "TurnError",
  "Usage",
  "Passed"
])
/** Before these events, gateway sums that were held back are reported. */
const TURN_ENDS: ReadonlySet<RunEvent["_tag"]> = new Set(["TurnCompleted", "TurnInterrupted", "TurnError", "Resumed"])
/** Events that are not stored in the log. For an adopted run, they are processed again. */
const ALWAYS: ReadonlySet<RunEvent["_tag"]> = new Set(["Started", "Offers", "Given", "Resumed", "Recalled", "GoesOn"])
/** Minimum time between two reports that the run is active, ms. */
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
      return "the run ended in the middle of the turn"
    case "Timeout":
      return "the run took longer than its time limit"
    case "Uncounted":
      return `the run ended: ${outcome.reason}`
    default:
      return outcome.detail
  }
}

/** The data that the run reported about the call; undefined if the run has ended. */
export const inputOf = (
  { agent, conversation }: Pick<AgentEnvironment["Service"], "agent" | "conversation">,
  live: LiveRun,
  callId: string
): Unhashed | undefined => {
  const origin = live.origin(callId)
  if (origin === undefined) return undefined
  const { folder, input = null, run, tool } = origin
  return { callId, conversation, agent, run: run.runId, tool, folder, input }
}

/** A call's complete input and hash, for an approval; undefined if the input is too large to be shown. */
const wholeOf = (setting: AgentEnvironment["Service"], live: LiveRun, callId: string): WaitingInput | undefined => {
  const input = inputOf(setting, live, callId)
  const hash = input === undefined ? undefined : hashOfInput(input)
  if (input === undefined || hash === undefined || JSON.stringify(input).length > MAX_INPUT) return undefined
  return { ...input, hash }
}

/** Decides about a call. `runRules`: the rules that a person has given for the run of the call. */
export const verdictOf = (
  setting: Pick<AgentEnvironment["Service"], "config" | "rules">,
  live: LiveRun,
  {
    asked,
    callId,
    tool
  }: { readonly asked: Event<"ApprovalRequested">; readonly callId: string; readonly tool: string },
  runRules: ReadonlyArray<Rule> = []
): Decision => {
  const { always, questions = [] } = asked
  const { folder = "", input, readOnly, voice } = live.origin(callId) ?? {}
  return Approval.decide(
    setting.config(),
    runRules.length === 0 ? setting.rules() : [...setting.rules(), ...runRules],
    {
      tool,
      arguments: input,
      folder,
      readOnly: readOnly === true,
      stood: { folders: live.standsAt(callId) },
      voice: voice === true,
      asksAlways: always === true,
      asksToChoose: questions.length > 0
    },
    live.facts
  )
}

export class RunEvents implements RunSink {
  private readonly setting: AgentEnvironment["Service"]
  private readonly log: EventLog["Service"]
  private readonly live: LiveRun
  private readonly actors: () => RunActors
  private readonly words: RunTextLog
  private readonly meter: UsageMeter
  private readonly sums = new GatewayUsage()
  private signedAt = Number.NEGATIVE_INFINITY
  /** When the run last called its model, ms since the epoch: at the turn's start or with a tool's result. */
  private askedAt = 0
  /** Text of the error that ended the newest turn. */
  private trouble = ""
  /** The part of an adopted run that is in the log; undefined for a run that this daemon started. */
  private told: ProcessedEvents | undefined = undefined
  /** How far the run's output has been read; undefined for a run that ends with the daemon. */
  private place: Place | undefined = undefined
  private runId = ""
  private readonly adopted: AgentLatch
  private readonly recalled: Recalling

  constructor({ adopted, log, redact, setting }: Surroundings, live: LiveRun, actors: () => RunActors) {
    this.adopted = adopted
    this.setting = setting
    this.log = log
    this.live = live
    this.actors = actors
    this.words = new RunTextLog({ log, redact, setting }, live)
    this.meter = new UsageMeter((model) => setting.priceOf(model))
    this.live.meter = this.meter
    this.recalled = { live, meter: this.meter, turn: () => actors().turn.state, tools: () => actors().tools.state }
    live.late = (callId, asked) => this.askedOf(live.rename(callId, true), asked, callId)
  }

  private tell(message: Messages.ToolsMessage): Effect.Effect<void> {
    return Effect.suspend(() => this.actors().tools.tell({ ...message, ...this.heard }))
  }

  /** How far the run's output has been read, for the runes that its events cause. */
  private get heard(): { readonly heard?: Heard } {
    const { said } = this.sums
    if (this.place === undefined && said === undefined) return {}
    return { heard: { run: this.runId, ...this.place, ...(said === undefined ? {} : { said }) } }
  }

  /** Position of one event in the output, for text that is written with a delay. */
  private passing(event: RunEvent): { readonly heard?: Heard } {
    return event.place === undefined ? {} : { heard: { run: this.runId, ...event.place } }
  }

  readonly events = Effect.fnUntraced(
    { self: this },
    function* (this: RunEvents, run: Run, request: RunRequest, events: ReadonlyArray<RunEvent>) {
      let deltas: Array<Event<"Delta">> = []
      let made: Array<Event<"ToolCall">> = []
      let isTold = false
      this.words.heard()
      if (this.runId !== run.runId) yield* this.begins(run, request)
      const now = yield* Clock.currentTimeMillis
      this.hears(events, now)
      if (events.some(ProviderOutcome.isAnswer)) yield* this.provider({ _tag: "answered", began: this.beganAt })
      for (const event of events) {
        if (event._tag !== "Delta") {
          if (deltas.length > 0) yield* this.words.write(deltas.splice(0))
          if (event._tag !== "ToolProgress") yield* this.words.rest
        }
        if (event._tag !== "ToolCall" && made.length > 0) yield* this.called(run, request, made.splice(0))
        const isKnown = !ALWAYS.has(event._tag) && this.told?.has(event) === true
        // report earlier usage before an event changes a state; the end of a turn reports its usage itself
        if (event.place !== undefined && event._tag !== "Delta" && !ENDS.has(event._tag)) yield* this.paid
        this.place = join(this.place, event.place)
        this.words.isPlaced ||= event.place !== undefined
        if (event._tag === "Delta") {
          // let the actors process earlier events first, so that this text follows them in the log
          if (isTold) yield* Effect.yieldNow
          isTold = false
          deltas.push(event)
        } else if (isKnown) recall(this.recalled, run, request, event)
        else if (event._tag === "ToolCall") made.push(event)
        else if (event._tag === "Offers") this.live.offer(event)
        else {
          const waits = TURN_ENDS.has(event._tag) ? this.sums.rest() : undefined
          if (waits !== undefined) yield* this.passed(waits)
          yield* this.take(run, request, event)
        }
        isTold ||= event._tag !== "Delta"
      }
      if (deltas.length > 0) yield* this.words.write(deltas)
      if (made.length > 0) yield* this.called(run, request, made)
      // report only usage that was not reported at the end of a turn
      yield* this.paid
      yield* this.sign
      yield* this.words.flushing
    }
  )

  private take(run: Run, request: RunRequest, event: RunEvent): Effect.Effect<void> {
    switch (event._tag) {
      case "Started":
        return this.started(run, request, event)
      case "ApprovalRequested":
        return this.asked(run, event)
      case "ApprovalWithdrawn":
      case "ToolStarted":
        return this.ran(run, event)
      case "ToolProgress":
        return this.progress(run, event)
      case "Given":
        return Effect.sync(() => this.live.give(event.input))
      case "Resumed":
        return this.resumed(run, event)
      case "Recalled":
        return Effect.sync(() => this.remember(event))
      case "Reached":
        return this.reached(run, event)
      case "TurnStarted":
        return Effect.map(this.asks, () => this.meter.opens(this.askedAt))
      case "TurnOpened":
        return this.opened(run, event)
      case "Background":
        return this.background(run, event)
      case "ToolResult":
        return Effect.andThen(this.asks, this.result(run, event))
      case "Usage":
        return Effect.map(Clock.currentTimeMillis, (now) => this.meter.take(event, now))
      case "GoesOn":
        return Effect.andThen(this.paid, GoesOn.decide(event, this.actors(), this.setting.allowance, this.live.turnId))
      case "Passed":
        return this.live.recalling ? Effect.sync(() => this.sums.wait(event)) : this.passed(event)
      case "Windows":
        return this.used(event)
      case "Compacted":
        return this.compacted(run, event)
      case "MemoryLost":
        return this.forgot(run, event)
      case "Notice":
        this.live.lack(event)
        return this.note(run.runId, event.text, this.passing(event))
      case "TurnCompleted": {
        const { output } = event
        const turnId = this.live.turnOf(event.turnId)
        const why = this.live.turnId === turnId ? NoAnswer.whyNot(this.live, output) : undefined
        if (why !== undefined)
          return this.turnEnded(turnId, "unknown", { _tag: "stream_error", turnId, ...why, retry: false })
        const usage = this.meter.takeTurn()
        const finalOutput = LogExcerpt.text(output, MAX_ANSWER)
        return this.turnEnded(turnId, "unknown", { _tag: "response_done", turnId, finalOutput, usage })
      }
      case "TurnInterrupted":
        return this.interrupted(event)
      case "TurnError": {
        const { errorType, goesOn = false, message } = event
        const turnId = this.live.turnOf(event.turnId)
        // without earlier context there is nothing to remove, and a retry would overflow again
        const isAlone = errorType === "overflow" && request.spec.resume === undefined && turnId === request.spec.turnId
        const retry = event.retry && !isAlone
        this.trouble = message
        const part = !retry && TruncatedAnswer.isCut(errorType) ? this.live.partial : {}
        // the error will also end the run
        if (!goesOn && this.live.turnId === turnId) this.live.ending(run.runId)
        return this.turnEnded(turnId, "unknown", { _tag: "stream_error", turnId, errorType, message, retry, ...part })
      }
      default: // the turn started when its input was sent to the run
        return Effect.void
    }
  }

  private passed(event: Event<"Passed">): Effect.Effect<void> {
    return Effect.suspend(() => {
      const { isRenewed, spent } = this.sums.take(event)
      for (const one of spent) this.meter.take(one)
      return isRenewed ? this.note(this.runId, RENEWED) : Effect.void
    })
  }

  private interrupted({ output, turnId: name }: Event<"TurnInterrupted">): Effect.Effect<void> {
    const turnId = this.live.turnOf(name)
    const partialOutput = LogExcerpt.text(output, MAX_ANSWER)
    const reason = "the agent ended the turn"
    return this.turnEnded(turnId, "cancelled", { _tag: "interrupt", turnId, by: BY_ITSELF, reason, partialOutput })
  }

  private hears(events: ReadonlyArray<RunEvent>, at: number): void {
    let notice: string | undefined
    for (const event of events) {
      notice = event._tag === "Notice" ? LogExcerpt.text(event.text, MAX_NAME) : undefined
      if (ProviderOutcome.isAnswer(event)) this.live.retries = undefined
      if (event._tag === "Notice" && event.retries !== undefined) this.live.again(event.retries, notice!, at)
    }
    this.live.heard = { at, ...(notice === undefined ? {} : { notice }) }
  }

  private readonly asks: Effect.Effect<void> = Effect.map(Clock.currentTimeMillis, (now) => {
    this.askedAt = now
  })

  /** Prepares for a run's first event. For an adopted run, reads what the log contains of the run. */
  private readonly begins = Effect.fnUntraced({ self: this }, function* (this: RunEvents, run: Run, of: RunRequest) {
    const { conversation: stream } = this.setting
    const { runId } = run
    this.runId = runId
    this.place = undefined
    this.live.begins(of.spec.adopt !== undefined, of.facts)
    this.told =
      of.spec.adopt === undefined
        ? undefined
        : // no event may be processed before the record is known
          yield* read(this.log, { stream, actor: workerName(this.setting.agent), runId }).pipe(
            Effect.tapError(({ message }) => Effect.logWarning(`run ${runId} waits for the log: ${message}`)),
            Effect.retry(Backoff.waits(AGAIN)),
            Effect.orDie
          )
    this.words.begin(runId, this.told)
    this.sums.begin(this.told)
  })

  /** Stores the run's state when everything before it is in the log, so that a later daemon can continue there. */
  private reached(run: Run, { point }: Event<"Reached">): Effect.Effect<void> {
    const { keep } = run
    if (keep === undefined) return Effect.void
    return Effect.gen({ self: this }, function* () {
      yield* this.words.rest
      yield* this.paid
      const known: Known = { run: this.live.known, usage: this.meter.known, words: this.words.known }
      yield* this.actors().tools.ask({ _tag: "Heard" })
      yield* this.log.flushed
      yield* keep(point, known)
    }).pipe(Effect.catch((error) => Effect.logWarning("the output of a run is kept for now", error)))
  }

  private remember({ heard }: Event<"Recalled">): void {
    const { run, usage, words } = heard as Known
    this.live.recalls(run)
    this.meter.recalls(usage)
    this.words.recalls(words)
  }

  /** Called when all events that an earlier daemon had read have been read again. */
  private resumed(run: Run, { given }: Event<"Resumed">): Effect.Effect<void> {
    return Effect.suspend(() => {
      const { live } = this
      const { tools, turn } = this.actors()
      live.recalling = false
      if (live.turns) live.turnId = given === undefined ? undefined : live.turnOf(given)
      live.resumed = live.turnId
      const isLeft =
        live.turnId !== undefined && (turn.state.state === "idle" || turn.state.data.turnId !== live.turnId)
      // the turn of the run has ended according to the log, so the run cannot be used
      if (isLeft) live.ending(run.runId)
      this.adopted.openUnsafe()
      const next = isLeft ? run.end : Effect.andThen(answerAgain(live, run, tools), turn.tell({ _tag: "Look" }))
      return live.run === run ? next : Effect.void
    })
  }

  private provider(news: News): Effect.Effect<void> {
    return Effect.suspend(() => {
      const index = this.actors().worker.state.now?.data.fallback ?? 0
      return this.setting.weather.tell(news, index)
    })
  }

  /** When the run last called its model, ms since the epoch; before the first call, the planned start of the run. */
  private get beganAt(): number {
    return this.askedAt === 0 ? (this.actors().worker.state.now?.data.lastRunAt ?? 0) : this.askedAt
  }

  private used(told: Event<"Windows">): Effect.Effect<void> {
    const tell = (news: News) => this.provider(news)
    return Effect.flatMap(Clock.currentTimeMillis, (now) =>
      Effect.forEach(ProviderOutcome.toldOf(told, now), tell, { discard: true })
    )
  }

  /** Reports the provider status that a run's outcome proves. */
  private readonly suffered = Effect.fnUntraced({ self: this }, function* (this: RunEvents, outcome: Outcome) {
    const { askedAt, beganAt, live } = this
    // a run with turns has already reported its answers, and can end successfully without one
    if (outcome._tag === "Success" && (live.turns || askedAt === 0)) return
    const trouble = LogExcerpt.text(this.trouble, MAX_NAME)
    const news = ProviderOutcome.newsOf(outcome, { beganAt, now: yield* Clock.currentTimeMillis, trouble })
    if (news !== undefined) yield* this.provider(news)
  })

  private compacted(run: Run, { cutResults, from, summarised, to }: Event<"Compacted">): Effect.Effect<void> {
    return Effect.suspend(() => {
      const { agent, conversation } = this.setting
      const payload = {
        ...this.heard,
        run_id: run.runId,
        turn_id: this.live.turnId ?? null,
        from: Math.round(from),
        to: Math.round(to),
        cut_results: cutResults,
        summarised
      }
      const draft = { stream: conversation, kind: "agent.compacted", actor: turnName(agent), payload }
      return Effect.catch(Effect.asVoid(this.log.append([draft])), ({ message }) => Effect.logWarning(message))
    })
  }

  /** Reports usage that has not been reported yet. */
  private get paid(): Effect.Effect<void> {
    return Effect.suspend(() => {
      const spent = this.takeSpent()
      return spent.models === undefined && spent.unlikely === undefined
        ? Effect.void
        : this.tell({ _tag: "Paid", turnId: this.live.turnId ?? "", spent })
    })
  }

  private takeSpent(): Budget.Expense {
    const unlikely = this.meter.takeUnlikely()
    return { ...Budget.ofModels(this.meter.takeUntold()), ...(unlikely === undefined ? {} : { unlikely }) }
  }

  private readonly started = Effect.fnUntraced(
    { self: this },
    function* (this: RunEvents, run: Run, { backend, spec }: RunRequest, { pid, sessionId }: Event<"Started">) {
      const { live } = this
      if (live.run === run) return
      live.up(run, backend.turns, spec.turnId, !Prompt.isBare(spec.prompt))
      yield* this.asks
      this.meter.begin()
      const taken = spec.adopt === undefined ? undefined : this.actors().worker.state.now?.at
      this.meter.opens(taken ?? this.askedAt)
      if (spec.adopt?.isUp === true) return
      const { worker } = this.actors()
      const seq = Math.max(1, worker.state.now?.data.sessionSeq ?? 1)
      // write the first turn before other events of the run; there is none if it has already ended
      const up = worker.ask({ _tag: "SessionStarted", runId: run.runId, seq, pid, sessionId })
      yield* Effect.catch(Effect.asVoid(up), () => Effect.sync(() => live.end()))
    }
  )

  private readonly called = Effect.fnUntraced(
    { self: this },
    function* (this: RunEvents, run: Run, { backend, spec }: RunRequest, events: ReadonlyArray<Event<"ToolCall">>) {
      const { live } = this
      const { turnId } = live
      if (turnId === undefined) return
      live.pause()
      const { approvals, maxToolTimeout, toolTimeout } = this.setting.config()
      const timeout = Duration.toMillis(backend.runsTools === true ? toolTimeout : maxToolTimeout)
      const approvalTimeout = limitIn(approvals.timeout)
      const calls = events.map((event): Messages.CallRequested => {
        return {
          _tag: "call_requested",
          callId: live.called(run, event, spec.cwd),
          turnId,
          toolName: LogExcerpt.text(event.tool, MAX_NAME),
          arguments: LogExcerpt.excerpt(event.arguments, MAX_ARGUMENTS),
          digest: Approval.keyOf(event.tool, event.arguments, spec.cwd),
          timeout,
          ...(approvalTimeout === null ? {} : { approvalTimeout })
        }
      })
      for (let from = 0; from < calls.length; from += AT_ONCE) {
        yield* this.tell({ _tag: "Called", turnId, calls: calls.slice(from, from + AT_ONCE) })
      }
    }
  )

  /** Makes a turn that the run started by itself a turn of the agent, before the turn's events are processed. */
  private readonly opened = Effect.fnUntraced(
    { self: this },
    function* (this: RunEvents, run: Run, { turnId: name, why }: Event<"TurnOpened">) {
      const { live } = this
      const { runId } = run
      if (live.run !== run) return
      yield* this.asks
      const open: Messages.ToolsMessage = { _tag: "Open", runId, why: LogExcerpt.text(why, MAX_NAME) }
      const { tools, turn } = this.actors()
      const unknown = { _tag: "Refused", reason: "it could not be reported" } as const
      const opened = yield* Effect.catch(tools.ask<Messages.Opened>(open), () =>
        Effect.succeed<Messages.Opened>(unknown)
      )
      if (opened._tag === "TakenIn") return
      if (opened._tag === "Turn") {
        this.meter.takeTurn()
        this.meter.opens(this.askedAt)
        live.open(name, opened.turnId)
        // the turn ended in the meantime, so its interrupt did not reach the run
        if (!isActive(turn.state)) yield* run.interruptTurn
        return
      }
      const text = `it started a turn by itself (${LogExcerpt.text(why, MAX_NAME)}), which is interrupted: ${opened.reason}`
      yield* this.lazily("run.notice", { runId, text })
      yield* run.interruptTurn
    }
  )

  private forgot(run: Run, event: Event<"MemoryLost">): Effect.Effect<void> {
    const { agent, conversation } = this.setting
    const payload = { ...this.heard, runId: run.runId, text: LogExcerpt.text(event.text, MAX_NAME) }
    const rune: RuneDraft = { stream: conversation, kind: "run.memory_lost", actor: workerName(agent), payload }
    return Effect.catch(Effect.asVoid(this.log.append([rune])), ({ message }) => Effect.logWarning(message))
  }

  private readonly background = Effect.fnUntraced(
    { self: this },
    function* (this: RunEvents, run: Run, event: Event<"Background">) {
      const { works } = event
      this.live.works(works)
      yield* this.lazily("run.background", { ...this.passing(event), runId: run.runId, works })
    }
  )

  /** Stores the complete input of a call before the user is asked, so that the input is available after a restart. */
  private asked(run: Run, asked: Event<"ApprovalRequested">): Effect.Effect<void> {
    return Effect.suspend(() => {
      const { live } = this
      const callId = live.callOf(run, asked.callId)
      return callId === undefined
        ? run.answer(asked.callId, { behavior: "deny", message: "no turn has such a call" })
        : this.askedOf(callId, asked)
    })
  }

  /** Records a call. `was`: its previous id, if it was recorded as running before. */
  private askedOf(callId: string, asked: Event<"ApprovalRequested">, was?: string): Effect.Effect<void> {
    return Effect.suspend(() => {
      const { live, setting } = this
      const whole = wholeOf(setting, live, callId)
      const { tool = "" } = live.origin(callId) ?? {}
      live.asks(callId, asked)
      const runRules = rulesOf(this.actors().tools.state, live.origin(callId)?.run.runId)
      const mayAsk = verdictOf(setting, live, { callId, tool, asked }, runRules).verdict === "ask"
      const keep = mayAsk && whole !== undefined ? setting.waiting.keep(whole) : Effect.void
      return Effect.andThen(
        keep,
        this.tell({ _tag: "Asked", callId, asked, hash: whole?.hash, ...(was === undefined ? {} : { was }) })
      )
    })
  }

  /** Reports that a call is running, or that the run no longer waits for an answer about it. */
  private ran(run: Run, { _tag, callId: id }: Event<"ApprovalWithdrawn" | "ToolStarted">): Effect.Effect<void> {
    return Effect.suspend(() => {
      const callId = this.live.callOf(run, id)
      if (callId === undefined) return Effect.void
      return this.tell({ _tag: _tag === "ToolStarted" ? "Ran" : "TakenBack", callId })
    })
  }

  private progress(run: Run, { callId: id, chunk, stream }: Event<"ToolProgress">): Effect.Effect<void> {
    return Effect.suspend(() => {
      const callId = this.live.callOf(run, id)
      return callId === undefined
        ? Effect.void
        : Effect.andThen(this.tell({ _tag: "Ran", callId }), this.words.progress(callId, stream, chunk))
    })
  }

  private result(run: Run, { callId: id, output, status }: Event<"ToolResult">): Effect.Effect<void> {
    return Effect.suspend(() => {
      const callId = this.live.callOf(run, id)
      if (callId === undefined) return Effect.void
      this.words.forget(callId)
      return this.tell({ _tag: "Result", callId, status, output })
    })
  }

  private turnEnded(turnId: string, how: "cancelled" | "unknown", ending: Messages.Ending): Effect.Effect<void> {
    return Effect.suspend(() => {
      const { live } = this
      if (live.turnId !== turnId) return Effect.void
      live.end()
      live.worked ||= ending._tag === "response_done"
      this.meter.takeTurn()
      const reason = how === "cancelled" ? "its turn was interrupted" : "no result came"
      return this.tell({ _tag: "Close", turnId, how, reason, spent: this.takeSpent(), ending })
    })
  }

  readonly exited = Effect.fnUntraced(
    { self: this },
    function* (this: RunEvents, { spec }: RunRequest, outcome: Outcome, isLimit: boolean) {
      const { live } = this
      const { runId } = spec
      // a run may end before it has reported anything: nothing may wait for its adoption any longer
      this.adopted.openUnsafe()
      const waits = this.sums.rest()
      if (waits !== undefined) yield* this.passed(waits)
      const lines = yield* this.words.end
      const isDone = outcome._tag === "Success" && live.run !== undefined && !live.turns
      const turnId = live.turnId ?? ""
      const ending: Messages.Ending = isDone
        ? {
            _tag: "response_done",
            turnId,
            finalOutput: LogExcerpt.text(lines, MAX_ANSWER),
            usage: this.meter.takeTurn()
          }
        : {
            _tag: "stream_error",
            turnId,
            errorType: WHY[outcome._tag],
            message: wordsOf(outcome),
            retry: true,
            // an end that agentd asked for is no death of the process
            ...(outcome._tag === "Uncounted" || isLimit || live.isEnding(runId) ? {} : { died: true })
          }
      yield* this.suffered(outcome)
      this.trouble = ""
      this.askedAt = 0
      const worked = live.worked ? { worked: true } : {}
      const exit: Messages.ToolsMessage = {
        _tag: "Exited",
        runId,
        outcome: ProviderOutcome.endOf(outcome, this.setting.config()),
        ...worked,
        spent: this.takeSpent(),
        ending
      }
      // other requests can still find the run until its exit is recorded
      yield* Effect.catch(Effect.asVoid(this.actors().tools.ask(exit)), (error) =>
        // an agent that stopped normally needs no message: when it starts again, it sees that the run has ended
        error instanceof ActorStopped && error.reason === "stopped" ? Effect.void : this.tell(exit)
      )
      live.gone()
    }
  )

  note(runId: string, text: string, more: object = {}): Effect.Effect<void> {
    return this.lazily("run.notice", { ...more, runId, text: LogExcerpt.text(text, MAX_LINES) })
  }

  private lazily(kind: string, payload: { readonly [key: string]: unknown }): Effect.Effect<void> {
    const { agent, conversation } = this.setting
    return this.log.appendLazy([{ stream: conversation, kind, actor: workerName(agent), payload }])
  }

  /** Reports that the run is active, at most once per second. */
  private readonly sign: Effect.Effect<void> = Effect.suspend(() => {
    const { agent, conversation, report } = this.setting
    const { turnId } = this.live
    if (turnId === undefined) return Effect.void
    return Effect.flatMap(Clock.currentTimeMillis, (now) => {
      if (now - this.signedAt < SIGN) return Effect.void
      this.signedAt = now
      return Effect.flatMap(this.log.head, (eventId) =>
        report({ _tag: "Active", conversation, agent, eventId, cause: null, at: now, turnId })
      )
    })
  })
}
