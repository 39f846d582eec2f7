/**
 * ToolsModel: the tool calls of one agent, from the call to the one result.
 *
 * Real are all five actors of an agent, stepped by the real `Macrostep`, their actions and
 * activities, `RunEvents` and `LiveRun` above them. Played is the run: it says anything
 * in any order (results of calls that it never made, a result twice, calls when its turn is
 * over), dies, and is lost with its daemon. On its way, and so part of a state, are
 * mail and actions.
 *
 * Left out: ids and times (a limit on time may run out whenever there is one), money, and the
 * log: a macrostep is durable at once, as `ScopeModel` does not assume.
 */
import { Cause, Clock, Effect, Exit } from "effect"
import type { Backend, Decision, Run, RunEvent, RunSpec } from "../../../src/runs/Backend.ts"
import type { Outcome } from "../../../src/runs/Outcome.ts"
import type { TurnState } from "../../../src/agents/machines/AgentStates.ts"
import { AgentLatch } from "../../../src/agents/actors/AgentLatch.ts"
import { LiveRun } from "../../../src/agents/run/LiveRun.ts"
import { RunEvents } from "../../../src/agents/run/RunEvents.ts"
import { openCalls, type ToolsState, waits } from "../../../src/agents/machines/ToolsState.ts"
import type { Act } from "../../../src/core/event-actor/ActionQueue.ts"
import { Macrostep, type Stepped } from "../../../src/core/event-actor/Macrostep.ts"
import { Ask, Mail } from "../../../src/core/event-actor/Mail.ts"
import { type AnyActor, Member } from "../../../src/core/event-actor/Member.ts"
import { ScopeFold } from "../../../src/core/event-actor/ScopeFold.ts"
import type { EventLog } from "../../../src/core/event-log/EventLog.ts"
import { Redact } from "../../../src/core/event-log/Redact.ts"
import type { Rune } from "../../../src/core/event-log/Rune.ts"
import { MemoryLog } from "../../world/event-actor/Lab.ts"
import { AgentPlace, ALL, CONVERSATION, NAMES, still, T0 } from "./AgentPlace.ts"
import type { Model, Move } from "./Explore.ts"

/** The names that a run gives to its calls. */
const CALLS = ["a", "b"] as const

interface Letter {
  readonly to: string
  readonly message: object
}

interface Deed {
  readonly of: string
  readonly action: unknown
  readonly state: unknown
}

const redact = Effect.runSync(Effect.provide(Redact, Redact.layer))

/** The log's story of a call. */
interface Story {
  readonly asked: boolean
  readonly approved: boolean
  readonly started: boolean
  readonly results: number
  /** Count of times that the call's run was told that it may. */
  readonly allowed: number
}

export interface State {
  readonly actors: { readonly [name: string]: unknown }
  readonly postponed: { readonly [name: string]: ReadonlyArray<Letter> }
  readonly mail: ReadonlyArray<Letter>
  readonly deeds: ReadonlyArray<Deed>
  /** The fields of `LiveRun`. */
  readonly live: { readonly [field: string]: unknown }
  /** The run that there is; `isOver`: it has said that it exits. */
  readonly run: { readonly spec: RunSpec; readonly isUp: boolean; readonly isOver: boolean } | null
  /** The run that begins when the one before it is gone. */
  readonly next: RunSpec | null
  readonly runs: number
  readonly calls: number
  readonly stories: { readonly [callId: string]: Story }
  readonly recoveredTo: number
  readonly head: number
  readonly deaths: number
  readonly wrong: string | null
}

export interface Options {
  /** Calls that are made in all. */
  readonly calls: number
  /** Runs that come up. */
  readonly runs: number
  readonly deaths: number
  readonly results: ReadonlyArray<"success" | "error" | "cancelled" | "denied" | "timeout">
  /** With so many actions on their way the next is done before anything else; the same for mail. */
  readonly ahead: number
  /** The run says what no honest run says. */
  readonly lies: boolean
  /** A person ends the turn. */
  readonly interrupts: boolean
  /** A person steers. */
  readonly steers: boolean
  readonly most: number
  /** Plants a mistake into the calls' actor. */
  readonly plant?: (definition: AnyActor) => AnyActor
}

