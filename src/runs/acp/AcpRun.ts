/**
 * AcpRun: one run of an agent that speaks the Agent Client Protocol.
 *
 * The agent's state depends only on whether a prompt is unanswered, and on which permission requests are unanswered.
 * The protocol has no message for the end of a turn that the agent begins by itself. Such a turn (an own turn) ends
 * when no message arrives for a while and no call is running, or when the next prompt takes it over.
 *
 * Guarantees: the events of a turn end when its prompt is answered or refused. They also end when the agent is silent
 * for too long, or has exited. An error in a turn ends the run. A cancel leaves no permission request open. An action
 * that agentd performs for the agent is a call of the agent, under its approvals. `Exited` is the last event, sent when
 * all processes of the run have ended. The timeouts and the steps of the end are those of every run (RunLifecycle).
 */
import type { PromptRequest } from "@agentclientprotocol/sdk"
import * as path from "node:path"
import { type Cause, Clock, Effect, Exit, type Fiber, Queue, Scope } from "effect"
import type { AcpBackend } from "../../config/BackendConfig.ts"
import * as Fault from "../Fault.ts"
import type { Outcome } from "../Outcome.ts"
import * as AcpChoices from "./AcpChoices.ts"
import { AcpChoosing } from "./AcpChoosing.ts"
import * as AcpClientMethods from "./AcpClientMethods.ts"
import * as AcpFault from "./AcpFault.ts"
import * as AcpFiles from "./AcpFiles.ts"
import * as AcpHistory from "./AcpHistory.ts"
import * as AcpLooks from "./AcpLooks.ts"
import * as Messages from "./AcpMessages.ts"
import { AcpPermissions } from "./AcpPermissions.ts"
import * as AcpPrompt from "./AcpPrompt.ts"
import * as AcpSession from "./AcpSession.ts"
import { AcpAdoption, type Left } from "./AcpAdoption.ts"
import * as AcpTerminals from "./AcpTerminals.ts"
import { AcpEvents, type Events } from "./AcpEvents.ts"
import { AcpUpdates, type End, type KnownUpdates } from "./AcpUpdates.ts"
import type { SessionCosts } from "./AcpUsage.ts"
import * as AcpWire from "./AcpWire.ts"
import * as AgentdMeta from "./AgentdMeta.ts"
import { BackendError, type Decision, type Run, type RunEvent, type RunSpec, type TurnInput } from "../Backend.ts"
import { ErrorOutput } from "../line/ErrorOutput.ts"
import type { Wait } from "../line/LineProtocol.ts"
import * as RunLifecycle from "../line/RunLifecycle.ts"
import type { Work } from "../line/RunPhases.ts"
import * as Checkpoint from "../process/Checkpoint.ts"
import type { ModelUpdates } from "../model/ModelUpdates.ts"
import type * as RunProcess from "../process/RunProcess.ts"
import type { Workspace } from "../sandbox/Workspace.ts"

export interface Options {
  readonly config: AcpBackend
  readonly spec: RunSpec
  readonly cwd: string
  readonly program: RunProcess.RunProcess
  /** Costs of sessions, as earlier processes reported them. */
  readonly costs: SessionCosts
  /** Creates the updates of agentd's own model agent; undefined for any other agent. */
  readonly own?: ((known: KnownUpdates | undefined) => ModelUpdates) | undefined
  readonly content: AcpPrompt.Content
  /** The workspace; undefined if paths cannot be checked. */
  readonly workspace: Workspace | undefined
  /** Creates the terminals, in a scope that ends before `Exited` is emitted. */
  readonly terminals: (
    of: Pick<AcpTerminals.Options, "begun" | "deeds" | "isNew" | "notice" | "opened" | "reply" | "untold" | "written">
  ) => Effect.Effect<AcpTerminals.AcpTerminals, never, Scope.Scope>
}

/** Maximum number of unread events. If the queue is full, the agent's pipe fills up and the agent waits. */
const CAPACITY = 256
/** If an own turn was asked to stop, it counts as ended after this time. */
const STOPS = "1 second"
/** If no message arrives for this time, the replay of a loaded session is over. */
const REPLAYS = "1 second"
/** Maximum number of reasons for denials in one turn that are passed to the agent. */
const MAX_WORDS = 32

/** Result of a command whose output an earlier daemon has already emitted. */
const DONE = "an earlier agentd ran it"