const copied = (value: unknown): unknown => (value instanceof Map ? new Map(value) : value)
const fieldsOf = (live: LiveRun): State["live"] =>
  Object.fromEntries(Object.entries(live).map(([name, value]) => [name, copied(value)]))

/** A move: the state, thawed. */
class Step implements Stepped {
  readonly stream = CONVERSATION
  ahead = 0
  readonly members = new Map<string, Member>()
  postponed: { [name: string]: ReadonlyArray<Letter> }
  mail: Array<Letter>
  deeds: Array<Deed>
  run: State["run"]
  next: RunSpec | null
  runs: number
  calls: number
  readonly stories: { [callId: string]: Story }
  recoveredTo: number
  deaths: number
  wrong: string | null
  now = T0
  private place: AgentPlace
  private readonly log = new MemoryLog()
  private readonly macrostep: Macrostep
  private readonly places: (recoveredTo: number) => AgentPlace

  constructor(state: State, places: (recoveredTo: number) => AgentPlace) {
    this.places = places
    this.place = places(state.recoveredTo)
    this.place.step = this
    for (const [name, value] of Object.entries(state.live)) Object.assign(this.place.live, { [name]: copied(value) })
    this.log.head = state.head
    this.log.resume([{ eventId: state.head, seq: state.head, stream: CONVERSATION } as Rune])
    this.macrostep = new Macrostep({
      log: this.log,
      clock: { currentTimeMillisUnsafe: () => this.now },
      // the calls' state holds a HashMap: the fold is compared here instead
      isStrict: false,
      putOff: { tokenOf: () => 1 },
      stale: () => {}
    })
    for (const name of ALL) {
      this.members.set(name, new Member(this as never, name, this.place.definitions[name]!, state.actors[name]))
    }
    this.postponed = { ...state.postponed }
    this.mail = [...state.mail]
    this.deeds = [...state.deeds]
    this.run = state.run
    this.next = state.next
    this.runs = state.runs
    this.calls = state.calls
    this.stories = { ...state.stories }
    this.recoveredTo = state.recoveredTo
    this.deaths = state.deaths
    this.wrong = state.wrong
  }

  // --- as its scope

  find(name: string): Member | undefined {
    return this.members.get(name)
  }
  member(name: string): Member {
    return this.members.get(name)!
  }
  durable(): void {}
  failed(): void {}
  refold(): void {}
  rest(): void {}

  get states() {
    const of = (name: string) => this.member(name).state
    return { inbox: of(NAMES.inbox), turn: of(NAMES.turn), worker: of(NAMES.worker) }
  }

  private handle(name: string) {
    const member = this.member(name)
    const tell = (message: object) => Effect.sync(() => void this.mail.push({ to: name, message }))
    return { state: member.state, tell, ask: tell, name, address: name }
  }

  private run_(what: string, effect: unknown): void {
    if (!Effect.isEffect(effect)) return
    const at = Effect.provideService(effect as Effect.Effect<unknown, unknown>, Clock.Clock, still(this.now))
    const exit = Effect.runSyncExit(at)
    // what waits is left waiting
    if (Exit.isSuccess(exit) || /async/i.test(String(Cause.squash(exit.cause)))) return
    throw new Error(`${what}: ${Cause.pretty(exit.cause)}`)
  }

  // --- stepping