const CHOICES: ReadonlySet<string> = new Set(["config_option_update", "current_mode_update"])
const CANCEL: AcpHistory.Note = { say: "cancel" }
const NONE = { inputTokens: 0, outputTokens: 0 }

const refused = (message: string, remedy: string) => new BackendError({ message, remedy, fatal: false })

interface Parts {
  readonly queue: Events
  readonly scope: Scope.Scope
  /** Scope that ends before `Exited` is emitted. */
  readonly inner: Scope.Closeable
  readonly terminals: AcpTerminals.AcpTerminals
  readonly timers: RunLifecycle.Timers
  readonly wire: AcpWire.Wire
}

class AcpRun implements RunLifecycle.Driver {
  readonly name: string
  private readonly options: Options
  private readonly queue: Events
  private readonly scope: Scope.Scope
  readonly telling: AcpEvents
  private readonly choosing: AcpChoosing
  private readonly updates: AcpUpdates
  private readonly own: ModelUpdates | undefined
  private readonly permissions: AcpPermissions
  readonly deeds: AcpClientMethods.AcpClientMethods
  private readonly files: ReturnType<typeof AcpFiles.make> | undefined
  private readonly inner: Scope.Closeable
  private readonly wire: AcpWire.Wire
  private readonly terminals: AcpTerminals.AcpTerminals
  private session: AcpSession.AcpSession | undefined
  /** True if the current turn has been asked to stop. */
  private cancelled = false
  /** True while a prompt has no answer. */
  private isPrompted = false
  /** The outcome of the last turn, if it failed and the agent can take the next one. */
  private failed: Outcome | undefined
  /** The reasons that users gave for denied calls, until the agent has been told. */
  private readonly words: Array<string> = []
  private readonly look: Effect.Effect<void>
  /** True if the agent has listed its commands: then the replay of a loaded session is over. */
  private isReplayed = false
  private lines = 0
  /** Notes of an earlier daemon, until all of them have been replayed. */
  private recall: AcpAdoption | undefined
  /** True if an earlier daemon has sent a further prompt of the same turn. */
  private goesOn = false
  private readonly errors: ErrorOutput
  private readonly lifecycle: RunLifecycle.RunLifecycle

  constructor(options: Options, { inner, queue, scope, terminals, timers, wire }: Parts) {
    this.options = options
    this.name = options.own === undefined ? path.basename(options.config.argv[0] ?? "") : "the model agent"
    this.queue = queue
    this.scope = scope
    this.inner = inner
    this.terminals = terminals
    this.wire = wire
    const rest = Checkpoint.of<AcpHistory.Rest>(options.program)?.state
    this.lifecycle = new RunLifecycle.RunLifecycle(this, options.config, timers)
    this.telling = new AcpEvents(queue, wire, { ...options.program, changed: this.lifecycle.changed }, rest?.place)
    const { remark: notice } = this
    const { hear, noted, tell } = this.telling
    this.own = options.own?.(rest?.updates)
    const updates = this.own ?? new AcpUpdates(options.config, rest?.updates)
    this.updates = updates
    this.session = rest?.session
    if (rest !== undefined) updates.spending.opens(rest.session, undefined, options.costs)
    this.errors = new ErrorOutput(options.program)
    const history = AcpHistory.of(options.program.before)
    this.recall = history === undefined ? undefined : new AcpAdoption(history, updates)
    this.permissions = new AcpPermissions({
      updates,
      isOwn: this.own !== undefined,
      tell,
      // the call may be held back, so its state must be checked
      hear: (make) =>
        Effect.andThen(
          hear(make),
          Effect.suspend(() => this.look)
        ),
      noted: (id, make) => noted({ say: "asked", id }, make),
      notice
    })
    this.look = AcpLooks.make({
      ...options,
      scope,
      updates,
      telling: this.telling,
      session: () => this.session,
      isRecalling: () => this.recall !== undefined,
      lines: () => this.lines,
      questions: () => this.permissions.size,
      fail: (fault) => this.fail(fault),
      rested: Effect.suspend(() => this.rested)
    })
    this.deeds = AcpClientMethods.make({ updates, permissions: this.permissions, tell, noted, notice })
    this.choosing = new AcpChoosing(wire, {
      session: () => this.session,
      became: (session) => void (this.session = session),
      uses: (model) => void (updates.spending.model = model)
    })
    this.files = options.workspace === undefined ? undefined : AcpFiles.make(options.workspace, this.deeds, notice)
  }