  /** Delivers a message: a macrostep, whose consequences are on their way. */
  deliver(name: string, message: object, isAsked = false): unknown {
    const member = this.member(name)
    const before = new Map(ALL.map((one) => [one, this.member(one).state]))
    const item = isAsked ? new Ask(member, message, null, []) : new Mail(message, null)
    const unit = this.macrostep.run(this, member, item)
    if (unit === undefined) {
      this.postponed[name] = [...(this.postponed[name] ?? []), { to: name, message }]
      return undefined
    }
    if (unit.isRefused) {
      if (unit.why === "illegal" && !isAsked) this.wrong ??= `${name}: ${JSON.stringify(message)} is illegal`
      return undefined
    }
    for (const rune of unit.runes) this.read(rune)
    if (unit.runes.length > 0) this.log.append(unit)
    for (const one of ALL) this.member(one).state = this.member(one).ahead
    if (unit.runes.length > 0) this.compare(before, unit.runes, message)
    for (const { tell } of unit.outbox ?? [])
      this.mail.push({ to: (tell.to as Member).name, message: tell.message as object })
    for (const { mail, member: of } of unit.kept ?? []) {
      this.postponed[of.name] = [...(this.postponed[of.name] ?? []), { to: of.name, message: mail.message as object }]
    }
    for (const act of unit.acts ?? []) {
      const { action, member: of, state } = act as Act & { readonly action: unknown }
      this.deeds.push({ of: of.name, action, state })
    }
    this.comeBack(before)
    this.settle(before)
    return unit.reply
  }

  /** Checks that the live run is what the log says. */
  private compare(before: ReadonlyMap<string, unknown>, runes: ReadonlyArray<Rune>, message: object): void {
    const fold = new ScopeFold()
    for (const name of ALL) fold.add(name, this.member(name).definition, before.get(name))
    for (const rune of runes) fold.apply(rune)
    for (const name of ALL) {
      if (this.member(name).state === before.get(name) && fold.states.get(name) === before.get(name)) continue
      const [live, said] = [JSON.stringify(this.member(name).state), JSON.stringify(fold.states.get(name))]
      if (live !== said) this.wrong ??= `${name} is not the fold of its runes after ${JSON.stringify(message)}`
    }
  }

  private comeBack(before: ReadonlyMap<string, unknown>): void {
    for (const name of ALL) {
      const { definition, state } = this.member(name)
      const was = before.get(name)
      const kept = this.postponed[name] ?? []
      const isBack = definition.comesBack === undefined ? was !== state : definition.comesBack(was, state)
      if (kept.length === 0 || !isBack) continue
      this.mail.unshift(...kept)
      this.postponed[name] = []
    }
  }

  /** Begins the activities of the state that asks for them. */
  settle(before: ReadonlyMap<string, unknown> | undefined): void {
    for (const name of ALL) {
      const { definition, state } = this.member(name)
      const keyOf = ({ key, name: what }: { readonly name: string; readonly key: string | number }) => `${what} ${key}`
      const was = before === undefined ? [] : (definition.activities?.(before.get(name)) ?? []).map(keyOf)
      for (const activity of definition.activities?.(state) ?? []) {
        if (was.includes(keyOf(activity))) continue
        const acting = { self: this.handle(name), state, cause: null }
        this.run_(activity.name, definition.run!(activity, acting as never))
      }
    }
  }

  perform(): void {
    const { action, of, state } = this.deeds.shift()!
    const acting = { self: this.handle(of), state, cause: null }
    this.run_(JSON.stringify(action), this.member(of).definition.perform!(action, acting as never))
  }

  /** Reads a rune of a call. */
  private read({ actor, kind, payload }: Rune): void {
    if (!kind.startsWith("tool.")) return
    const callId = actor.split("/")[2]!
    const story = this.stories[callId]
    if (kind === "tool.call") {
      if (story !== undefined) this.wrong ??= `${callId} is called twice`
      this.stories[callId] = { asked: false, approved: false, started: false, results: 0, allowed: 0 }
      return
    }
    if (story === undefined) return void (this.wrong ??= `${callId}: ${kind} before its call`)
    if (story.results > 0) this.wrong ??= `${callId}: ${kind} after its result`
    if (kind === "tool.approval_requested") this.stories[callId] = { ...story, asked: true }
    else if (kind === "tool.approved") this.stories[callId] = { ...story, approved: true, started: true }
    else if (kind === "tool.started") {
      if (story.asked && !story.approved) this.wrong ??= `${callId} executes without leave`
      this.stories[callId] = { ...story, started: true }
    } else if (kind === "tool.result") {
      if (payload["status"] === "success" && story.asked && !story.approved)
        this.wrong ??= `${callId} ran without leave`
      this.stories[callId] = { ...story, results: story.results + 1 }
    }
  }

  // --- its run

  begin(spec: RunSpec): void {
    if (this.run?.spec.runId === spec.runId) return
    if (this.run === null) this.run = { spec, isUp: false, isOver: false }
    else this.next = spec
  }

  private handleOf(runId: string): Run {
    const known = this.place.live.run
    if (known !== undefined && known.runId === runId) return known
    return {
      runId,
      events: undefined as never,
      send: () => Effect.void,
      answer: (id, decision) => Effect.sync(() => this.place.step!.answered(id, decision)),
      cancelCall: () => Effect.void,
      interruptTurn: Effect.void,
      end: Effect.void,
      kill: Effect.void
    }
  }

  /** The run is told: by the name that it gave to its call, so by the newest call of that name. */
  answered(id: string, { behavior }: Decision): void {
    const { live } = this.place
    const callId = live.run === undefined ? undefined : live.callOf(live.run, id)
    const story = callId === undefined ? undefined : this.stories[callId]
    if (behavior !== "allow" || callId === undefined || story === undefined) return
    if (story.asked && !story.approved) this.wrong ??= `${callId} was let without leave`
    if (story.allowed > 0) this.wrong ??= `${callId} was let twice`
    this.stories[callId] = { ...story, allowed: story.allowed + 1 }
  }

  private events(tell: (letter: Letter) => Effect.Effect<void>): RunEvents {
    const log = { appendLazy: () => Effect.void, head: Effect.succeed(0) } as unknown as EventLog["Service"]
    const of = (to: string) => {
      const one = (message: object) => tell({ to, message })
      return { tell: one, ask: one, state: this.member(to).state }
    }
    const actors = { tools: of(NAMES.tools), worker: of(NAMES.worker) }
    const { live, setting } = this.place
    return new RunEvents({ setting, log, redact, adopted: new AgentLatch(true) }, live, () => actors as never)
  }

  private get request() {
    const backend: Backend = { name: "played", turns: true, runsTools: true, start: () => Effect.never }
    return { backend, spec: this.run!.spec, timeout: undefined }
  }

  says(...said: ReadonlyArray<RunEvent>): void {
    const tell = (letter: Letter) => Effect.sync(() => void this.mail.push(letter))
    this.calls += said.filter(({ _tag }) => _tag === "ToolCall").length
    this.run_("says", this.events(tell).events(this.handleOf(this.run!.spec.runId), this.request, said))
  }

  /** Brings the run up: nothing comes between, since the run is not read until that is durable. */
  starts(): void {
    const tell = ({ message, to }: Letter) => Effect.sync(() => void this.deliver(to, message, true))
    this.run = { ...this.run!, isUp: true }
    this.runs += 1
    this.run_(
      "starts",
      this.events(tell).events(this.handleOf(this.run.spec.runId), this.request, [{ _tag: "Started" }])
    )
  }

  /** Ends the run, which is told, and is gone once that is durable. */
  exits(outcome: Outcome): void {
    const tell = (letter: Letter) =>
      Effect.suspend(() => {
        this.mail.push(letter)
        return Effect.never
      })
    this.run = { ...this.run!, isOver: true }
    this.run_("exits", this.events(tell).exited(this.request, outcome, false))
  }