  readonly start = Effect.fnUntraced({ self: this }, function* (this: AcpRun) {
    const { program } = this.options
    const isNew = this.recall === undefined
    yield* this.telling.aside(() => Checkpoint.again(program, this.session?.sessionId))
    const pumps = [
      yield* Effect.forkScoped(this.wire.listen),
      yield* Effect.forkScoped(this.errors.read(program, 1, this.telling.aside))
    ]
    if (isNew) yield* Effect.forkScoped(Effect.raceFirst(this.life, program.exited))
    // if `finish` fails, the queue still ends, so that the reader does not wait forever
    yield* Effect.forkScoped(Effect.ensuring(this.finish(pumps), Queue.end(this.queue)))
    return this.run
  })

  /** Emits a checkpoint between two turns, if much output was written since the last checkpoint. */
  private rests(out: number): Effect.Effect<void> {
    const { isDue } = this.options.program
    if (!isDue(out, this.errors.taken)) return Effect.void
    return this.telling.aside(() => {
      const { session, updates, wire } = this
      const { taken: err } = this.errors
      const { isAny, begun: terminals } = this.terminals.known()
      if (session === undefined || updates.active !== undefined || !wire.isQuiet() || isAny) return []
      const { place } = this.telling
      const state: AcpHistory.Rest = { session, updates: updates.known, wire: wire.known(), place, terminals }
      return [{ _tag: "Reached", point: { out, err, seq: wire.given(), state } }]
    })
  }

  readonly written: AcpTerminals.Options["written"] = (id, stream, chunk) =>
    Effect.andThen(
      this.lifecycle.heard,
      this.telling.aside(() => this.updates.terminal(id, stream, chunk))
    )

  opened(callId: string, terminalId: string): void {
    this.updates.opened(callId, terminalId)
  }

  get heard(): Effect.Effect<void> {
    this.lines += 1
    return this.lifecycle.heard
  }

  get program(): RunProcess.RunProcess {
    return this.options.program
  }

  get work(): Work {
    if (this.session === undefined) return "other"
    if (this.updates.active !== undefined) return "turn"
    return this.isPrompted ? "other" : "none"
  }

  get waits(): Wait | undefined {
    if (this.recall !== undefined) return undefined
    if (this.session === undefined) return "ready"
    return this.updates.active !== undefined && this.permissions.size === 0 ? "answer" : undefined
  }

  lapsed(_: Wait, fault: Fault.Fault): Effect.Effect<void> {
    return this.updates.isOwn ? this.rested : this.fail(fault)
  }

  notified(method: string, params: unknown): Effect.Effect<void> {
    if (method === "$/cancel_request") return this.permissions.takenBack(params, this.recall)
    if (method === "_claude/sdkMessage") return this.hear(() => this.updates.retried(Messages.claudeRetry(params)))
    return method === "session/update" ? this.updated(params) : Effect.void
  }

  /** Ends the run, because the agent no longer reads its input. */
  get stuck(): Effect.Effect<void> {
    return this.fail(AcpFault.error("stuck", "the agent does not read its input", true))
  }

  private get tell() {
    return this.telling.tell
  }

  private get hear() {
    return this.telling.hear
  }

  private note(note: AcpHistory.Note, wait = false): Effect.Effect<void> {
    return this.wire.note(note, wait)
  }

  /** Emits a notice about data in the agent's output. */
  readonly notice = (text: string): Effect.Effect<void> => this.tell(() => [{ _tag: "Notice", text }])

  /** Emits a notice about something that is not in the agent's output. No later daemon repeats it. */
  readonly remark = (text: string): Effect.Effect<void> => this.telling.aside(() => [{ _tag: "Notice", text }])

  readonly reply: AcpWire.Wire["reply"] = (id, answer) => this.wire.reply(id, answer)

  readonly untold = (id: unknown): Effect.Effect<void> => this.note({ say: "untold", id }, true)

  private readonly forgot = (text: string): Effect.Effect<void> => this.tell(() => [{ _tag: "MemoryLost", text }])

  private readonly replayed: Effect.Effect<void> = Effect.gen({ self: this }, function* () {
    for (let lines = -1; !this.isReplayed && lines !== this.lines;) {
      lines = this.lines
      yield* Effect.sleep(REPLAYS)
    }
  })