  gone(): void {
    this.place.live.gone()
    this.run = this.next === null ? null : { spec: this.next, isUp: false, isOver: false }
    this.next = null
  }

  /** The daemon dies, and its run with it; the states are the fold of the log. */
  die(): void {
    this.mail = []
    this.deeds = []
    this.postponed = {}
    this.run = null
    this.next = null
    this.deaths += 1
    this.recoveredTo = this.log.head
    const states = new Map(ALL.map((name) => [name, this.member(name).state]))
    this.place = this.places(this.recoveredTo)
    this.place.step = this
    Object.assign(this.place.live, fieldsOf(new LiveRun()))
    for (const name of ALL) {
      this.members.set(name, new Member(this as never, name, this.place.definitions[name]!, states.get(name)))
    }
    this.settle(undefined)
  }

  get state(): State {
    const { calls, deaths, deeds, log, mail, next, place, postponed, recoveredTo, run, runs, stories, wrong } = this
    const actors = Object.fromEntries(ALL.map((name) => [name, this.member(name).state]))
    const live = fieldsOf(place.live)
    return {
      actors,
      postponed,
      mail,
      deeds,
      live,
      run,
      next,
      runs,
      calls,
      stories,
      recoveredTo,
      head: log.head,
      deaths,
      wrong
    }
  }
}

// --- what must hold

const toolsOf = ({ actors }: State): ToolsState => actors[NAMES.tools] as ToolsState
const turnOf = ({ actors }: State): TurnState => actors[NAMES.turn] as TurnState
const isQuiet = ({ deeds, mail }: State): boolean => deeds.length + mail.length === 0

const invariant = (state: State): string | undefined => {
  if (state.wrong !== null) return state.wrong
  const open = openCalls(toolsOf(state))
  for (const [callId, { results }] of Object.entries(state.stories)) {
    if (results > 1) return `${callId} has ${results} results`
    if (open.some((call) => call.callId === callId) !== (results === 0)) return `${callId} is open, or it has a result`
  }
  if (!isQuiet(state) || state.run?.isOver === true) return undefined
  const turn = turnOf(state)
  const ofTurn = open.filter(({ snapshot }) => snapshot.data.turnId === turn.data.turnId)
  if (turn.state === "tool_executing" && ofTurn.length === 0) return "the turn waits for calls, and none is open"
  if (turn.state === "streaming" && ofTurn.length > 0) return "the turn goes on, and a call of its has no result"
  const orphan = open.find((call) => !waits(call) && call.snapshot.data.turnId !== turn.data.turnId)
  return orphan === undefined ? undefined : `${orphan.callId} has no result, and its turn is over`
}

// --- keys

/** Ids, times and counts that decide nothing here. */
const DROPPED = new Set(
  "entered seq at eventId countedTo startedAt lastRunAt recentRuns began sessionSeq initial ended spent wallTime sent eventId ref env mcp due hash".split(
    " "
  )
)

const plain = (key: string, value: unknown): unknown => {
  if (DROPPED.has(key)) return undefined
  if (value instanceof Map) return [...value]
  if (typeof value === "object" && value !== null && "interruptTurn" in value) return (value as unknown as Run).runId
  return value
}

const keyOf = (state: State): string => {
  const { actors, calls, deaths, deeds, live, mail, next, postponed, recoveredTo, run, runs, stories, wrong } = state
  const tools = toolsOf(state)
  const { due, ended, grants } = tools
  const newer = ALL.map((name) => ((actors[name] as { entered?: number }).entered ?? 0) > recoveredTo)
  const all = [
    [NAMES.inbox, NAMES.life, NAMES.worker, NAMES.turn].map((name) => actors[name]),
    turnOf(state).data.ended,
    openCalls(tools),
    due.map(({ at, callId }) => [callId, at - T0]),
    ended.map(([callId]) => callId),
    tools.results,
    [...grants].length,
    newer,
    [postponed, mail, deeds, live, run, next, runs, calls, deaths, Object.entries(stories), wrong]
  ]
  const names = new Map<string, string>()
  return JSON.stringify(all, plain).replaceAll(/n\d{7}/g, (id) => {
    const known = names.get(id) ?? `#${names.size}`
    names.set(id, known)
    return known
  })
}

// --- moves

type Act_ = readonly [string, (step: Step) => void]

const runMoves = function* (state: State, options: Options): Generator<Act_> {
  const { live, run } = state
  if (run === null) return
  if (!run.isUp) {
    if (state.runs < options.runs && state.mail.length === 0) yield ["the run starts", (step) => step.starts()]
    return
  }
  if (run.isOver) {
    const isTold = !state.mail.some(({ message }) => "_tag" in message && message._tag === "Exited")
    if (isTold) yield ["the run is gone", (step) => step.gone()]
    return
  }
  if (state.mail.length >= Math.max(1, options.ahead)) return
  const turnId = live["turnId"] as string | undefined
  const named = live["named"] as ReadonlyMap<string, string>
  for (const callId of CALLS) {
    const isNamed = named.has(callId)
    if (state.calls < options.calls && (options.lies || (!isNamed && turnId !== undefined))) {
      const call = {
        _tag: "ToolCall",
        callId,
        tool: `tool-${callId}`,
        arguments: {},
        readOnly: callId === "b"
      } as const
      yield [`the run calls ${callId}`, (step) => step.says(call)]
    }
    if (!isNamed && !options.lies) continue
    yield [`the run asks for ${callId}`, (step) => step.says({ _tag: "ApprovalRequested", callId, reason: "" })]
    yield [`the run goes on with ${callId}`, (step) => step.says({ _tag: "ToolStarted", callId })]
    for (const status of options.results) {
      yield [`${callId} ends: ${status}`, (step) => step.says({ _tag: "ToolResult", callId, status, output: "." })]
    }
  }
  if (turnId !== undefined) {
    yield ["the run ends its turn", (step) => step.says({ _tag: "TurnCompleted", turnId, output: "." })]
    yield ["the run interrupts its turn", (step) => step.says({ _tag: "TurnInterrupted", turnId, output: "" })]
    const failed = { _tag: "TurnError", turnId, errorType: "server", message: "no", retry: true } as const
    yield ["the run fails its turn", (step) => step.says(failed)]
  }
  yield ["the run exits", (step) => step.exits({ _tag: "Success" })]
  yield ["the run dies", (step) => step.exits({ _tag: "Error", detail: "killed" })]
}

const personMoves = function* (state: State, options: Options): Generator<Act_> {
  const by = "ada"
  for (const { callId, ...call } of openCalls(toolsOf(state))) {
    if (call.snapshot.state !== "awaiting_approval") continue
    const { hash } = call
    const answers = { allows: { behavior: "allow", hash }, denies: { behavior: "deny", reason: "" } } as const
    for (const [name, said] of Object.entries(answers)) {
      yield [`ada ${name} ${callId}`, (step) => step.deliver(NAMES.tools, { _tag: "Answer", callId, said, by }, true)]
    }
  }
  const turn = turnOf(state)
  const { turnId } = turn.data
  const isActive = turn.state === "streaming" || turn.state === "tool_executing"
  if (options.interrupts && isActive)
    yield [
      "ada interrupts",
      (step) => step.deliver(NAMES.turn, { _tag: "interrupt", turnId, by, reason: "enough" }, true)
    ]
  const { data } = state.actors[NAMES.inbox] as { readonly data: { readonly waiting: ReadonlyArray<object> } }
  if (options.steers && isActive && data.waiting.length === 0 && !turn.data.messageIds.includes("m2"))
    yield ["ada steers", (step) => receive(step, "m2", "steer")]
}

const receive = (step: Step, messageId: string, how: "queue" | "steer"): void => {
  const message = { messageId, from: "ada", text: "Well?", urgent: false, at: T0 }
  step.deliver(NAMES.inbox, { _tag: "Receive", message, how }, true)
}