  /** Opens the session and sends the first prompt. */
  private readonly life: Effect.Effect<void> = Effect.suspend(() => {
    const { config, cwd, spec } = this.options
    const files = this.files !== undefined
    return AcpSession.open(this.wire, { config, spec, cwd, files, forgot: this.forgot, replayed: this.replayed }).pipe(
      Effect.matchEffect({
        onFailure: (fault) => this.fail(fault),
        onSuccess: (session) =>
          this.lifecycle.verdict !== undefined
            ? Effect.void
            : this.note({ say: "session", session }).pipe(
                Effect.andThen(this.tell(() => this.opens(session))),
                Effect.andThen(Effect.suspend(() => (this.lifecycle.isEnding ? Effect.void : this.first(session))))
              )
      })
    )
  })

  private opens(session: AcpSession.AcpSession): ReadonlyArray<RunEvent> {
    const isFirst = this.session === undefined
    const { agent, choices, model, sessionId } = session
    this.session = session
    this.updates.spending.model = model
    const { config, program, spec } = this.options
    if (this.own !== undefined) return isFirst ? [{ _tag: "Started", pid: program.pid, sessionId }] : []
    if (!isFirst) return this.offers
    this.updates.spending.opens(session, spec.resume, this.options.costs)
    const text = config.mode === undefined ? AcpChoices.unasked(agent, choices, spec) : undefined
    const notice: ReadonlyArray<RunEvent> = text === undefined ? [] : [{ _tag: "Notice", text }]
    return [{ _tag: "Started", pid: program.pid, sessionId }, ...this.offers, ...notice]
  }

  private get offers(): ReadonlyArray<RunEvent> {
    return this.session === undefined ? [] : [{ _tag: "Offers", ...AcpChoices.offersOf(this.session.choices) }]
  }

  private first({ takes }: AcpSession.AcpSession): Effect.Effect<void> {
    const { files, prompt: text, turnId } = this.options.spec
    return this.options.content({ text, files }, takes).pipe(
      Effect.matchEffect({
        onFailure: ({ message }) => this.fail(AcpFault.error("start", message, true)),
        onSuccess: (content) => this.prompt(turnId, content)
      })
    )
  }

  private prompt(turnId: string, prompt: PromptRequest["prompt"]): Effect.Effect<void> {
    return Effect.suspend(() => {
      this.updates.begin(turnId)
      this.failed = undefined
      if (this.cancelled) return this.turnEnded({ _tag: "Interrupted" })
      return this.lifecycle.heard.pipe(
        Effect.andThen(this.asks(prompt, (id) => ({ say: "prompt", id, turnId }))),
        Effect.andThen(this.lifecycle.watch)
      )
    })
  }

  private asks(prompt: PromptRequest["prompt"], note: (id: number) => AcpHistory.Note): Effect.Effect<void> {
    this.isPrompted = true
    const request: PromptRequest = { sessionId: this.session!.sessionId, prompt }
    return this.wire.call("session/prompt", request, this.answered, note)
  }

  /** Handles the answer to a prompt, and ends everything that is still open in its turn. */
  private readonly answered = (answer: AcpWire.Answer): Effect.Effect<void> => {
    this.isPrompted = false
    const { agent } = this.session!
    const error = this.own?.hears(answer._tag === "Refused" ? answer.refusal.data : answer.result)
    if (error !== undefined) return this.failOwn(error)
    if (answer._tag === "Refused") {
      // some agents refuse a prompt when they are asked to cancel it
      if (this.cancelled) return this.turnEnded({ _tag: "Interrupted" })
      return Effect.flatMap(Clock.currentTimeMillis, (now) =>
        this.fail(AcpFault.ofRefusal(answer.refusal, "the prompt", agent, now))
      )
    }
    const usage = Messages.usageOf(answer.result)
    const reason = Messages.read(Messages.PromptAnswer, answer.result)?.stopReason ?? "end_turn"
    const fault = AcpFault.ofStopReason(reason, agent)
    if (fault !== undefined) return this.fail(fault, usage)
    const failure = reason === "cancelled" || this.cancelled ? undefined : this.updates.failure(usage)
    if (failure !== undefined) return this.fail(AcpFault.ofFailure(failure, agent), usage)
    if (this.goesOn) {
      this.goesOn = false
      return this.further(usage)
    }
    const words = this.words.splice(0)
    if (words.length > 0 && !this.cancelled && !this.lifecycle.isEnding) return this.explain(words, usage)
    return this.turnEnded({ _tag: reason === "cancelled" ? "Interrupted" : "Completed" }, usage)
  }