/** The limits on time that there are. */
const timersOf = ({ actors, recoveredTo }: State, places: (recoveredTo: number) => AgentPlace) =>
  [NAMES.tools, NAMES.turn, NAMES.worker].flatMap((of) => {
    const timers = places(recoveredTo).definitions[of]!.timers?.(actors[of], 0) ?? []
    return timers
      .filter(({ after }) => after !== Number.POSITIVE_INFINITY)
      .map(({ after, key, message, since }) => ({ of, key, at: since + after, message: message as object }))
  })

const allMoves = function* (
  state: State,
  options: Options,
  places: (recoveredTo: number) => AgentPlace
): Generator<Act_> {
  const [deed] = state.deeds
  const [letter] = state.mail
  if (deed !== undefined) {
    const { _tag } = deed.action as { readonly _tag: string }
    yield [`it is done: ${_tag}`, (step) => step.perform()]
    if (state.deeds.length >= options.ahead) return
  }
  if (letter !== undefined) {
    const { _tag } = letter.message as { readonly _tag: string }
    yield [
      `${letter.to} hears ${_tag}`,
      (step) => {
        const { message, to } = step.mail.shift()!
        step.deliver(to, message)
      }
    ]
    // mail between the actors themselves is stepped before anything else
    if (state.mail.length > options.ahead) return
  }
  yield* runMoves(state, options)
  yield* personMoves(state, options)
  for (const { at, key, message, of } of timersOf(state, places)) {
    yield [
      `the time of ${of} is over: ${key.replace(/\/?\d+$/, "")}`,
      (step) => {
        step.now = Math.max(T0, at)
        step.deliver(of, message)
      }
    ]
  }
  if (state.deaths < options.deaths) yield ["the daemon dies", (step) => step.die()]
}

const first = (places: (recoveredTo: number) => AgentPlace): State => {
  const place = places(0)
  const actors = Object.fromEntries(ALL.map((name) => [name, place.definitions[name]!.initial]))
  const none = {
    postponed: {},
    mail: [],
    deeds: [],
    run: null,
    next: null,
    runs: 0,
    calls: 0,
    stories: {},
    deaths: 0,
    wrong: null
  }
  let state: State = { actors, live: fieldsOf(new LiveRun()), recoveredTo: 0, head: 0, ...none }
  const run = (act: (step: Step) => void) => {
    const step = new Step(state, places)
    act(step)
    state = step.state
  }
  const settle = () => {
    while (!isQuiet(state)) {
      run((step) => {
        if (step.deeds.length > 0) return step.perform()
        const { message, to } = step.mail.shift()!
        return void step.deliver(to, message)
      })
    }
  }
  run((step) => step.settle(undefined))
  run((step) => void step.deliver(NAMES.worker, { _tag: "Start", by: "ada" }, true))
  settle()
  run((step) => receive(step, "m1", "queue"))
  settle()
  run((step) => step.starts())
  settle()
  return state
}

export const toolsModel = (options: Options): Model<State> => {
  const known = new Map<number, AgentPlace>()
  const places = (recoveredTo: number): AgentPlace => {
    const place = known.get(recoveredTo) ?? new AgentPlace(recoveredTo, options.plant)
    known.set(recoveredTo, place)
    return place
  }
  return {
    initial: first(places),
    key: keyOf,
    invariant,
    isGoal: (state) => isQuiet(state) && openCalls(toolsOf(state)).length === 0,
    // without a person, and without another death
    helps: (move) => !/^ada|^the daemon/.test(move),
    most: options.most,
    *moves(state): Generator<Move<State>> {
      for (const [name, act] of allMoves(state, options, places)) {
        yield {
          name,
          next: () => {
            const step = new Step(state, places)
            act(step)
            return step.state
          }
        }
      }
    }
  }
}