  private failOwn({ class: errorType, goesOn, message, outcome, retry }: AgentdMeta.Fault): Effect.Effect<void> {
    if (goesOn) this.failed = outcome
    const end: End = { _tag: "Failed", errorType, message, retry }
    return goesOn ? this.turnEnded(end, NONE) : this.fail({ ...end, outcome }, NONE)
  }

  /**
   * The protocol's answer to a permission request has no field for the user's reason. The agent gets the reason in a
   * further prompt of the same turn, as soon as it accepts one.
   */
  private explain(words: ReadonlyArray<string>, usage: Messages.Spent): Effect.Effect<void> {
    return Effect.andThen(
      this.further(usage),
      Effect.suspend(() => this.asks(AcpPrompt.refusals(words), (id) => ({ say: "again", id })))
    )
  }

  private further(usage: Messages.Spent): Effect.Effect<void> {
    return this.hear(() => [...this.updates.usage(usage), ...this.updates.again()])
  }

  /** Ends the turn together with its usage, so that a budget does not interrupt finished work. */
  private turnEnded(end: End, usage?: Messages.Spent): Effect.Effect<void> {
    return this.hear(() => this.close(end, usage))
  }

  private close(end: End, usage?: Messages.Spent): ReadonlyArray<RunEvent> {
    const doubt = end._tag === "Completed" && usage !== undefined ? this.updates.doubt(usage) : []
    const cost = usage === undefined ? [] : this.updates.usage(usage)
    const events = [...doubt, ...cost, ...this.updates.finish(end)]
    this.cancelled = false
    this.words.length = 0
    this.permissions.dismiss()
    return events
  }

  private readonly rested: Effect.Effect<void> = Effect.suspend(() =>
    this.updates.isOwn ? Effect.asVoid(this.telling.noted({ say: "rested" }, () => this.endOwn())) : Effect.void
  )

  private endOwn(): ReadonlyArray<RunEvent> {
    return this.updates.isOwn ? this.close({ _tag: this.cancelled ? "Interrupted" : "Completed" }) : []
  }

  /** Ends the turn and then the run because of this fault. */
  private readonly fail = (fault: AcpFault.Fault, usage?: Messages.Spent): Effect.Effect<void> =>
    Effect.suspend(() => {
      const { errorType, message, outcome, retry } = fault
      this.lifecycle.verdict ??= outcome
      this.updates.ends()
      return Effect.andThen(this.turnEnded({ _tag: "Failed", errorType, message, retry }, usage), this.stop)
    })

  private updated(params: unknown): Effect.Effect<void> {
    const message = Messages.read(Messages.Update, params)
    if (message === undefined) return this.notice("the agent sent an update that the protocol does not define")
    // Before the session exists, updates are the replay of an old session. Updates of other sessions are ignored.
    const ours = this.session === undefined || message.sessionId === this.session.sessionId
    if (!ours) return Effect.void
    const { update } = message
    this.isReplayed ||= update.sessionUpdate === "available_commands_update"
    const isChoice = CHOICES.has(update.sessionUpdate)
    if (isChoice) this.choosing.changed(update)
    return Effect.andThen(
      this.hear(() => [...this.updates.update(update), ...(isChoice ? this.offers : [])]),
      this.look
    )
  }

  recalled(id: unknown, method: string, params: unknown): Effect.Effect<void> | undefined {
    const recall = this.recall?.asked(id, method, params)
    if (recall === undefined) return undefined
    const heard = this.hear(recall)
    return method === "terminal/release" ? Effect.andThen(heard, this.terminals.released(params)) : heard
  }

  /** Replays the actions that an earlier daemon performed until it had read the output up to `end`. */
  past(end: number, size: number | undefined): Effect.Effect<void> {
    return Effect.suspend(() => {
      const { recall } = this
      if (recall === undefined) return this.rests(end)
      const isAll = size !== undefined && size >= recall.size
      const notes = recall.upTo(isAll ? Number.POSITIVE_INFINITY : end)
      const left: Array<Left> = []
      const events = this.tell(() => notes.flatMap((note) => this.did(note, recall, left)))
      const taken = Effect.andThen(
        events,
        Effect.suspend(() => Effect.forEach(left, this.terminals.takeUp, { discard: true }))
      )
      return isAll ? Effect.andThen(taken, this.caughtUp) : notes.length === 0 ? Effect.void : taken
    })
  }

  private did(note: AcpHistory.Note, recall: AcpAdoption, left: Array<Left>): ReadonlyArray<RunEvent> {
    switch (note.say) {
      case "session":
        return this.opens(note.session)
      case "call":
        this.wire.expect(note.id, () => Effect.void)
        return []
      case "again":
        this.goesOn = true
        this.isPrompted = true
        this.wire.expect(note.id, this.answered)
        return []
      case "prompt":
        this.isPrompted = true
        this.wire.expect(note.id, this.answered)
        this.updates.begin(note.turnId)
        return [{ _tag: "Given", input: note.turnId }]
      case "reply":
        return recall.replied(note)
      case "asked":
        return recall.askedAgain(note.id)
      case "rested":
        return this.endOwn()
      case "cancel":
        this.cancelled = true
        this.updates.cancel()
        this.permissions.dismiss()
        return []
      case "settle":
        return this.updates.settle(note.version)
      case "terminal": {
        const begun = recall.begins(note.id, note.number ?? 0)
        if (begun === undefined) return []
        left.push(begun)
        return this.updates.begun(begun.callId)
      }
      case "exited":
        return this.updates.settled(recall.callOf(note.number) ?? "", note.code === 0 ? "success" : "error", DONE)
      case "untold":
        return []
    }
  }

  /** Called when everything has been replayed. From then on, output is handled normally. */
  private readonly caughtUp: Effect.Effect<void> = Effect.suspend(() => {
    this.recall = undefined
    return this.tell(() => [{ _tag: "Resumed", given: this.updates.active }]).pipe(
      Effect.andThen(this.terminals.goOn),
      Effect.andThen(this.look)
    )
  })

  readonly serve: AcpWire.Listener["asked"] = (method, params, id) => {
    const unknown = Effect.fail({ code: AcpWire.METHOD_NOT_FOUND, message: `agentd does not know ${method}` })
    if (method === "session/request_permission") return this.permissions.ask(params, id)
    if (method === AgentdMeta.GOES_ON && this.own !== undefined) return this.own.goesOn(this.telling)
    const does = this.doing(method, params, id)
    return does === undefined
      ? unknown
      : Effect.andThen(
          this.hear(() => this.updates.sign()),
          does
        )
  }

  private doing(method: string, params: unknown, id: unknown): Effect.Effect<unknown, AcpWire.Refusal> | undefined {
    switch (method) {
      case "fs/read_text_file":
        return this.files?.read(params, this.session?.missingIsEmpty === true, id)
      case "fs/write_text_file":
        return this.files?.write(params, id)
      case "terminal/create":
        return this.terminals.create(params, id)
      default:
        return this.terminals.does[method]?.(params)
    }
  }

  readonly interruptTurn: Effect.Effect<void> = Effect.suspend(() => {
    if (this.cancelled || (this.session !== undefined && this.updates.active === undefined)) return Effect.void
    this.cancelled = true
    this.updates.cancel()
    const { session } = this
    if (session === undefined) return Effect.void
    return Effect.andThen(
      this.wire.notify("session/cancel", { sessionId: session.sessionId }, CANCEL),
      Effect.suspend(() => {
        this.permissions.dismiss()
        return this.lifecycle.watch
      })
    ).pipe(Effect.andThen(this.updates.isOwn ? this.stopOwn : Effect.void))
  })

  /** Ends an own turn some time after it was cancelled. The protocol has no answer to this cancel. */
  private get stopOwn(): Effect.Effect<void> {
    return Effect.asVoid(Effect.forkIn(Effect.andThen(Effect.sleep(STOPS), this.rested), this.scope))
  }

  private readonly answer = (callId: string, decision: Decision): Effect.Effect<void> =>
    Effect.suspend(() => {
      const waited = this.permissions.answer(callId, decision) && this.own === undefined
      if (waited && decision.behavior === "deny" && decision.words === true && this.words.length < MAX_WORDS)
        this.words.push(decision.message)
      const stops = waited && decision.behavior === "deny" && decision.interrupt === true
      return Effect.andThen(stops ? this.interruptTurn : Effect.void, this.lifecycle.watch)
    })

  private readonly send = (input: TurnInput): Effect.Effect<void, BackendError> =>
    Effect.suspend(() => {
      const { session } = this
      return session === undefined
        ? this.sendWith(input.turnId, [])
        : Effect.flatMap(this.options.content(input, session.takes), (prompt) => this.sendWith(input.turnId, prompt))
    })

  private sendWith(turnId: string, prompt: PromptRequest["prompt"]): Effect.Effect<void, BackendError> {
    return Effect.suspend(() => {
      const { isEnding, verdict } = this.lifecycle
      if (this.session === undefined || isEnding || verdict !== undefined)
        return Effect.fail(refused("the run accepts no turn now", "the next run receives it"))
      if (this.updates.active !== undefined && !this.updates.isOwn)
        return Effect.fail(refused("a turn is in progress", "send it when that turn has ended, or interrupt that turn"))
      return this.prompt(turnId, prompt)
    })
  }

  readonly closeInput: Effect.Effect<void> = Effect.suspend(() => this.wire.close)

  private readonly stop: Effect.Effect<void> = Effect.suspend(() => {
    this.updates.ends()
    return this.lifecycle.stop
  })

  private readonly finish = Effect.fnUntraced(
    { self: this },
    function* (this: AcpRun, pumps: ReadonlyArray<Fiber.Fiber<unknown, unknown>>) {
      const ended = yield* this.lifecycle.ended(pumps, Scope.close(this.inner, Exit.void))
      const said = this.errors.said.split("\n").at(-1) ?? ""
      const isActive = this.updates.active !== undefined
      if (isActive) yield* this.turnEnded({ _tag: this.cancelled ? "Interrupted" : "Exited" })
      const { isEnding, outcomeOf, verdict = isEnding && !isActive ? this.failed : undefined } = this.lifecycle
      const birth = (words: string) => AcpFault.ofBirth(Fault.oneLine(said), words, this.name)
      const outcome = outcomeOf(ended, { isActive, isUp: this.session !== undefined, verdict, said, birth })
      yield* Queue.offer(this.queue, { _tag: "Exited", outcome })
    }
  )

  private get run(): Run {
    return {
      ...this.lifecycle.run(this.queue),
      runId: this.options.spec.runId,
      send: this.send,
      answer: this.answer,
      // The protocol has no message to cancel a single call of the agent.
      cancelCall: (callId) =>
        this.own === undefined
          ? this.terminals.cancel(callId)
          : AgentdMeta.cancel(this.wire, this.session?.sessionId, this.own.nameOf(callId)),
      choose: (choice) =>
        Effect.andThen(
          this.choosing.choose(choice),
          this.telling.aside(() => this.offers)
        ),
      interruptTurn: this.interruptTurn,
      end: this.stop
    }
  }
}

export const make = Effect.fnUntraced(function* (options: Options): Effect.fn.Return<Run, never, Scope.Scope> {
  const scope = yield* Effect.scope
  const queue = yield* Queue.bounded<RunEvent, Cause.Done>(CAPACITY)
  yield* Effect.addFinalizer(() => Queue.end(queue))
  const inner = yield* Scope.fork(scope)
  const rest = Checkpoint.of<AcpHistory.Rest>(options.program)?.state
  const terminals = yield* options
    .terminals({
      deeds: {
        begin: (deed, work, note) => run.deeds.begin(deed, work, note),
        perform: (deed, work, told) => run.deeds.perform(deed, work, told),
        settle: (callId, status, output, note) => run.deeds.settle(callId, status, output, note)
      },
      notice: (text) => run.remark(text),
      isNew: options.program.before === undefined,
      reply: (id, answer) => run.reply(id, answer),
      untold: (id) => run.untold(id),
      begun: rest?.terminals ?? 0,
      opened: (callId, terminalId) => run.opened(callId, terminalId),
      written: (id, stream, chunk) => run.written(id, stream, chunk)
    })
    .pipe(Scope.provide(inner))
  // the run is assigned below, before the first message is read
  const listener: AcpWire.Listener = {
    heard: Effect.suspend(() => run.heard),
    notified: (method, params) => run.notified(method, params),
    asked: (method, params, id) => run.serve(method, params, id),
    recalled: (id, method, params) => run.recalled(id, method, params),
    past: (end, size) => run.past(end, size),
    noise: (text) => run.notice(text),
    stuck: Effect.suspend(() => run.stuck)
  }
  const wire = yield* AcpWire.make(options.program, listener, rest?.wire)
  const run: AcpRun = new AcpRun(options, { queue, scope, inner, terminals, timers: yield* RunLifecycle.timers, wire })
  return yield* run.start()
})
